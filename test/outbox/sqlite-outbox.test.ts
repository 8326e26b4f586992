// Staging in a SQLite transaction, and relays on the same file.

import { afterAll, describe, expect, test, vi } from 'vitest';
import { createSemel, NotLanded, Rejected } from '../../src/index.ts';
import type { SqliteLike } from '../../src/stores/sqlite/index.ts';
import { place as cliPlace } from '../cli/place.ts';
import { newPath } from '../stores/sqlite-folder.ts';
import { closeStoreHandles, type Library, libraries, rowsOf, transaction } from './sqlite-place.ts';

afterAll(closeStoreHandles);

interface Mail {
  readonly to: string;
  readonly body?: string;
}

async function open(library: Library, path = newPath()) {
  const store = library.store(path);
  const semel = createSemel({ store, namespace: 'shop', prune: false });
  await semel.open();
  const database = library.open(path);
  database.exec('CREATE TABLE IF NOT EXISTS orders (id TEXT)');
  const rows = () => rowsOf(database, 'SELECT * FROM outbox ORDER BY n');
  const due = () => database.exec('UPDATE outbox SET due = 0');
  return {
    ...{ path, store, semel, database, rows, due },
    async [Symbol.asyncDispose]() {
      await semel.close();
      database.close();
    },
  };
}

function mailer(
  semel: ReturnType<typeof createSemel>,
  send: (mail: Mail, attempt: number) => unknown = () => 'sent',
) {
  const sent: string[] = [];
  const tool = semel.tool({
    name: 'mail',
    effect: 'irreversible',
    per: 'ever',
    identity: ['to'],
    async run(mail: Mail) {
      sent.push(mail.to);
      return await send(mail, sent.length);
    },
  });
  return { tool, sent };
}

