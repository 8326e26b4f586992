// Which line of an action ledger speaks for a key.

import { expect, test } from 'vitest';
import { meaningsWith } from './plain.ts';
import { planOf } from './plan.ts';

async function* batchOf(statuses: readonly string[]) {
  yield statuses.map((status, index) => ({
    number: index + 1,
    text: JSON.stringify({ key: 'refund-7', ts: '2026-06-19T09:00:00Z', status }),
  }));
}

async function speaker(...statuses: readonly string[]): Promise<string | undefined> {
  const plan = await planOf(batchOf(statuses), { meanings: meaningsWith(new Map()), fields: {} });
  const [line] = plan.chosen;
  return statuses[(line as number) - 1];
}

test.each<[readonly string[], string]>([
  [['started', 'done'], 'done'],
  [['sent', 'error'], 'sent'],
  [['started', 'failed'], 'failed'],
  [['pending', 'running', 'failed'], 'failed'],
  [['started', 'failed', 'started', 'failed'], 'failed'],
  [['failed', 'started'], 'started'],
  // An attempt of which nobody knew is not accounted for by a later one that was refused.
  [['timeout', 'failed'], 'timeout'],
  [['started', 'timeout', 'started', 'failed'], 'timeout'],
  [['unknown', 'rejected', 'rejected'], 'unknown'],
  [['timeout', 'failed', 'done'], 'done'],
  // The first one began and never ended.
  [['started', 'started', 'failed'], 'started'],
  [['pending', 'running', 'pending', 'running', 'error'], 'running'],
])('of %j it is %s', async (statuses, expected) => {
  expect(await speaker(...statuses)).toBe(expected);
});
