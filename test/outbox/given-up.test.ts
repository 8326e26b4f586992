// A person gave up a record whose effect may have landed: its row must not run again before somebody accepts a repeat.

import { describe, expect, test } from 'vitest';
import { Rejected, type Semel } from '../../src/index.ts';
import { mayLandTwice } from '../../src/outbox/index.ts';
import type { Outbox, PutBack } from '../../src/store/outbox.ts';
import type { Store } from '../../src/store/store.ts';
import { places } from './places.ts';

/** Longer than a loan: on Postgres, its rows are not marked before their effects start. */
const window = '1m';

function mailer(semel: Semel, fail: (attempt: number) => Error | undefined) {
  const sent: string[] = [];
  const tool = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'run',
    window,
    failureWindow: window,
    async run({ to }: { to: string }) {
      sent.push(to);
      const error = fail(sent.length);
      if (error !== undefined) throw error;
    },
  });
  return { tool, sent };
}

const lostAnswer = (attempt: number) => (attempt === 1 ? new Error('socket hang up') : undefined);

async function giveUp(semel: Semel): Promise<void> {
  const [doubt] = (await semel.doubts.list()).items;
  await semel.doubts.resolve(doubt!.ref, { abandon: 'nobody can tell' });
}

/** As if its window were over. */
async function endWindow(semel: Semel): Promise<void> {
  for (const { ref } of (await semel.records.list()).items) await semel.records.forget(ref);
}

describe.each(places)('$name', ({ open }) => {
  test('its row says so after the record is gone', async () => {
    await using at = await open();
    const { tool, sent } = mailer(at.semel, lostAnswer);
    await at.transaction((tx) => tool.stage(tx, { to: 'ada' }, { run: '1' }));
    expect(await at.semel.outbox.drain()).toMatchObject({ inDoubt: 1 });
    await giveUp(at.semel);
    await endWindow(at.semel);
    const [row] = await at.store.outbox!.list({ limit: 1 });
    expect(row).toMatchObject({ state: 'dead', reason: expect.stringContaining('may have landed') });
    expect(mayLandTwice(row!, await at.semel.records.get(row!.key))).toBe(true);
    expect(sent).toEqual(['ada']);
  });

  test('also if a relay was the one who found out', async () => {
    await using at = await open();
    const { tool } = mailer(at.semel, lostAnswer);
    await at.transaction((tx) => tool.stage(tx, { to: 'ada' }, { run: '1' }));
    await at.semel.outbox.drain();
    await giveUp(at.semel);
    // A caller's transaction had the row locked, so it could not follow its record.
    await at.change('UPDATE outbox SET state = 1, due = 0, generation = NULL');
    expect(await at.semel.outbox.drain()).toMatchObject({ dead: 1 });
    await endWindow(at.semel);
    const [row] = await at.store.outbox!.list({ limit: 1 });
    expect(mayLandTwice(row!, await at.semel.records.get(row!.key))).toBe(true);
  });

  test('what the target refused did not land: a person may deliver it again without a question', async () => {
    await using at = await open();
    const { tool } = mailer(at.semel, () => new Rejected('no such address'));
    await at.transaction((tx) => tool.stage(tx, { to: 'ada' }, { run: '1' }));
    expect(await at.semel.outbox.drain()).toMatchObject({ dead: 1 });
    await endWindow(at.semel);
    const [row] = await at.store.outbox!.list({ limit: 1 });
    expect(mayLandTwice(row!, await at.semel.records.get(row!.key))).toBe(false);
  });

  test('a refusal says nothing about what started in another life of the record', async () => {
    await using at = await open();
    const { tool } = mailer(at.semel, () => new Rejected('no such address'));
    await at.transaction((tx) => tool.stage(tx, { to: 'ada' }, { run: '1' }));
    await at.change('UPDATE outbox SET generation = 999999, state = 1');
    await expect(tool({ to: 'ada' }, { run: '1' })).rejects.toThrow('no such address');
    const [row] = await at.store.outbox!.list({ limit: 1 });
    expect(mayLandTwice(row!, await at.semel.records.get(row!.key))).toBe(true);
  });

  test('a relay that had asked before does not put the row back', async () => {
    let beforePutBack: (() => Promise<void>) | undefined;
    const wrap = (store: Store): Store => ({
      ...store,
      get outbox(): Outbox {
        const outbox = store.outbox!;
        const putBack = async (row: PutBack) => {
          await beforePutBack?.();
          await outbox.putBack(row);
        };
        return { ...outbox, putBack };
      },
    });
    await using at = await open({ wrap });
    const { tool, sent } = mailer(at.semel, lostAnswer);
    await at.transaction((tx) => tool.stage(tx, { to: 'ada' }, { run: '1' }));
    beforePutBack = () => giveUp(at.semel);
    await at.semel.outbox.drain();
    beforePutBack = undefined;
    expect((await at.store.outbox!.list({ limit: 1 }))[0]).toMatchObject({ state: 'dead' });
    // No relay runs for longer than the window.
    await endWindow(at.semel);
    await at.change('UPDATE outbox SET due = 0');
    await at.semel.outbox.drain();
    expect(sent).toEqual(['ada']);
  });
});