describe.each(libraries)('$name', (library) => {
  test('a settlement takes its row along, also one staged by another connection after an empty outbox was seen', async () => {
    await using at = await open(library);
    const { tool, sent } = mailer(at.semel);
    // This settlement finds the outbox empty.
    await tool({ to: 'ada' });
    await transaction(at.database, (tx) => tool.stage(tx, { to: 'bob' }));
    expect(at.rows()).toHaveLength(1);
    await tool({ to: 'bob' });
    expect(at.rows()).toEqual([]);
    expect(sent).toEqual(['ada', 'bob']);
  });

  test('a relay without the tool of a row says so, and delivers nothing', async () => {
    await using at = await open(library);
    await transaction(at.database, (tx) => mailer(at.semel).tool.stage(tx, { to: 'ada' }));
    const said: string[] = [];
    await using other = createSemel({
      store: at.store,
      namespace: 'shop',
      onWarning: (text) => said.push(text),
    });
    expect(await other.outbox.drain()).toMatchObject({ delivered: 0 });
    expect(said).toEqual([
      expect.stringMatching(/^mail is staged, .*no tool of that name. Import the module/),
    ]);
    said.length = 0;
    const { tool } = mailer(other);
    await other.outbox.drain({ tools: [tool] });
    expect(said).toEqual([]);
  });

  test.each(['relay', 'caller'])('a row of a renamed tool lands once, by the %s first', async (first) => {
    await using at = await open(library);
    await transaction(at.database, (tx) => mailer(at.semel).tool.stage(tx, { to: 'ada' }));
    await using renamed = createSemel({ store: at.store, namespace: 'shop', prune: false });
    const sent: string[] = [];
    const mail = renamed.tool({
      name: 'letter',
      was: [{ name: 'mail' }],
      effect: 'irreversible',
      per: 'ever',
      identity: ['to'],
      run: ({ to }: Mail) => void sent.push(to),
    });
    if (first === 'caller') await mail({ to: 'ada' });
    // Named by its tool, it is found under the old name too.
    const tools = first === 'relay' ? { tools: [mail] } : {};
    expect(await renamed.outbox.drain(tools)).toMatchObject({ delivered: 1 });
    await mail({ to: 'ada' });
    expect(sent).toEqual(['ada']);
    expect(at.rows()).toEqual([]);
  });

  test.each(['old', 'new'])(
    'one intent, staged before and after a rename: the %s row first',
    async (first) => {
      await using at = await open(library);
      const { tool } = mailer(at.semel);
      const notBefore = Date.now() + 3_600_000;
      await transaction(at.database, (tx) =>
        tool.stage(tx, { to: 'ada' }, first === 'old' ? {} : { notBefore }),
      );
      await using renamed = createSemel({ store: at.store, namespace: 'shop', prune: false });
      const sent: string[] = [];
      const mail = renamed.tool({
        name: 'letter',
        was: [{ name: 'mail' }],
        effect: 'irreversible',
        per: 'ever',
        identity: ['to'],
        run: ({ to }: Mail) => void sent.push(to),
      });
      await transaction(at.database, (tx) =>
        mail.stage(tx, { to: 'ada' }, first === 'new' ? {} : { notBefore }),
      );
      expect(await renamed.outbox.drain()).toMatchObject({ delivered: 1 });
      at.due();
      expect(await renamed.outbox.drain()).toMatchObject({ delivered: 1 });
      expect(sent).toEqual(['ada']);
      expect(at.rows()).toEqual([]);
    },
  );

  test('an intent commits with the data and is delivered once; a rollback leaves nothing', async () => {
    await using at = await open(library);
    const { tool, sent } = mailer(at.semel);
    const staged = (tx: SqliteLike, to: string) => {
      tx.exec(`INSERT INTO orders VALUES ('${to}')`);
      return tool.stage(tx, { to });
    };
    const rolledBack = transaction(at.database, async (tx) => {
      expect(await staged(tx, 'ada')).toMatchObject({ status: 'staged' });
      throw new Error('no');
    });
    await expect(rolledBack).rejects.toThrow('no');
    expect(at.rows()).toEqual([]);
    await transaction(at.database, (tx) => staged(tx, 'ada'));
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 1 });
    expect(await transaction(at.database, (tx) => staged(tx, 'ada'))).toMatchObject({ status: 'delivered' });
    expect(sent).toEqual(['ada']);
    expect(at.rows()).toEqual([]);
    expect(await at.store.verify()).toEqual([]);
  });

  test('ten stagings of one intent in ten transactions at once leave one row', async () => {
    await using at = await open(library);
    const { tool, sent } = mailer(at.semel);
    const handles = Array.from({ length: 10 }, () => library.open(at.path));
    const staged = await Promise.all(
      handles.map((handle) => transaction(handle, (tx) => tool.stage(tx, { to: 'ada' }), 'BEGIN')),
    );
    expect(staged.filter(({ status }) => status === 'staged')).toHaveLength(1);
    expect(at.rows()).toHaveLength(1);
    await at.semel.outbox.drain();
    expect(sent).toEqual(['ada']);
    for (const handle of handles) handle.close();
  });

  test("other identity args under a caller's key are a conflict in the caller's transaction", async () => {
    await using at = await open(library);
    const { tool } = mailer(at.semel);
    const conflict = { code: 'KEY_CONFLICT' };
    await transaction(at.database, async (tx) => {
      await tool.stage(tx, { to: 'ada' }, { key: 'order 7' });
      await expect(tool.stage(tx, { to: 'bob' }, { key: 'order 7' })).rejects.toMatchObject(conflict);
      tx.exec("INSERT INTO orders VALUES ('goes on')");
    });
    expect(at.rows()).toHaveLength(1);
    await at.semel.outbox.drain();
    await transaction(at.database, (tx) =>
      expect(tool.stage(tx, { to: 'bob' }, { key: 'order 7' })).rejects.toMatchObject(conflict),
    );
    expect(rowsOf(at.database, 'SELECT id FROM orders')).toEqual([{ id: 'goes on' }]);
  });

  test('another wording is noted, and the first one is delivered', async () => {
    await using at = await open(library);
    const bodies: unknown[] = [];
    const { tool } = mailer(at.semel, ({ body }) => bodies.push(body));
    await transaction(at.database, (tx) => tool.stage(tx, { to: 'ada', body: 'Hello' }));
    const again = await transaction(at.database, (tx) => tool.stage(tx, { to: 'ada', body: 'Dear Ada' }));
    expect(again).toMatchObject({ status: 'staged before', drift: ['body'] });
    expect(at.rows()[0]?.drift).toBe('["body"]');
    await at.semel.outbox.drain();
    expect(bodies).toEqual(['Hello']);
  });

  test('a relay retries, gives up with a reason, and keeps a doubt in doubt', async () => {
    await using at = await open(library);
    const { tool, sent } = mailer(at.semel, ({ to }) => {
      if (to === 'closed') throw new NotLanded('the mail server is closed');
      if (to === 'nobody') throw new Rejected('no such address');
      if (to === 'lost') throw new Error('socket hang up');
    });
    await transaction(at.database, async (tx) => {
      for (const to of ['closed', 'nobody', 'lost']) await tool.stage(tx, { to });
    });
    for (let n = 0; n < 3; n += 1) {
      await at.semel.outbox.drain({ maxTries: 2 });
      at.due();
    }
    expect(at.rows()).toMatchObject([
      { state: 2, tries: 2, reason: expect.stringMatching(/server is closed/) },
      { state: 2, reason: expect.stringMatching(/no such address/) },
      { state: 1 },
    ]);
    expect(sent.toSorted()).toEqual(['closed', 'closed', 'lost', 'nobody']);
    expect(await transaction(at.database, (tx) => tool.stage(tx, { to: 'lost' }))).toMatchObject({
      status: 'in doubt',
    });
  });

  test('delivers a group in order, and stops it at a row that is in doubt', async () => {
    await using at = await open(library);
    const { tool, sent } = mailer(at.semel, ({ to }) => {
      if (to === '3') throw new Error('socket hang up');
    });
    await transaction(at.database, async (tx) => {
      for (const to of ['1', '2', '3', '4', '5'])
        await tool.stage(tx, { to }, { group: { name: 'a', strict: true } });
      await tool.stage(tx, { to: 'x' }, { group: 'b' });
    });
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 3, inDoubt: 1 });
    expect(sent.filter((to) => to !== 'x')).toEqual(['1', '2', '3']);
    expect(await at.semel.outbox.drain({ onBlocked: 'skip' })).toMatchObject({ delivered: 2 });
    expect(sent.filter((to) => to !== 'x')).toEqual(['1', '2', '3', '4', '5']);
  });

  test('four relays deliver a hundred rows, each once', async () => {
    await using at = await open(library);
    const others = await Promise.all([1, 2, 3].map(() => open(library, at.path)));
    const mailers = [at, ...others].map(({ semel }) => mailer(semel));
    await transaction(at.database, async (tx) => {
      for (let n = 0; n < 100; n += 1) await mailers[0]!.tool.stage(tx, { to: String(n) });
    });
    await Promise.all([at, ...others].map(({ semel }) => semel.outbox.drain()));
    const all = mailers.flatMap(({ sent }) => sent);
    expect(all).toHaveLength(100);
    expect(new Set(all).size).toBe(100);
    expect(at.rows()).toEqual([]);
    for (const other of others) await other[Symbol.asyncDispose]();
  });
});

