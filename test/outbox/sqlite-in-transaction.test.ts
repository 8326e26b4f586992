// An effect in the user's own tables and its record, in one file: they commit with the caller's SQLite transaction, or not at all.

import { copyFileSync, existsSync, renameSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import Database from 'better-sqlite3';
import { afterAll, describe, expect, test } from 'vitest';
import { createSemel, NotLanded, Rejected, type SemelError } from '../../src/index.ts';
import { type SqliteLike, sqliteStore } from '../../src/stores/sqlite/index.ts';
import { newPath } from '../stores/sqlite-folder.ts';
import { closeStoreHandles, libraries, rowsOf, shop, transaction } from './sqlite-place.ts';

afterAll(closeStoreHandles);

const refusal = (calling: Promise<unknown>): Promise<SemelError> =>
  calling.then(
    () => expect.unreachable(),
    (error) => error,
  );

describe.each(libraries)('$name', (library) => {
  const open = (path = newPath()) => shop(library, path);

  test('effect and record commit together, and a second transaction replays', async () => {
    const path = newPath();
    await using at = await open(path);
    const place = at.define();
    const order = { id: 'a', cents: 5 };
    const first = await transaction(at.database, (tx) => place.inTransaction.try(tx, order));
    expect(first).toMatchObject({ value: 'placed', receipt: { executed: true, uncommitted: true } });
    const second = await transaction(at.database, (tx) => place.inTransaction.try(tx, order));
    expect(second).toMatchObject({ value: 'placed', receipt: { executed: false, replayed: true } });
    // An ordinary call knows it too, and another process.
    expect(await place(order)).toBe('placed');
    const store = library.store(path);
    expect(await store.list({ namespace: 'shop', limit: 9 })).toMatchObject({
      items: [{ status: 'succeeded' }],
    });
    expect(await store.verify()).toEqual([]);
    await store.close();
    expect(at.cents('a')).toEqual([5]);
  });

  test.each(['observe', 'off'] as const)('with mode %s, it throws what its effect threw', async (mode) => {
    await using at = await shop(library, newPath(), 'shop', { mode });
    const thrown = new Error('out of stock');
    const place = at.define(() => {
      throw thrown;
    });
    const placing = transaction(at.database, (tx) => place.inTransaction(tx, { id: 'm', cents: 1 }));
    await expect(placing).rejects.toBe(thrown);
    expect(at.cents('m')).toEqual([]);
  });

  test.each([NotLanded, Rejected])(
    'its %o says nothing about the effect around the transaction',
    async (Word) => {
      await using at = await open();
      const sent: string[] = [];
      const place = at.define(() => {
        throw new Word('out of stock');
      });
      const mail = at.semel.tool({
        ...{ name: 'mail', effect: 'irreversible', per: 'ever' },
        async run(order: { id: string; cents: number }) {
          sent.push(order.id);
          await transaction(at.database, (tx) => place.inTransaction(tx, order));
        },
      });
      for (const _ of [1, 2]) expect((await refusal(mail({ id: 'w', cents: 1 }))).code).toBe('IN_DOUBT');
      expect(sent).toEqual(['w']);
      expect(at.cents('w')).toEqual([]);
    },
  );

  test.each(['ROLLBACK', 'ROLLBACK TO mine'])('%s leaves neither effect nor record', async (undo) => {
    await using at = await open();
    const place = at.define();
    at.database.exec('BEGIN');
    at.insert(at.database, { id: 'kept', cents: 1 });
    at.database.exec('SAVEPOINT mine');
    await place.inTransaction(at.database, { id: 'b', cents: 1 });
    at.database.exec(undo);
    if (undo !== 'ROLLBACK') {
      // The same transaction goes on, and may call again.
      expect(at.records()).toBe(0);
      await place.inTransaction(at.database, { id: 'c', cents: 1 });
      at.database.exec('COMMIT');
    }
    expect(at.cents('b')).toEqual([]);
    expect(at.cents('kept')).toEqual(undo === 'ROLLBACK' ? [] : [1]);
    expect(
      await transaction(at.database, (tx) => place.inTransaction.try(tx, { id: 'b', cents: 2 })),
    ).toMatchObject({ receipt: { executed: true } });
    expect(at.cents('b')).toEqual([2]);
  });

  test('what `run` throws comes out as it is, and nothing of it stays if the caller commits', async () => {
    await using at = await open();
    const broken = new Error('the template is broken');
    const failing = at.define(() => {
      throw broken;
    });
    await transaction(at.database, async (tx) => {
      at.insert(tx, { id: 'before', cents: 1 });
      expect(await refusal(failing.inTransaction(tx, { id: 'c', cents: 1 }))).toBe(broken);
      // A statement that SQLite refuses does not spoil the transaction either.
      await expect(failing.inTransaction(tx, { id: 'd', cents: 0 })).rejects.toThrow(/CHECK/);
      at.insert(tx, { id: 'after', cents: 1 });
    });
    expect(rowsOf(at.database, 'SELECT id FROM orders')).toEqual([{ id: 'before' }, { id: 'after' }]);
    expect(at.records()).toBe(0);
  });

  test('several calls in one transaction count as one write, so that no write seems lost after a crash', async () => {
    const path = newPath();
    await using at = await open(path);
    const place = at.define();
    const writes = () => Number(rowsOf(at.database, 'SELECT writes FROM meta')[0]?.writes);
    const before = writes();
    await transaction(at.database, async (tx) => {
      for (let n = 0; n < 5; n += 1) await place.inTransaction(tx, { id: String(n), cents: 1 });
    });
    expect(writes()).toBe(before + 1);
    // As a killed process leaves them.
    const copy = newPath();
    for (const side of ['', '-wal', '.id']) copyFileSync(path + side, copy + side);
    const store = sqliteStore({ path: copy });
    expect(await store.verify()).toEqual([]);
    await store.close();
  });

  test('a log that is lost with a committed transaction is noticed', async () => {
    const path = newPath();
    await using at = await open(path);
    const place = at.define();
    await transaction(at.database, (tx) => place.inTransaction(tx, { id: 'a', cents: 1 }));
    // The next write of any process notes the count.
    await at.semel.once('other', { n: 1 }, () => 1);
    const copy = newPath();
    for (const side of ['', '.id']) copyFileSync(path + side, copy + side);
    await expect(sqliteStore({ path: copy }).open()).rejects.toThrow(/lacks its last/);
  });

  test('ordinary calls wait while the transaction is open, and the event loop does not', async () => {
    await using at = await open();
    const place = at.define();
    at.database.exec('BEGIN');
    await place.inTransaction(at.database, { id: 'a', cents: 1 });
    let isAnswered = false;
    const meanwhile = at.semel
      .once('other', { n: 1 }, () => 1)
      .finally(() => {
        isAnswered = true;
      });
    const same = place({ id: 'a', cents: 1 });
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(isAnswered).toBe(false);
    at.database.exec('COMMIT');
    expect(await meanwhile).toBe(1);
    expect(await same).toBe('placed');
    expect(at.cents('a')).toEqual([1]);
  });

  test('a call that waits for the lock longer than allowed is STORE_UNAVAILABLE, with what to do', async () => {
    const path = newPath();
    await using at = await open(path);
    const store = sqliteStore(
      library.name === 'node:sqlite'
        ? { path, busyMs: 50 }
        : { database: new Database(path) as SqliteLike, busyMs: 50 },
    );
    const other = createSemel({ store, namespace: 'shop', prune: false });
    await other.open();
    at.database.exec('BEGIN IMMEDIATE');
    const error = await refusal(other.once('other', { n: 1 }, () => 1));
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(error.message).toMatch(/a transaction of this one.*use `tool.inTransaction`/s);
    at.database.exec('ROLLBACK');
    await other.close();
  });

  test('eight deferred transactions at once with one key: one runs, and the others replay', async () => {
    const path = newPath();
    await using at = await open(path);
    const place = at.define();
    const handles = Array.from({ length: 8 }, () => library.open(path));
    const results = await Promise.all(
      handles.map((handle) =>
        transaction(handle, (tx) => place.inTransaction.try(tx, { id: 'f', cents: 7 }), 'BEGIN'),
      ),
    );
    expect(results.filter(({ receipt }) => receipt.executed)).toHaveLength(1);
    expect(at.cents('f')).toEqual([7]);
    // A handle's own timeout is left as it was.
    expect(Object.values(rowsOf(handles[0]!, 'PRAGMA busy_timeout')[0]!)).toEqual([
      library.name === 'node:sqlite' ? 0 : 5000,
    ]);
    for (const handle of handles) handle.close();
  });

  test('a transaction that has read an older state must begin again', async () => {
    await using at = await open();
    const place = at.define();
    at.database.exec('BEGIN');
    at.cents('x');
    await at.semel.once('other', { n: 1 }, () => 1);
    const error = await refusal(place.inTransaction(at.database, { id: 'a', cents: 1 }));
    expect(error.message).toMatch(/others have written since.*BEGIN IMMEDIATE/s);
    at.database.exec('ROLLBACK');
    await transaction(at.database, (tx) => place.inTransaction(tx, { id: 'a', cents: 1 }));
  });

  test('the rules of every call hold: in doubt, in flight, conflict', async () => {
    await using at = await open();
    let finish = (): void => {};
    const gate = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let started = (): void => {};
    const running = new Promise<void>((resolve) => {
      started = resolve;
    });
    const pay = at.semel.tool({
      name: 'pay',
      effect: 'irreversible',
      per: 'ever',
      identity: ['id'],
      async run({ id }: { id: string }) {
        if (id === 'lost') throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
        if (id === 'slow') {
          started();
          await gate;
        }
        return id;
      },
    });
    await expect(pay({ id: 'lost' })).rejects.toMatchObject({ code: 'IN_DOUBT' });
    const slow = pay({ id: 'slow' });
    await running;
    await pay({ id: '1' }, { key: 'k' });
    await transaction(at.database, async (tx) => {
      const code = async (id: string, options = {}) =>
        (await refusal(pay.inTransaction(tx, { id }, options))).code;
      expect(await code('lost')).toBe('IN_DOUBT');
      expect(await code('slow')).toBe('IN_FLIGHT');
      expect(await code('2', { key: 'k' })).toBe('KEY_CONFLICT');
      at.insert(tx, { id: 'goes on', cents: 1 });
    });
    expect(at.cents('goes on')).toEqual([1]);
    finish();
    expect(await slow).toBe('slow');
  });

  test('calls on one transaction come one after the other, also from inside a run', async () => {
    await using at = await open();
    const inner = at.semel.tool({
      name: 'inner',
      effect: 'write-non-idempotent',
      per: 'ever',
      async run({ n }: { n: number }, ctx) {
        at.insert(ctx.tx, { id: `inner ${n}`, cents: n });
        if (n === 2) throw new Error('two');
        return n;
      },
    });
    const place = at.define((_order, tx) =>
      Promise.allSettled([1, 2].map((n) => inner.inTransaction(tx, { n }))).then((all) =>
        all.map(({ status }) => status),
      ),
    );
    const results = await transaction(at.database, (tx) =>
      Promise.all([place.inTransaction(tx, { id: 'a', cents: 1 }), inner.inTransaction(tx, { n: 3 })]),
    );
    expect(results).toEqual([['fulfilled', 'rejected'], 3]);
    expect(rowsOf(at.database, 'SELECT id FROM orders ORDER BY id')).toEqual(
      ['a', 'inner 1', 'inner 3'].map((id) => ({ id })),
    );
  });

  test('nothing uncommitted gets into the cache of the process', async () => {
    await using at = await open();
    let runs = 0;
    const count = at.semel.tool({
      name: 'count',
      effect: 'write-non-idempotent',
      per: 'ever',
      run: async (_args: { n: number }) => ++runs,
    });
    at.database.exec('BEGIN');
    expect(await count.inTransaction(at.database, { n: 1 })).toBe(1);
    at.database.exec('ROLLBACK');
    expect(await count({ n: 1 })).toBe(2);
  });

  test('a handle that returns BigInts is read right', async () => {
    const path = newPath();
    await using at = await open(path);
    const place = at.define();
    const handle =
      library.name === 'node:sqlite'
        ? new DatabaseSync(path, { readBigInts: true })
        : new Database(path).defaultSafeIntegers(true);
    handle.exec('PRAGMA synchronous = FULL');
    for (let n = 0; n < 2; n += 1)
      await transaction(handle as SqliteLike, (tx) => place.inTransaction(tx, { id: 'a', cents: 1 }));
    await transaction(handle as SqliteLike, (tx) => place.stage(tx, { id: 'b', cents: 1 }));
    handle.close();
    expect(at.cents('a')).toEqual([1]);
  });
});

describe.each(libraries)('$name: a handle that cannot commit with the ledger is refused', (library) => {
  const cases: readonly {
    readonly what: string;
    readonly says: RegExp;
    handle(path: string): unknown;
  }[] = [
    {
      what: 'not a handle',
      says: /not a SQLite handle that semel knows/,
      handle: () => ({ query: () => [] }),
    },
    { what: 'nothing', says: /not a SQLite handle that semel knows/, handle: () => undefined },
    {
      what: 'no transaction',
      says: /no open transaction.*BEGIN IMMEDIATE/s,
      handle: (path) => library.open(path),
    },
    {
      what: 'closed',
      says: /is closed|no open transaction/,
      handle(path) {
        const database = library.open(path);
        database.close();
        return database;
      },
    },
    {
      what: 'another file',
      says: /handle is on .*ledger is .*could not commit together.*Keep your tables in the file/s,
      handle: () => begun(library.open(newPath())),
    },
    { what: 'in memory', says: /a database in memory/, handle: () => begun(library.open(':memory:')) },
    {
      what: 'an attached database',
      says: /another database attached \(other\).*after a crash/s,
      handle(path) {
        const database = library.open(path);
        database.exec(`ATTACH '${newPath()}' AS other`);
        return begun(database);
      },
    },
    {
      what: 'read-only',
      says: /handle cannot write/,
      handle: (path) => begun(library.open(path, { readOnly: true })),
    },
    {
      what: 'query_only',
      says: /handle cannot write/,
      handle(path) {
        const database = library.open(path);
        database.exec('PRAGMA query_only = ON');
        return begun(database);
      },
    },
    {
      what: 'synchronous = NORMAL',
      says: /synchronous = 1, not 2 \(FULL\).*before BEGIN/s,
      handle(path) {
        const database = library.open(path);
        database.exec('PRAGMA synchronous = NORMAL');
        return begun(database);
      },
    },
    {
      what: 'a temporary table in the way',
      says: /temporary table, view or trigger \(records\)/,
      handle(path) {
        const database = library.open(path);
        database.exec('CREATE TEMP TABLE records AS SELECT * FROM main.records');
        return begun(database);
      },
    },
    {
      what: 'a temporary trigger on a table of the ledger',
      says: /temporary table, view or trigger \(spy\)/,
      handle(path) {
        const database = library.open(path);
        database.exec('CREATE TEMP TRIGGER spy AFTER INSERT ON main.outbox BEGIN DELETE FROM outbox; END');
        return begun(database);
      },
    },
    {
      what: 'a trigger on a table of the ledger, added since it was opened',
      says: /a trigger that is not semel's \(spy\)/,
      handle(path) {
        const database = library.open(path);
        database.exec('CREATE TRIGGER spy AFTER INSERT ON records BEGIN DELETE FROM records; END');
        return begun(database);
      },
    },
  ];

  test.each(cases)('$what', async ({ says, handle }) => {
    const path = newPath();
    await using at = await shop(library, path);
    const place = at.define();
    const tx = handle(path);
    for (const call of [place.inTransaction, place.stage]) {
      const error = await refusal(call(tx, { id: 'a', cents: 1 }));
      expect(error.message).toMatch(says);
      expect(error.message).toMatch(/Nothing was|Restore/);
    }
    expect(at.cents('a')).toEqual([]);
    expect(at.records()).toBe(0);
  });
});

describe.each(libraries)('$name', (library) => {
  test('a handle on a file that was replaced by a copy of it is refused', async () => {
    const path = newPath();
    const first = await shop(library, path);
    await first.semel.once('other', { n: 1 }, () => 1);
    await first[Symbol.asyncDispose]();
    closeStoreHandles();
    const stale = library.open(path);
    rowsOf(stale, 'SELECT * FROM meta');
    for (const side of ['', '-wal', '-shm'])
      if (existsSync(path + side)) renameSync(path + side, `${path}.old${side}`);
    copyFileSync(`${path}.old`, path);
    await using at = await shop(library, path);
    const error = await refusal(at.define().inTransaction(begun(stale), { id: 'a', cents: 1 }));
    expect(error.message).toMatch(/not on the ledger that is at/);
    expect(at.cents('a')).toEqual([]);
    stale.close();
  });

  test('the handle of the store itself is refused: others would read what is not committed', async () => {
    const database = library.open(newPath());
    const semel = createSemel({ store: database, namespace: 'shop', prune: false });
    const tool = semel.tool({ name: 't', effect: 'write-non-idempotent', per: 'ever', run: async () => 1 });
    await semel.open();
    const error = await refusal(tool.inTransaction(begun(database), {}));
    expect(error.message).toMatch(/the store itself uses.*Open a second handle/s);
    database.exec('ROLLBACK');
    await semel.close();
    database.close();
  });

  test('a handle of the other library is refused', async () => {
    const path = newPath();
    await using at = await shop(library, path);
    const other = libraries.find((each) => each !== library)!.open(path);
    const error = await refusal(at.define().inTransaction(begun(other), { id: 'a', cents: 1 }));
    expect(error.message).toMatch(
      /another SQLite library.*createSemel\(\{ store: new Database\(file\) \}\)/s,
    );
    other.exec('ROLLBACK');
    // Not closed: that would drop the locks of the store.
    kept.push(other);
  });

  test.each([
    ['ATTACH', /attached \(other\)/, (tx: SqliteLike) => tx.exec(`ATTACH '${newPath()}' AS other`)],
    ['COMMIT', /The transaction ended while the call was running/, (tx: SqliteLike) => tx.exec('COMMIT')],
    ['ROLLBACK', /The transaction ended while the call was running/, (tx: SqliteLike) => tx.exec('ROLLBACK')],
  ])('%s inside `run` is refused, and nothing is reported as done', async (_what, says, act) => {
    await using at = await shop(library, newPath());
    const place = at.define((_order, tx) => void act(tx));
    at.database.exec('BEGIN');
    const error = await refusal(place.inTransaction(at.database, { id: 'a', cents: 1 }));
    expect(error.message).toMatch(says);
    expect(rowsOf(at.database, 'SELECT id FROM records WHERE status = 1')).toEqual([]);
  });

  test.each(['ROLLBACK', 'COMMIT'])(
    '%s and BEGIN inside `run` is noticed: a success is not reported to what an earlier attempt left',
    async (end) => {
      await using at = await shop(library, newPath());
      let isClosed = true;
      const place = at.semel.tool({
        name: 'order.place',
        effect: 'write-non-idempotent',
        per: 'ever',
        identity: ['id'],
        run(order: { id: string; cents: number }, ctx) {
          if (isClosed) throw new NotLanded('the shop is closed');
          at.insert(ctx.tx, order);
          at.database.exec(`${end}; BEGIN`);
        },
      });
      const order = { id: 'a', cents: 1 };
      await place.try(order);
      isClosed = false;
      at.database.exec('BEGIN');
      const error = await refusal(place.inTransaction(at.database, order));
      expect(error.message).toMatch(/ended its caller's transaction/);
      at.database.exec('COMMIT');
      expect(rowsOf(at.database, 'SELECT id FROM records WHERE status = 1')).toEqual([]);
      expect(at.cents('a')).toEqual(end === 'COMMIT' ? [1] : []);
    },
  );

  test.each([
    'VACUUM',
    'PRAGMA wal_checkpoint(TRUNCATE)',
    'DROP TABLE orders; CREATE TABLE orders (id, cents)',
  ])('what you do to your own tables does the ledger no harm: %s', async (sql) => {
    const path = newPath();
    await using at = await shop(library, path);
    const place = at.define();
    const call = (id: string) => transaction(at.database, (tx) => place.inTransaction(tx, { id, cents: 1 }));
    await call('a');
    at.database.exec(sql);
    await call('b');
    await at.semel.once('other', { n: 1 }, () => 1);
    for (let n = 0; n < 500; n += 1) at.insert(at.database, { id: 'many', cents: 1 });
    at.database.exec(sql);
    await call('c');
    const again = library.store(path);
    expect(await again.verify()).toEqual([]);
    await again.close();
    expect(at.records()).toBe(4);
  });

  test('a row that breaks a constraint of your own table is not damage of the ledger', async () => {
    const path = newPath();
    await using at = await shop(library, path);
    at.database.exec(
      'PRAGMA ignore_check_constraints = ON; INSERT INTO orders VALUES (1, -1); PRAGMA ignore_check_constraints = OFF',
    );
    expect(rowsOf(at.database, 'PRAGMA integrity_check')).not.toEqual([{ integrity_check: 'ok' }]);
    const again = library.store(path);
    expect(await again.verify()).toEqual([]);
    await again.close();
  });

  test('a trigger on your own table is fine', async () => {
    const path = newPath();
    await using at = await shop(library, path);
    at.database.exec(`CREATE TABLE log (id TEXT);
      CREATE TRIGGER logged AFTER INSERT ON orders BEGIN INSERT INTO log VALUES (new.id); END`);
    await transaction(at.database, (tx) => at.define().inTransaction(tx, { id: 'a', cents: 1 }));
    expect(rowsOf(at.database, 'SELECT id FROM log')).toEqual([{ id: 'a' }]);
    const again = library.store(path);
    await again.open();
    await again.close();
  });
});

const kept: unknown[] = [];

function begun(database: SqliteLike): SqliteLike {
  database.exec('BEGIN');
  return database;
}
