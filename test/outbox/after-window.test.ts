// What is staged after a window, while a row of before still waits under its key: the row goes only if its record says that it
// has landed. Another intent, caller or strict wording is refused, and its row stays.

import { describe, expect, test } from 'vitest';
import type { Semel } from '../../src/index.ts';
import { type Place, places } from './places.ts';

interface Payment {
  readonly to: string;
  readonly amount?: number;
}

function payer(semel: Semel, strict: readonly 'amount'[] = []) {
  const paid: string[] = [];
  const tool = semel.tool({
    name: 'pay',
    effect: 'irreversible',
    per: 'run',
    identity: ['to'],
    strict,
    window: '150ms',
    async run({ to, amount = 0 }: Payment) {
      paid.push(`${to} ${amount}`);
      return 'paid';
    },
  });
  return { tool, paid };
}

async function windowIsOver({ semel }: Place): Promise<void> {
  await expect.poll(async () => (await semel.records.list()).items.every((one) => one.expired)).toBe(true);
}

describe.each(places)('$name', ({ open }) => {
  test('a row of another intent under the same key of its own stays, and the staging is refused', async () => {
    await using at = await open({ cache: false });
    const { tool, paid } = payer(at.semel);
    const options = { run: '1', key: 'order-17' };
    await at.transaction((tx) => tool.stage(tx, { to: 'bob' }, options));
    await tool({ to: 'ada' }, options);
    await windowIsOver(at);
    await expect(at.transaction((tx) => tool.stage(tx, { to: 'ada' }, options))).rejects.toMatchObject({
      code: 'KEY_CONFLICT',
    });
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 1 });
    expect(paid).toEqual(['ada 0', 'bob 0']);
  });

  test('a row with another strict amount stays, and the staging is refused', async () => {
    await using at = await open({ cache: false });
    const { tool, paid } = payer(at.semel, ['amount']);
    const options = { run: '1' };
    await at.transaction((tx) => tool.stage(tx, { to: 'ada', amount: 5 }, options));
    await tool({ to: 'ada', amount: 7 }, options);
    await windowIsOver(at);
    await expect(
      at.transaction((tx) => tool.stage(tx, { to: 'ada', amount: 7 }, options)),
    ).rejects.toMatchObject({ code: 'KEY_CONFLICT' });
    // It tells a person that the other amount was not paid.
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 0, dead: 1 });
    expect(paid).toEqual(['ada 7']);
    expect(await at.rows()).toHaveLength(1);
  });

  test("another caller's row stays, and the staging is not permitted", async () => {
    await using at = await open({ cache: false });
    const { tool } = payer(at.semel);
    const options = { run: '1', key: 'order-17' };
    await at.transaction((tx) => tool.stage(tx, { to: 'ada' }, { ...options, caller: 'bob' }));
    await tool({ to: 'ada' }, options);
    await windowIsOver(at);
    await expect(at.transaction((tx) => tool.stage(tx, { to: 'ada' }, options))).rejects.toMatchObject({
      code: 'NOT_PERMITTED',
    });
    expect(await at.rows()).toMatchObject([{ caller: expect.any(String) }]);
  });

  test('a dead row stays for a person to decide about', async () => {
    await using at = await open({ cache: false });
    const { tool } = payer(at.semel, ['amount']);
    const options = { run: '1' };
    await at.transaction((tx) => tool.stage(tx, { to: 'ada', amount: 5 }, options));
    await tool({ to: 'ada', amount: 5 }, options);
    await at.change('UPDATE outbox SET state = 2');
    await windowIsOver(at);
    const staged = await at.transaction((tx) => tool.stage(tx, { to: 'ada', amount: 5 }, options));
    expect(staged.status).toBe('dead');
    expect(await at.rows()).toMatchObject([{ state: 2 }]);
  });
});
