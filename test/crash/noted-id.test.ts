// A process notes the provider's id and is killed: the id stays, people see it, and `verify` settles the call by it.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createSemel } from '../../src/index.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { movableClock } from '../processes/movable-clock.ts';
import { startNode } from '../processes/node-process.ts';
import { newScratch } from '../processes/scratch.ts';
import { payments } from './payments.ts';

test('an id that was noted before kill -9 settles the call', async () => {
  using scratch = newScratch('noted-id');
  const paths = { ledger: scratch.path('ledger.db'), paid: scratch.path('paid') };
  const victim = startNode<{ stored: boolean }>(new URL('./noted-id-worker.ts', import.meta.url), paths);
  expect((await victim.ended).signal).toBe('SIGKILL');
  expect(victim.errors()).toBe('');
  expect(victim.lines).toEqual([{ stored: true }]);

  const clock = movableClock(61_000);
  await using semel = createSemel({
    store: sqliteStore({ path: paths.ledger, clock }),
    clock,
    namespace: 'crash',
    onWarning: () => undefined,
  });
  const [doubt] = (await semel.doubts.list()).items;
  expect(doubt).toMatchObject({ inDoubt: true, remoteRef: 're_123' });
  const pay = payments(semel, paths, async () => 'a second payment');
  const result = await pay.try({ order: 'o-1' });
  expect(result).toMatchObject({ ok: true, value: 're_123', receipt: { executed: false } });
  expect(readFileSync(paths.paid, 'utf8')).toBe('re_123\n');
});
