// A staged row never outlives its record into a second run: not where the record could not take it along, because the row was
// not committed yet, locked, or to be compared by a relay; and not after its window, or once it would have been pruned.

import { describe, expect, test } from 'vitest';
import { Rejected, type Semel } from '../../src/index.ts';
import { type Place, places } from './places.ts';

const [postgres] = places;

/** What becomes of each attempt. */
type Play = (attempt: number) => unknown;

function mailer(semel: Semel, play: Play = () => 'sent', strict: readonly 'body'[] = []) {
  const sent: string[] = [];
  const tool = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'run',
    identity: ['to'],
    strict,
    window: '150ms',
    async run({ to }: { to: string; body?: string }) {
      sent.push(to);
      return play(sent.length);
    },
  });
  return { tool, sent };
}

const ada = { to: 'ada', body: 'Hello' };
const inRun = { run: '1' };

async function windowIsOver({ store }: Place, key: string): Promise<void> {
  await expect.poll(async () => (await store.read('shop', key))?.expired).toBe(true);
}

/** A record that missed its row: the window is over, and no relay has looked yet. */
interface Missed {
  readonly key: string;
}

type Miss = (at: Place, mail: ReturnType<typeof mailer>) => Promise<Missed>;

async function keyOf(at: Place): Promise<string> {
  const { items } = await at.semel.records.list();
  return items[0]!.key;
}

const misses: Readonly<Record<string, Miss>> = {
  async 'a row that was not committed yet'(at, { tool }) {
    await at.transaction(async (tx) => {
      await tool.stage(tx, ada, inRun);
      await tool(ada, inRun);
    });
    return { key: await keyOf(at) };
  },
  async 'a row that was locked'(at, { tool }) {
    await at.transaction((tx) => tool.stage(tx, ada, inRun));
    await at.transaction(async (tx) => {
      // It notes the other wording, and so locks the row.
      await tool.stage(tx, { ...ada, body: 'Dear Ada' }, inRun);
      await tool(ada, inRun);
    });
    return { key: await keyOf(at) };
  },
  async 'a row that was staged from an old snapshot'(at, { tool }) {
    await at.transaction(async (tx) => {
      await (tx as { query(sql: string): Promise<unknown> }).query('SELECT 1');
      await tool(ada, inRun);
      await tool.stage(tx, ada, inRun);
    }, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
    return { key: await keyOf(at) };
  },
};

describe.each(Object.entries(misses))('%s', (_, miss) => {
  const open = (options = {}) => postgres!.open({ cache: false, ...options });

  test('is delivered by the record, also after its window', async () => {
    await using at = await open();
    const mail = mailer(at.semel);
    const { key } = await miss(at, mail);
    expect(await at.rows()).toHaveLength(1);
    await windowIsOver(at, key);
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 1, inDoubt: 0, dead: 0 });
    expect(mail.sent).toEqual(['ada']);
    expect(await at.rows()).toEqual([]);
  });

  test('keeps the record from being pruned', async () => {
    await using at = await open();
    const mail = mailer(at.semel);
    const { key } = await miss(at, mail);
    await windowIsOver(at, key);
    expect(await at.semel.records.prune()).toBe(0);
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 1 });
    expect(mail.sent).toEqual(['ada']);
    expect(await at.semel.records.prune()).toBe(1);
  });

  test('does not run again after a direct call that came later, and was refused', async () => {
    await using at = await open();
    const mail = mailer(at.semel, (attempt) => {
      if (attempt === 2) throw new Rejected('no');
    });
    const { key } = await miss(at, mail);
    await windowIsOver(at, key);
    await expect(mail.tool(ada, inRun)).rejects.toThrow('no');
    await windowIsOver(at, key);
    await at.semel.outbox.drain();
    expect(mail.sent).toEqual(['ada', 'ada']);
  });

  test('is dead if the record was given up', async () => {
    await using at = await open();
    const mail = mailer(at.semel, () => {
      throw new Error('socket hang up');
    });
    const giveUp = async (args: typeof ada, options: typeof inRun) => {
      await mail.tool.try(args, options);
      const [doubt] = (await at.semel.doubts.list()).items;
      await at.semel.doubts.resolve(doubt!.ref, { abandon: 'nobody can tell' });
      return 'sent';
    };
    const { key } = await miss(at, {
      ...mail,
      tool: Object.assign(giveUp, { stage: mail.tool.stage }) as never,
    });
    await windowIsOver(at, key);
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 0, dead: 1 });
    expect(mail.sent).toEqual(['ada']);
    expect(await at.rows()).toMatchObject([{ state: 2, generation: expect.anything() }]);
  });
});