const [nodeSqlite] = libraries as [Library];

test('what lands takes its row along in one commit, by a direct call or in a transaction', async () => {
  await using at = await open(nodeSqlite);
  const { tool, sent } = mailer(at.semel);
  await transaction(at.database, async (tx) => {
    for (const to of ['ada', 'bob']) await tool.stage(tx, { to });
  });
  await tool({ to: 'ada' });
  expect(at.rows()).toMatchObject([{ n: 2 }]);
  at.database.exec('BEGIN');
  await tool.inTransaction(at.database, { to: 'bob' });
  expect(at.rows()).toEqual([]);
  at.database.exec('ROLLBACK');
  expect(at.rows()).toHaveLength(1);
  await transaction(at.database, (tx) => tool.inTransaction(tx, { to: 'bob' }));
  expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 0 });
  expect(sent).toEqual(['ada', 'bob', 'bob']);
});

test('a repeatable write is one of its own: a direct call leaves what is staged alone', async () => {
  await using at = await open(nodeSqlite);
  const written: string[] = [];
  const tool = at.semel.tool({
    name: 'setting.put',
    effect: 'write-idempotent',
    run: async ({ value }: { value: string }) => void written.push(value),
  });
  await transaction(at.database, (tx) => tool.stage(tx, { value: 'a' }));
  await tool({ value: 'a' });
  await tool({ value: 'b' });
  expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 1 });
  expect(written).toEqual(['a', 'b', 'a']);
  expect(at.rows()).toEqual([]);
});

