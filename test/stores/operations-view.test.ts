// The view that people read in an SQL shell says what the library says, in both SQL stores.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { createSemel } from 'semel';
import { expect, onTestFinished, test } from 'vitest';
import { place } from '../cli/place.ts';
import { ownSchema } from '../servers/own-place.ts';

interface Shell {
  readonly store: string;
  readonly view: string;
  read(sql: string): Promise<readonly Record<string, unknown>[]>;
}

async function sqlite(): Promise<Shell> {
  const path = place().path('ledger.db');
  const read = async (sql: string) => {
    using database = new DatabaseSync(path, { readOnly: true });
    return database.prepare(sql).all();
  };
  return { store: `sqlite:${path}`, view: 'operations', read };
}

async function postgres(): Promise<Shell> {
  const { url, schema } = await ownSchema();
  const client = new pg.Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  const read = async (sql: string) => (await client.query(sql)).rows;
  const store = `${url}?schema=${schema}&durability=accept-loss`;
  return { store, view: `${schema}.operations`, read };
}

test.each([
  ['SQLite', sqlite],
  ['Postgres', postgres],
])('in %s, the view shows what succeeded, what is in doubt and what runs', async (_, open) => {
  const { store, view, read } = await open();
  const semel = createSemel({ store, namespace: 'shop', onWarning: () => undefined });
  await semel.once('mail', { to: 'a' }, () => ({ id: 1 }));
  const lost = new Error('socket hang up');
  await expect(semel.once('mail', { to: 'b' }, () => Promise.reject(lost))).rejects.toMatchObject({
    code: 'IN_DOUBT',
  });
  let isRead!: () => void;
  const reading = new Promise<void>((resolve) => {
    isRead = resolve;
  });
  let started!: () => void;
  const starting = new Promise<void>((resolve) => {
    started = resolve;
  });
  const running = semel.once('mail', { to: 'c' }, async () => {
    started();
    await reading;
  });
  await starting;
  try {
    // SQLite writes instants as UTC texts, Postgres as timestamps.
    const sql = `SELECT status, attempts, args, result, error, key LIKE 'mail/%' AS is_mail, namespace,
      locked_until > created_at AS is_locked, settled_at >= created_at AS is_settled, expires_at > created_at AS expires
      FROM ${view} ORDER BY args`;
    const yes = store.startsWith('sqlite:') ? 1 : true;
    const all = { attempts: 1, is_mail: yes, namespace: 'shop', result: null, error: null };
    const none = { is_locked: null, is_settled: null, expires: null };
    expect((await read(sql)).map((row) => ({ ...row }))).toEqual([
      {
        ...all,
        ...none,
        status: 'succeeded',
        args: '{"to":"a"}',
        result: '{"id":1}',
        is_settled: yes,
        expires: yes,
      },
      { ...all, ...none, status: 'unknown', args: '{"to":"b"}', error: 'socket hang up', is_settled: yes },
      { ...all, ...none, status: 'running', args: '{"to":"c"}', is_locked: yes },
    ]);
  } finally {
    isRead();
    await running;
    await semel.close();
  }
});

test.each([
  ['SQLite', sqlite],
  ['Postgres', postgres],
])('in %s, no text in an error hides the other records', async (_, open) => {
  const { store, view, read } = await open();
  const semel = createSemel({ store, namespace: 'shop', onWarning: () => undefined });
  const texts = [
    'NUL \0',
    'half a pair \ud800',
    '\\u0000',
    '\\\\u0000 "x"',
    'caf\u00e9 \u{1f600}',
    'C:\\users',
  ];
  for (const [n, text] of texts.entries())
    await expect(semel.once('mail', n, () => Promise.reject(new Error(text)))).rejects.toThrow();
  await semel.close();
  const rows = await read(`SELECT attempts, status, error FROM ${view} ORDER BY created_at, error`);
  expect(rows).toHaveLength(texts.length);
  const errors = rows.map(({ error }) => error);
  for (const text of texts.slice(2)) expect(errors).toContain(text);
});

test.each([
  ['SQLite', sqlite],
  ['Postgres', postgres],
])('in %s, the view shows of a guarded command the ids that the user gave', async (_, open) => {
  const { store, view, read } = await open();
  const drivers = join(import.meta.dirname, '../..');
  const at = place({ SEMEL_STORE: store, SEMEL_DRIVERS: drivers });
  expect((await at.semel('once', 'mail', '--id', 'lead=42', '--', 'true')).code).toBe(0);
  expect(await read(`SELECT args FROM ${view}`)).toEqual([{ args: '{"lead":"42"}' }]);
});

test('the queries of the page run in Postgres', async () => {
  const { store, view, read } = await postgres();
  const semel = createSemel({ store, namespace: 'shop', onWarning: () => undefined });
  await semel.once('mail', { to: 'a' }, () => 1);
  await semel.close();
  const page = readFileSync(join(import.meta.dirname, '../../docs/operate/stores.md'), 'utf8');
  const queries =
    /```sql\n([\s\S]*?)```/
      .exec(page)?.[1]
      ?.split(/;\n/)
      .filter((text) => text.trim() !== '') ?? [];
  expect(queries).toHaveLength(3);
  const found = [];
  for (const query of queries) found.push(await read(query.replace('semel.operations', view)));
  expect(found).toEqual([[], [], [{ tool: 'mail', status: 'succeeded', count: '1', max: 1 }]]);
});