test('a row whose transaction outlasts the window keeps the record, too', async () => {
  await using at = await postgres!.open({ cache: false });
  const { tool, sent } = mailer(at.semel);
  await at.transaction(async (tx) => {
    const { key } = await tool.stage(tx, ada, inRun);
    await tool(ada, inRun);
    await windowIsOver(at, key);
    await at.semel.records.prune().catch(() => 0);
    // Nobody may start another life of the record either, whatever would become of it.
    expect(await tool.try(ada, inRun)).toMatchObject({ ok: false, error: { code: 'IN_FLIGHT' } });
  });
  expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 1 });
  expect(sent).toEqual(['ada']);
});

describe.each(places)('$name', ({ open }) => {
  test('what is staged after the window runs, and its record is pruned before', async () => {
    await using at = await open({ cache: false });
    const { tool, sent } = mailer(at.semel);
    await tool(ada, inRun);
    await windowIsOver(at, await keyOf(at));
    await at.transaction((tx) => tool.stage(tx, ada, inRun));
    expect(await at.semel.records.prune()).toBe(1);
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 1 });
    expect(sent).toEqual(['ada', 'ada']);
  });

  test('a strict intent, which only a relay compares, is delivered by its record after the window', async () => {
    await using at = await open({ cache: false });
    const { tool, sent } = mailer(at.semel, undefined, ['body']);
    await at.transaction((tx) => tool.stage(tx, ada, inRun));
    await tool(ada, inRun);
    await windowIsOver(at, await keyOf(at));
    expect(await at.semel.records.prune()).toBe(0);
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 1 });
    expect(sent).toEqual(['ada']);
  });

  test('a strict intent is in doubt once a later life has replaced the record that would say more', async () => {
    await using at = await open({ cache: false });
    const { tool, sent } = mailer(
      at.semel,
      (attempt) => {
        if (attempt === 2) throw new Rejected('no');
      },
      ['body'],
    );
    await at.transaction((tx) => tool.stage(tx, ada, inRun));
    await tool(ada, inRun);
    const key = await keyOf(at);
    await windowIsOver(at, key);
    await tool.try(ada, inRun);
    await windowIsOver(at, key);
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 0, inDoubt: 1 });
    expect(sent).toEqual(['ada', 'ada']);
  });

  test('what is staged again after the window is not taken for the row that the record answers for', async () => {
    await using at = await open({ cache: false });
    const { tool, sent } = mailer(at.semel, undefined, ['body']);
    await at.transaction((tx) => tool.stage(tx, ada, inRun));
    await tool(ada, inRun);
    await windowIsOver(at, await keyOf(at));
    const again = await at.transaction((tx) => tool.stage(tx, ada, inRun));
    expect(again.status).toBe('staged');
    expect(await at.rows()).toHaveLength(1);
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 1 });
    expect(sent).toEqual(['ada', 'ada']);
  });

  test('what comes too late, and was done in time, is delivered', async () => {
    await using at = await open({ cache: false });
    const { tool, sent } = mailer(at.semel, undefined, ['body']);
    const notAfter = Date.now() + 100;
    await at.transaction((tx) => tool.stage(tx, ada, { ...inRun, notAfter }));
    await tool(ada, inRun);
    await windowIsOver(at, await keyOf(at));
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 1, dead: 0 });
    expect(sent).toEqual(['ada']);
  });
});
