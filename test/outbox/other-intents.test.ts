// What lands, or is given up, takes along only the row of its own intent: whatever else is staged is delivered, or told.

import { describe, expect, test } from 'vitest';
import { Rejected, type Semel } from '../../src/index.ts';
import { places } from './places.ts';

/** A tool that counts what it sends. */
function mailer(semel: Semel, send: (to: string) => unknown = () => 'sent') {
  const sent: string[] = [];
  const tool = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'ever',
    identity: ['to'],
    async run({ to }: { to: string }) {
      sent.push(to);
      return send(to);
    },
  });
  return { tool, sent };
}

describe.each(places)('$name', ({ open }) => {
  test("a direct call with other args under the caller's key does not count as the delivery", async () => {
    await using at = await open();
    const { tool, sent } = mailer(at.semel);
    await at.transaction((tx) => tool.stage(tx, { to: 'ada' }, { key: 'welcome' }));
    await tool({ to: 'bob' }, { key: 'welcome' });
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 0, dead: 1 });
    expect((await at.rows())[0]?.reason).toMatch(/already used with other identity args/);
    expect(sent).toEqual(['bob']);
  });

  test("a direct call with the same args under the caller's key does", async () => {
    await using at = await open();
    const { tool, sent } = mailer(at.semel);
    await at.transaction((tx) => tool.stage(tx, { to: 'ada' }, { key: 'welcome', caller: 'ann' }));
    await tool({ to: 'ada' }, { key: 'welcome', caller: 'ann' });
    expect(await at.rows()).toEqual([]);
    expect(sent).toEqual(['ada']);
  });

  test.each([
    [{ caller: 'ann' }, { caller: 'bea' }],
    [{ caller: 'ann' }, { run: 'nightly' }],
    [{}, { caller: 'bea' }],
  ])('a direct call of another caller does not count as the delivery: %o, %o', async (staged, called) => {
    await using at = await open();
    const { tool, sent } = mailer(at.semel);
    await at.transaction((tx) => tool.stage(tx, { to: 'ada' }, staged));
    await tool({ to: 'ada' }, called);
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 0, dead: 1 });
    expect((await at.rows())[0]?.reason).toMatch(/another caller/);
    expect(sent).toEqual(['ada']);
  });

  test('a direct call with another strict field does not count as the delivery', async () => {
    await using at = await open();
    const paid: number[] = [];
    let isRefused = false;
    const pay = at.semel.tool({
      name: 'pay',
      effect: 'irreversible',
      per: 'ever',
      identity: ['id'],
      strict: ['amount'],
      async run({ amount }: { id: number; amount: number }) {
        if (isRefused) throw new Rejected('no');
        return paid.push(amount);
      },
    });
    const stage = (id: number, amount: number, options = {}) =>
      at.transaction((tx) => pay.stage(tx, { id, amount }, options));
    const drain = async () => {
      const { delivered, dead, inDoubt } = await at.semel.outbox.drain();
      return { delivered, dead, inDoubt, rows: (await at.rows()).length };
    };
    // Alone, and beside an equal call.
    expect(await stage(1, 10)).toMatchObject({ status: 'staged' });
    expect(await stage(1, 10)).toMatchObject({ status: 'staged before' });
    await expect(stage(1, 20)).rejects.toMatchObject({ code: 'KEY_CONFLICT' });
    expect(await drain()).toEqual({ delivered: 1, dead: 0, inDoubt: 0, rows: 0 });
    await stage(2, 10, { key: 'second' });
    await pay({ id: 2, amount: 10 }, { key: 'second' });
    expect(await drain()).toEqual({ delivered: 1, dead: 0, inDoubt: 0, rows: 0 });
    expect(paid).toEqual([10, 10]);
    // Beside one with another amount, which landed or was refused.
    await stage(3, 10);
    await pay({ id: 3, amount: 99 });
    expect(await drain()).toEqual({ delivered: 0, dead: 1, inDoubt: 0, rows: 1 });
    expect((await at.rows())[0]?.reason).toMatch(/another `amount`/);
    expect(paid).toEqual([10, 10, 99]);
    await stage(4, 10);
    isRefused = true;
    await pay.try({ id: 4, amount: 99 });
    expect(await at.rows()).toMatchObject([{ state: 2 }, { state: 0, reason: null }]);
  });

  test('a strict intent whose record is gone is in doubt, as any other', async () => {
    await using at = await open();
    let runs = 0;
    const pay = at.semel.tool({
      name: 'pay',
      effect: 'irreversible',
      per: 'ever',
      strict: ['amount'],
      async run(_: { id: number; amount: number }) {
        runs += 1;
        throw new Error('socket hang up');
      },
    });
    const { key } = await at.transaction((tx) => pay.stage(tx, { id: 1, amount: 10 }));
    expect(await at.semel.outbox.drain()).toMatchObject({ inDoubt: 1 });
    const record = await at.semel.records.get(key);
    await at.semel.doubts.resolve(record?.ref as string, 'landed', { by: 'ann' });
    await at.semel.records.forget(key, { by: 'ann' });
    await at.change('UPDATE outbox SET due = 0');
    expect(await at.semel.outbox.drain()).toMatchObject({ inDoubt: 1 });
    expect(runs).toBe(1);
  });

  test('a refusal of other args leaves the intent as it is', async () => {
    await using at = await open();
    const { tool } = mailer(at.semel, () => {
      throw new Rejected('unknown address');
    });
    await at.transaction((tx) => tool.stage(tx, { to: 'ada' }, { key: 'welcome' }));
    await tool.try({ to: 'bob' }, { key: 'welcome' });
    expect(await at.rows()).toMatchObject([{ state: 0, reason: null }]);
    await at.semel.outbox.drain();
    await tool.try({ to: 'ada' }, { key: 'other' });
    expect(await at.rows()).toMatchObject([{ state: 2, reason: expect.stringMatching(/other identity/) }]);
  });

  test('what was done in an earlier window is staged again, and stays when a person forgets the old record', async () => {
    await using at = await open();
    const sent: string[] = [];
    const tool = at.semel.tool({
      name: 'mail.send',
      effect: 'write-non-idempotent',
      per: '20ms',
      run: async ({ to }: { to: string }) => void sent.push(to),
    });
    const { receipt } = await tool.try({ to: 'ada' });
    await expect.poll(async () => (await at.store.read('shop', receipt.key))?.expired).toBe(true);
    await at.transaction((tx) => tool.stage(tx, { to: 'ada' }));
    await at.semel.records.forget(receipt.key);
    expect(await at.rows()).toHaveLength(1);
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 1 });
    expect(sent).toEqual(['ada', 'ada']);
  });

  test('a write that is harmless to repeat is not dropped for an earlier one with another value', async () => {
    await using at = await open();
    const written: string[] = [];
    const tool = at.semel.tool({
      name: 'setting.put',
      effect: 'write-idempotent',
      per: 'ever',
      identity: ['id'],
      run: async ({ value }: { id: number; value: string }) => void written.push(value),
    });
    const stage = (value: string) => at.transaction((tx) => tool.stage(tx, { id: 1, value }));
    expect(await stage('on')).toMatchObject({ status: 'staged' });
    expect(await stage('on')).toMatchObject({ status: 'staged before' });
    await expect(stage('off')).rejects.toMatchObject({
      code: 'IN_FLIGHT',
      path: 'value',
      message: expect.stringMatching(/revision.*`group`/),
    });
    await at.semel.outbox.drain();
    expect(await stage('off')).toMatchObject({ status: 'staged' });
    await at.semel.outbox.drain();
    expect(written).toEqual(['on', 'off']);
  });

  test('with a revision in the identity and a group, each value is delivered and the last one wins', async () => {
    await using at = await open();
    const written: string[] = [];
    const tool = at.semel.tool({
      name: 'setting.put',
      effect: 'write-idempotent',
      per: 'ever',
      identity: ['id', 'revision'],
      run: async ({ value }: { id: number; revision: number; value: string }) => void written.push(value),
    });
    for (const [revision, value] of ['on', 'off', 'on'].entries())
      await at.transaction((tx) => tool.stage(tx, { id: 1, revision, value }, { group: 'setting 1' }));
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 3 });
    expect(written).toEqual(['on', 'off', 'on']);
  });
});
