import { memoryStore } from 'semel/memory';
import { expect, test } from 'vitest';
import { type Clock, systemClock, systemRandom } from '../core/clock.ts';
import { SemelError } from '../core/errors.ts';
import { createLedger } from './ledger.ts';

test('while the store is known to be down, it is not even read', async () => {
  // No time passes, so that it is not tried again; and no pause lasts.
  const clock: Clock = {
    ...systemClock,
    mono: () => 1,
    setTimeout: (run) => systemClock.setTimeout(run, 0),
  };
  let asked = 0;
  const down = async () => {
    asked += 1;
    throw new SemelError('STORE_UNAVAILABLE', 'It hangs.', { next: 'Wait.' });
  };
  const store = { ...memoryStore(), claim: Object.assign(down, { look: down }) };
  const cache = { maxBytes: 0, maxAgeMs: 0 };
  const ledger = createLedger({ store, clock, random: systemRandom, cache });
  for (let call = 0; call < 3; call += 1)
    await expect(ledger.claim({} as never)).rejects.toThrow('It hangs.');
  asked = 0;
  await expect(ledger.readFirst?.({} as never, {} as never)).rejects.toThrow('was not tried again');
  expect(asked).toBe(0);
});
