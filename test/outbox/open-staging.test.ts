// While a transaction that has staged a key is still open, only what concerns that key waits for it.

import { expect, test } from 'vitest';
import type { Semel } from '../../src/index.ts';
import { type Place, places } from './places.ts';

const [postgres] = places;
const inRun = { run: '1' };
const names = Array.from({ length: 20 }, (_, n) => `user ${n}`);

function mailer(semel: Semel) {
  return semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'run',
    identity: ['to'],
    window: '150ms',
    run: async ({ to }: { to: string }) => to,
  });
}

async function windowIsOver({ semel }: Place): Promise<void> {
  await expect.poll(async () => (await semel.records.list()).items.every((one) => one.expired)).toBe(true);
}

test('of twenty expired keys only the staged one is refused', async () => {
  await using at = await postgres!.open({ cache: false });
  const tool = mailer(at.semel);
  for (const to of names) await tool({ to }, inRun);
  await windowIsOver(at);
  await at.transaction(async (tx) => {
    await tool.stage(tx, { to: 'user 7' }, inRun);
    const answers = await Promise.all(
      names.map(async (to) => {
        const startedAt = performance.now();
        const result = await tool.try({ to }, inRun);
        return { to, code: result.ok ? 'ok' : result.error.code, ms: performance.now() - startedAt };
      }),
    );
    for (const { to, code, ms } of answers) {
      expect([to, code]).toEqual([to, to === 'user 7' ? 'IN_FLIGHT' : 'ok']);
      if (to !== 'user 7') expect(ms).toBeLessThan(3_000);
    }
  });
});

test('a repeatable write does not wait for it, and leaves the outbox alone', async () => {
  await using at = await postgres!.open({ cache: false });
  const tool = at.semel.tool({
    name: 'crm.set',
    effect: 'write-idempotent',
    per: 'run',
    identity: ['id'],
    run: async ({ id }: { id: string }) => id,
  });
  const set = () => tool.try({ id: 'a' }, inRun);
  for (let n = 0; n < 5; n += 1) expect(await set()).toMatchObject({ receipt: { executed: true } });
  await at.transaction((tx) => tool.stage(tx, { id: 'b' }, inRun));
  expect((await at.rows()).map(({ n }) => String(n))).toEqual(['1']);
  await at.transaction(async (tx) => {
    await tool.stage(tx, { id: 'a' }, inRun);
    expect(await set()).toMatchObject({ ok: true, receipt: { executed: true } });
  });
});

test('records of other keys are pruned', async () => {
  await using at = await postgres!.open({ cache: false });
  const tool = mailer(at.semel);
  for (const to of names) await tool({ to }, inRun);
  await windowIsOver(at);
  await at.transaction(async (tx) => {
    await tool.stage(tx, { to: 'user 7' }, inRun);
    expect(await at.semel.records.prune()).toBe(19);
  });
});
