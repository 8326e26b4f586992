// Where rules decide here and rows are swapped there: what the simulation of test/sim/far found, each by itself.
import { expect, test } from 'vitest';
import { systemRandom } from '../../src/core/clock.ts';
import { farStore } from '../../src/store/far-store.ts';
import { take } from '../../src/testing/store-contract/attempt.ts';
import { farMemoryBackend } from './far-memory-backend.ts';
import { movableTime } from './movable-time.ts';

test('a success that is told by a process which has never seen the record settles it', async () => {
  const time = movableTime();
  const backend = farMemoryBackend(time.clock.now);
  const open = () => farStore(backend, { clock: time.clock, random: systemRandom });
  const held = await take(open());
  const { namespace, key, token, fence, generation } = held;
  const answer = await open().settle({
    namespace, key, token, fence, generation,
    outcome: 'succeeded', result: null, error: null, keyed: false, found: false,
  });
  expect(answer).toMatchObject({ settled: true, fenced: false });
});
