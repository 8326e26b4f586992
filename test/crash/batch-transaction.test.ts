// A batch whose items commit with their records, killed in the middle: data and records never differ, and each row is there once.

import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { createSemel } from '../../src/index.ts';
import { places } from '../outbox/places.ts';
import { transaction } from '../outbox/sqlite-place.ts';
import { startNode } from '../processes/node-process.ts';
import { ownSchema } from '../servers/own-place.ts';
import { newPath } from '../stores/sqlite-folder.ts';
import { points, type RowsJob, type RowsLine } from './batch-transaction-worker.ts';

const worker = new URL('batch-transaction-worker.ts', import.meta.url);
const items = 20;

async function openSqlite() {
  const path = newPath();
  const read = (sql: string) => {
    const handle = new DatabaseSync(path);
    try {
      return handle.prepare(sql).all() as { id: number }[];
    } finally {
      handle.close();
    }
  };
  // semel has to create the file.
  const semel = createSemel({ store: `sqlite:${path}`, namespace: 'rows' });
  await semel.open();
  await semel.close();
  const handle = new DatabaseSync(path);
  handle.exec('CREATE TABLE rows (id INTEGER)');
  handle.close();
  return {
    database: { path },
    read: async (sql: string) => read(sql.replaceAll('SCHEMA', '')),
    end: () => {},
  };
}

async function openPostgres() {
  const { url, schema } = await ownSchema();
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  await pool.query(`CREATE TABLE ${schema}.rows (id integer)`);
  const read = async (sql: string) => (await pool.query(sql.replaceAll('SCHEMA', `${schema}.`))).rows;
  return { database: { url, schema }, read, end: () => pool.end() };
}

describe.each([
  ['SQLite', openSqlite],
  ['Postgres', openPostgres],
] as const)('on %s', (_, open) => {
  test.each(points)('a batch that is killed %s has a record for each row and no other', async (dieAt) => {
    const { database, read, end } = await open();
    const job: RowsJob = { database, items };
    const first = startNode<RowsLine>(worker, { ...job, dieAt });
    expect(await first.ended, first.errors() + JSON.stringify(first.lines)).toMatchObject({
      signal: 'SIGKILL',
    });
    // In one statement: a COMMIT that was sent before the kill may still be under way.
    const counts =
      '(SELECT count(*) FROM SCHEMArows) AS rows, (SELECT count(*) FROM SCHEMArecords) AS records';
    const [before] = (await read(`SELECT ${counts}`)) as unknown as [{ rows: number; records: number }];
    const landed = Number(before.rows);
    expect(landed).toBeGreaterThan(0);
    expect(landed).toBeLessThan(items);
    expect(Number(before.records)).toBe(landed);

    const second = startNode<RowsLine>(worker, job);
    const report = await second.line((line) => 'ok' in line);
    expect(report).toMatchObject({ ok: true, done: items });
    expect(report.executed).toBeGreaterThan(0);
    expect(report.executed).toBeLessThanOrEqual(items - landed);
    const rows = (await read('SELECT id FROM SCHEMArows')).map(({ id }) => id).sort((a, b) => a - b);
    expect(rows).toEqual(Array.from({ length: items }, (_each, id) => id));
    await second.ended;
    await end();
  });
});

describe.each(places)('with a transaction on $name', ({ open }) => {
  const range = (count: number) => Array.from({ length: count }, (_, id) => ({ id }));

  test('an item that fails is rolled back, the others land, and the next start does only that one', async () => {
    await using place = await open();
    let isFixed = false;
    const start = () =>
      place.semel.batch(
        'row',
        range(5),
        { concurrency: 1, transaction: (work) => place.transaction(work) },
        ({ id }, ctx) => {
          expect(ctx.tx).toBeDefined();
          if (id === 3 && !isFixed) throw new Error('no address');
        },
      );
    const first = await start();
    expect(first).toMatchObject({ done: 4, executed: 4, failed: 1, inDoubt: 0 });
    expect(first.problems).toMatchObject([{ is: 'failed', index: 3, error: { code: 'NOT_LANDED' } }]);
    isFixed = true;
    expect(await start()).toMatchObject({ ok: true, done: 5, executed: 1 });
  });

  test('a tool does the same with its own contract', async () => {
    await using place = await open();
    const tool = place.semel.tool({
      name: 'row',
      effect: 'irreversible',
      per: 'ever',
      run: ({ id }: { id: number }, ctx) => (ctx.tx === undefined ? -1 : id),
    });
    const values: (number | undefined)[] = [];
    const report = await tool.each(range(3), {
      concurrency: 1,
      transaction: (work) => place.transaction(work),
      onItem: (outcome) => void values.push(outcome.is === 'done' ? outcome.value : undefined),
    });
    expect(report).toMatchObject({ ok: true, executed: 3 });
    expect(values).toEqual([0, 1, 2]);
    expect(await tool({ id: 1 })).toBe(1);
  });

  test('an item whose commit got no answer is in doubt, stops nothing, and the next start finds out', async () => {
    await using place = await open();
    let commits = 0;
    const start = () =>
      place.semel.batch(
        'row',
        range(3),
        {
          concurrency: 1,
          async transaction(work) {
            const value = await place.transaction(work);
            commits += 1;
            if (commits === 2) throw new Error('Connection terminated unexpectedly');
            return value;
          },
        },
        () => undefined,
      );
    const first = await start();
    expect(first).toMatchObject({ done: 2, inDoubt: 1, skipped: 0, stopped: undefined });
    expect(first.problems[0]?.error?.message).toContain('It may have committed');
    expect(await start()).toMatchObject({ ok: true, done: 3, executed: 0 });
  });

  test('while no transaction can be opened, nothing runs and the batch stops', async () => {
    await using place = await open();
    let runs = 0;
    const transaction = async (): Promise<never> => {
      throw new Error('connection refused');
    };
    const report = await place.semel.batch('row', range(3), { concurrency: 1, transaction }, () => ++runs);
    expect(report).toMatchObject({ done: 0, skipped: 1, inDoubt: 0 });
    expect(report.stopped).toContain('before anything ran in it');
    expect(runs).toBe(0);
  });

  test('a `transaction` that is not a function is refused', async () => {
    await using place = await open();
    const options = { transaction: {} as never };
    await expect(place.semel.batch('row', range(1), options, () => 1)).rejects.toMatchObject({
      code: 'INVALID_ARGS',
      path: 'transaction',
    });
  });
});

test('a SQLite ledger is opened before the first transaction, which would lock it', async () => {
  const { database } = await openSqlite();
  const handle = new DatabaseSync(database.path);
  await using semel = createSemel({ store: `sqlite:${database.path}`, namespace: 'rows' });
  const report = await semel.batch(
    'row',
    [{ id: 1 }],
    { concurrency: 1, transaction: (work) => transaction(handle, work) },
    () => undefined,
  );
  expect(report).toMatchObject({ ok: true, executed: 1 });
  handle.close();
});
