// The mark that an effect leaves on what it creates, and that `verify` looks for; and "not landed" from an index that lags.

import { landed, notLanded, type PortableRecord, unsure, type VerifyContext } from 'semel';
import { describe, expect, test } from 'vitest';
import { markText, providerKey } from '../../src/core/key/key.ts';
import { type Rig, rig } from './support.ts';

const minute = 60_000;
const base = { name: 'post', effect: 'irreversible', per: 'ever' } as const;

/** A tool that leaves its mark, and loses its answer as often as it is told to. */
function poster({ semel }: Pick<Rig, 'semel'>, more: object = {}) {
  const sent: string[] = [];
  const asked: string[] = [];
  const state = { losing: 1 };
  const tool = semel.tool({
    ...base,
    run: (_: { id: number }, ctx) => {
      sent.push(ctx.mark());
      if (state.losing-- > 0) throw new Error('socket hang up');
      return sent.length;
    },
    verify: (_, ctx: VerifyContext) => {
      asked.push(ctx.mark());
      return unsure('not yet');
    },
    ...more,
  });
  return { tool, sent, asked, state };
}

describe('the mark', () => {
  test('is frozen: letters, digits and a dash, in 26 characters', () => {
    expect(markText('app', 'mail.send/-/ft9v79wz1yz6gqzm8czbr3rx996am816', 1)).toBe(
      'semel-1scvryw6qebz9mmckt5p',
    );
    expect(markText('app', 'k', 1, 'second')).toBe('semel-wxz3xbna6fthsq06m0gp');
  });

  test('differs by namespace, key, generation and part, and is never the key for the provider', () => {
    const marks = [
      markText('n', 'k', 1),
      markText('n', 'k', 2),
      markText('n', 'k', 1, '2'),
      markText('m', 'k', 1),
      markText('n', 'k1', ''),
    ];
    expect(new Set(marks).size).toBe(5);
    expect(marks[0]).not.toContain(providerKey('n', 'k', 1).slice(0, 8));
  });

  test('is the same in every attempt, for verify, in another process and in another ledger', async () => {
    const from = rig();
    const first = poster(from);
    await first.tool.try({ id: 1 });
    await first.tool.try({ id: 1 });
    const other = poster({ semel: from.another() });
    await other.tool.try({ id: 1 });

    const to = rig();
    for await (const record of from.semel.records.export())
      await to.semel.records.import(JSON.parse(JSON.stringify(record)) as PortableRecord);
    const moved = poster(to, { verify: () => notLanded() });
    moved.state.losing = 0;
    await to.clock.advance(20 * minute);
    expect(await moved.tool({ id: 1 })).toBe(1);
    expect(new Set([...first.sent, ...first.asked, ...other.asked, ...moved.sent]).size).toBe(1);
    expect(first.asked).toHaveLength(2);
    expect(other.sent).toEqual([]);
  });

  test('is the one of the older contract form if that form sent it', async () => {
    const made = rig();
    const before = poster(made);
    await before.tool.try({ id: 1 });
    const after = poster({ semel: made.another() }, { name: 'publish', was: [{ name: 'post' }] });
    await after.tool.try({ id: 1 });
    expect(after.asked).toEqual(before.sent);
  });

  test('is another one for a deliberate repeat, and for a later generation', async () => {
    const made = rig();
    const { tool, sent, state } = poster(made, { per: 'conversation', window: '1h' });
    state.losing = 0;
    const conversation = 'c-1';
    await tool({ id: 1 }, { conversation });
    await tool({ id: 1 }, { conversation, again: 'the customer asked' });
    await made.clock.advance(180 * minute);
    await tool({ id: 1 }, { conversation });
    expect(sent).toHaveLength(3);
    expect(new Set(sent).size).toBe(3);
  });

  test('is made for each part, and by begin too', async () => {
    const { semel } = rig();
    const marks: string[] = [];
    const tool = semel.tool({
      ...base,
      run: (_: object, ctx) => {
        const spread = { ...ctx };
        marks.push(ctx.mark(), spread.mark(), ctx.mark('reply'), ctx.mark('reply'));
      },
    });
    const begun = await semel.begin(tool, { id: 2 });
    if (begun.execute) await begun.attempt.release();
    await tool({ id: 2 });
    const [own, , part] = marks;
    expect(marks).toEqual([own, own, part, part]);
    expect(part).not.toBe(own);
    expect(begun.execute && begun.attempt.mark()).toBe(own);
  });
});

describe('"not landed" from an index that lags', () => {
  test('is trusted that much later, however often it is asked', async () => {
    const { semel, clock } = rig();
    const { tool, sent, state } = poster({ semel }, { verify: () => notLanded({ lag: '5m' }) });
    await tool.try({ id: 1 });
    state.losing = 0;
    await clock.advance(61_000);
    const early = await tool.try({ id: 1 });
    expect(early).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    expect(early.ok || early.error.message).toMatch(/may be 5m old/);
    for (let passed = 0; passed < 4; passed += 1) {
      await clock.advance(minute - 1000);
      expect(await semel.doubts.sweep()).toEqual({ landed: 0, notLanded: 0, open: 1 });
    }
    expect(sent).toHaveLength(1);
    await clock.advance(2 * minute);
    expect(await semel.doubts.sweep()).toEqual({ landed: 1, notLanded: 0, open: 0 });
    expect(sent).toHaveLength(2);
  });

  test('and "landed" is trusted at once', async () => {
    const { semel } = rig();
    const { tool } = poster({ semel }, { verify: () => landed(7) });
    await tool.try({ id: 1 });
    expect(await tool({ id: 1 })).toBe(7);
  });

  test('a lag that is not a duration decides nothing', async () => {
    const { semel, clock } = rig();
    const { tool, sent } = poster({ semel }, { verify: () => notLanded({ lag: 'soon' as '1m' }) });
    await tool.try({ id: 1 });
    await clock.advance(20 * minute);
    const told = await tool.try({ id: 1 });
    expect(told.ok || told.error.message).toMatch(/lag is "soon"/);
    expect(sent).toHaveLength(1);
  });
});