test('what was done in an earlier window is staged again, and stays staged', async () => {
  await using at = await open(nodeSqlite);
  const { tool, sent } = mailer(at.semel);
  const record = await tool.try({ to: 'ada' });
  await at.semel.records.forget(record.receipt.key);
  await transaction(at.database, (tx) => tool.stage(tx, { to: 'ada' }));
  // A second verdict about the record that is over must not take the new intent along.
  await at.semel.records.forget(record.receipt.key).catch(() => undefined);
  expect(at.rows()).toHaveLength(1);
  await at.semel.outbox.drain();
  expect(sent).toEqual(['ada', 'ada']);
});

test('what a person gives up is dead at once', async () => {
  await using at = await open(nodeSqlite);
  const { tool, sent } = mailer(at.semel, () => {
    throw new Error('socket hang up');
  });
  await transaction(at.database, (tx) => tool.stage(tx, { to: 'ada' }));
  await at.semel.outbox.drain();
  const [doubt] = (await at.semel.doubts.list()).items;
  await at.semel.doubts.resolve(doubt!.ref, { abandon: 'nobody can tell' });
  expect(at.rows()).toMatchObject([{ state: 2, reason: expect.stringMatching(/semel show/) }]);
  expect(sent).toHaveLength(1);
});

test('a loan is kept while it is held, and what an earlier one says is void', async () => {
  await using at = await open(nodeSqlite);
  const { tool } = mailer(at.semel);
  await transaction(at.database, (tx) => tool.stage(tx, { to: 'ada' }));
  const { outbox } = at.store;
  const query = { namespace: 'shop', contracts: ['mail'], limit: 1, skipBlocked: false };
  const [first] = await outbox!.take({ ...query, holdMs: 10 });
  await expect.poll(() => outbox!.take({ ...query, holdMs: 60_000 })).toHaveLength(1);
  const dead = { state: 'dead', waitMs: 0, reason: 'used up', isSpent: false } as const;
  await outbox!.putBack({ n: first!.n, dueAt: first!.dueAt, ...dead });
  expect(await outbox!.keep([first!], 60_000)).toMatchObject({ kept: [] });
  const [second] = await outbox!.list({ namespace: 'shop', limit: 1 });
  expect(second).toMatchObject({ state: 'waiting' });
  const { dueAt, kept } = await outbox!.keep([second!], 120_000);
  expect(kept).toEqual([second!.n]);
  await outbox!.putBack({ n: second!.n, dueAt: second!.dueAt, ...dead });
  expect(at.rows()).toMatchObject([{ state: 0 }]);
  await outbox!.putBack({ n: second!.n, dueAt, ...dead });
  expect(at.rows()).toMatchObject([{ state: 2 }]);
});

