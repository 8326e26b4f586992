// A service whose words or ids have no end must fill neither the ledger nor what a person or a model reads.

import { landed, unsure, type Verification } from 'semel';
import { expect, test } from 'vitest';
import { rig } from './support.ts';

const endless = 'x'.repeat(3_000_000);

async function ask(verify: () => Verification) {
  const { semel } = rig();
  const tool = semel.tool({
    name: 'pay',
    effect: 'write-non-idempotent',
    per: 'ever',
    run: (_: { order: string }): unknown => {
      throw new Error('the reply was lost');
    },
    verify,
  });
  const result = await tool.try({ order: '1' });
  const [record] = (await semel.records.list()).items;
  return { result, record };
}

test.each([
  ['said', () => unsure(endless)],
  [
    'thrown',
    () => {
      throw new Error(endless);
    },
  ],
])('a reason that is %s is cut', async (_, verify) => {
  const { result, record } = await ask(verify);
  expect(result).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  expect(JSON.stringify(result).length).toBeLessThan(10_000);
  expect(result.ok || result.error.message).toContain('could not tell: xxx');
  expect(JSON.stringify(record).length).toBeLessThan(10_000);
});

test('an id that was found is cut as one that was noted', async () => {
  const { result, record } = await ask(() => landed('paid', endless));
  expect(result).toMatchObject({ ok: true, value: 'paid' });
  expect([result.receipt.remoteRef?.length, record?.remoteRef?.length]).toEqual([1_000, 1_000]);
});
