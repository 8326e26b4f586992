// Calls from inside a run belong where their outer call does. A sweep that continues the outer call meets the same inner records.

import { type CallOptions, day, MaybeLanded, NotLanded, Rejected, type Semel } from 'semel';
import { expect, test } from 'vitest';
import { rig } from './support.ts';

const provider = { name: 'shop.pay', window: '7d', sentBy: 'tool' } as const;
const outer = { name: 'order', effect: 'write-non-idempotent', window: '7d', provider } as const;
const hour = 3_600_000;
const utcDay = day('UTC');

type Per = 'turn' | 'ever' | ReturnType<typeof day>;

/** An order that sends a mail and is in doubt at its first attempt. */
function shop(semel: Semel, per: { order: Per; mail: Per }) {
  const mails: string[] = [];
  let attempts = 0;
  const mail = semel.tool({
    ...{ name: 'mail', effect: 'write-non-idempotent', per: per.mail, window: '7d' },
    run: async ({ id }: { id: string }) => void mails.push(id),
  });
  const order = semel.tool({
    ...{ ...outer, per: per.order },
    async run({ id }: { id: string }, ctx) {
      attempts += 1;
      await mail({ id });
      if (attempts === 1) throw new MaybeLanded(`no answer to ${ctx.key}`);
    },
  });
  return { order, mails };
}

test.each<[string, CallOptions]>([
  ['a conversation and a turn', { conversation: 'c2', turn: 't7' }],
  ['a turn', { turn: 't7' }],
  ['a caller', { caller: 'ann' }],
])('a sweep repeats no inner call of a call that was given %s', async (_, options) => {
  const { semel, clock } = rig();
  const { order, mails } = shop(semel, { order: 'ever', mail: 'turn' });
  await semel.within({ conversation: 'c1', turn: 't1' }, () => order.try({ id: 'o1' }, options));
  expect(await clock.until(semel.doubts.sweep())).toMatchObject({ landed: 1 });
  expect(mails).toEqual(['o1']);
});

test.each<[string, { order: Per; mail: Per }]>([
  ['has a day too', { order: utcDay, mail: utcDay }],
  ['has no period', { order: 'ever', mail: utcDay }],
])('a sweep on the next day continues yesterday’s inner call where the outer one %s', async (_, per) => {
  const { semel, clock } = rig();
  const { order, mails } = shop(semel, per);
  await order.try({ id: 'o1' });
  await clock.advance(24 * hour);
  expect(await clock.until(semel.doubts.sweep())).toMatchObject({ landed: 1 });
  expect(mails).toEqual(['o1']);
  await order({ id: 'o1' });
  const isDaily = per.order !== 'ever';
  expect(mails).toEqual(isDaily ? ['o1', 'o1'] : ['o1']);
});

test('an inner call belongs to the day that the outer one is for', async () => {
  const { semel, clock } = rig();
  const { order, mails } = shop(semel, { order: utcDay, mail: utcDay });
  const at = clock.now() - 24 * hour;
  await order.try({ id: 'o1' }, { at });
  expect(await clock.until(semel.doubts.sweep())).toMatchObject({ landed: 1 });
  expect(mails).toHaveLength(1);
  await order({ id: 'o1' });
  expect(mails).toHaveLength(2);
});

test('an inner call after midnight belongs to the day of the outer one', async () => {
  const { semel, clock } = rig();
  const mails: number[] = [];
  const mail = semel.tool({
    ...{ name: 'mail', effect: 'write-non-idempotent', per: utcDay },
    run: async ({ n }: { n: number }) => void mails.push(n),
  });
  const report = semel.tool({
    ...{ name: 'report', effect: 'write-non-idempotent', per: utcDay, timeout: 'none' },
    async run(_: { n: number }) {
      if (mails.length === 0) await clock.advance(24 * hour);
      await mail({ n: 1 });
    },
  });
  await clock.until(report({ n: 1 }));
  await report({ n: 1 });
  expect(mails).toEqual([1, 1]);
});

test('what a call says about its place holds inside its run only', async () => {
  const { semel } = rig();
  const keys: string[] = [];
  const note = semel.tool({
    ...{ name: 'note', effect: 'write-non-idempotent', per: 'turn' },
    run: async (_: { n: number }, ctx) => {
      keys.push(ctx.key);
      throw new NotLanded('again');
    },
  });
  const order = semel.tool({
    ...{ name: 'order', effect: 'write-non-idempotent', per: 'ever' },
    run: async (_: { n: number }) => void (await note.try({ n: 1 })),
  });
  await semel.within({ conversation: 'c1', turn: 't1' }, async () => {
    await note.try({ n: 1 });
    await order({ n: 1 }, { turn: 't2' });
    await note.try({ n: 1 });
  });
  expect(keys[0]).toBe(keys[2]);
  expect(keys[1]).not.toBe(keys[0]);
});

test.each([
  ['did not land', NotLanded],
  ['was refused', Rejected],
])('a read that says it %s says nothing about the effect that called it', async (_, Word) => {
  const { semel } = rig();
  const sent: number[] = [];
  const search = semel.tool({
    ...{ name: 'search', effect: 'read' },
    run: async (_: { n: number }): Promise<number> => {
      throw new Word('the index is away');
    },
  });
  const mail = semel.tool({
    ...{ name: 'mail', effect: 'irreversible', per: 'ever' },
    async run({ n }: { n: number }) {
      sent.push(n);
      return search({ n });
    },
  });
  expect(await mail.try({ n: 1 })).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  expect(await mail.try({ n: 1 })).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  expect(sent).toEqual([1]);
});