test('a row whose effect was started is never run again once its record is gone', async () => {
  await using at = await open(nodeSqlite);
  const { tool, sent } = mailer(at.semel);
  await transaction(at.database, (tx) => tool.stage(tx, { to: 'ada' }));
  // Marked in an earlier life of its record, which was pruned since.
  at.database.exec('UPDATE outbox SET generation = 99');
  expect(await at.semel.outbox.drain()).toMatchObject({ inDoubt: 1 });
  expect(at.rows()[0]?.reason).toMatch(/its record is gone/);
  expect(sent).toEqual([]);
});

test('the number of a row is never used again: a slow relay must not remove another intent', async () => {
  await using at = await open(nodeSqlite);
  const { tool } = mailer(at.semel);
  await transaction(at.database, (tx) => tool.stage(tx, { to: 'ada' }));
  const [first] = at.rows();
  await at.semel.outbox.drain();
  await transaction(at.database, (tx) => tool.stage(tx, { to: 'bob' }));
  await at.store.outbox?.remove(Number(first?.n));
  expect(at.rows()).toHaveLength(1);
});

test('a staged intent that was changed on disk is in doubt, and not delivered', async () => {
  await using at = await open(nodeSqlite);
  const { tool, sent } = mailer(at.semel);
  await transaction(at.database, async (tx) => {
    for (const to of ['ada', 'bob']) await tool.stage(tx, { to });
  });
  at.database.exec("UPDATE outbox SET call = replace(call, 'ada', 'eve'), drift = '{'");
  expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 1, inDoubt: 1 });
  expect(sent).toEqual(['bob']);
});

test('an idle relay takes no lock, and wakes soon after a staging in its process', async () => {
  await using at = await open(nodeSqlite);
  const { tool, sent } = mailer(at.semel);
  const stop = new AbortController();
  const relaying = at.semel.outbox.relay({ signal: stop.signal, idle: '1h' });
  const warned = vi.fn();
  process.on('warning', warned);
  await transaction(at.database, (tx) => tool.stage(tx, { to: 'ada' }));
  await expect.poll(() => sent).toEqual(['ada']);
  stop.abort();
  expect(await relaying).toMatchObject({ delivered: 1 });
  process.off('warning', warned);
  expect(warned).not.toHaveBeenCalled();
});

test('a ledger with staged intents is not sealed', async () => {
  await using at = await open(nodeSqlite);
  const { tool } = mailer(at.semel);
  await transaction(at.database, (tx) => tool.stage(tx, { to: 'ada' }));
  await expect(at.store.raw?.seal('postgres://elsewhere')).rejects.toThrow(
    /staged intents.*Deliver them first/s,
  );
  await at.semel.outbox.drain();
  await at.store.raw?.seal('postgres://elsewhere');
  await expect(transaction(at.database, (tx) => tool.stage(tx, { to: 'bob' }))).rejects.toMatchObject({
    code: 'STORE_MOVED',
  });
});

test('a store without transactions says which ones have them', async () => {
  await using semel = createSemel({ store: 'memory:', namespace: 'shop' });
  const { tool } = mailer(semel);
  await expect(tool.stage({}, { to: 'ada' })).rejects.toThrow(/SQLite or Postgres store/);
  await expect(semel.outbox.drain()).rejects.toThrow(/SQLite or Postgres store/);
});

test('`semel outbox` lists and decides on a SQLite ledger', async () => {
  await using at = await open(nodeSqlite);
  const { tool } = mailer(at.semel, () => {
    throw new Rejected('no such address');
  });
  await transaction(at.database, (tx) => tool.stage(tx, { to: 'ada' }));
  await at.semel.outbox.drain();
  const cli = cliPlace();
  const run = (...args: string[]) => cli.semel(...args, '--store', `sqlite:${at.path}`);
  expect((await run('outbox', 'dead')).stdout).toMatch(/^1 {2}shop {2}mail .*dead .*no such address/);
  expect((await run('outbox', 'retry', '1')).code).toBe(0);
  expect(at.rows()).toMatchObject([{ state: 0, tries: 0 }]);
  expect((await run('outbox', 'drop', '1', '--yes')).code).toBe(0);
  expect(at.rows()).toEqual([]);
});
