// A store on a client that is inside its owner's transaction: a rollback would undo the record and not the effect.

import Database from 'better-sqlite3';
import pg from 'pg';
import postgres from 'postgres';
import { createSemel, type SemelError } from 'semel';
import { postgresStore } from 'semel/postgres';
import { sqliteStore } from 'semel/sqlite';
import { describe, expect, test } from 'vitest';
import { ownSchema } from '../servers/own-place.ts';
import { newPath } from './sqlite-folder.ts';

const unsafe = { code: 'STORE_UNSAFE', retriable: false };

describe('Postgres', () => {
  test('begin, once, rollback: the call is refused before the effect runs, and the message says why', async () => {
    const { url, schema } = await ownSchema();
    const client = await connected(url);
    const semel = createSemel({ store: postgresStore({ client, schema }), namespace: 'shop' });
    let sent = 0;
    await client.query('BEGIN');
    const refusal: SemelError = await semel
      .once('mail.send', { to: 'ada' }, async () => ++sent)
      .then(
        () => expect.unreachable(),
        (error) => error,
      );
    await client.query('ROLLBACK');
    expect(sent).toBe(0);
    expect(refusal).toMatchObject(unsafe);
    expect(refusal.message).toMatch(
      /inside a transaction.*rollback would erase the record.*`tool.inTransaction/s,
    );
    expect(await semel.once('mail.send', { to: 'ada' }, async () => ++sent)).toBe(1);
    await semel.close();
    await client.end();
  });

  test('a transaction that starts after the store was opened is refused too, through any wrapper', async () => {
    const { url, schema } = await ownSchema();
    const client = await connected(url);
    const wrapper = { query: (text: string, values?: unknown[]) => client.query(text, values) };
    const semel = createSemel({ store: postgresStore({ client: wrapper, schema }), namespace: 'shop' });
    let sent = 0;
    await semel.once('mail.send', { to: 'ada' }, async () => ++sent);
    await client.query('BEGIN');
    await expect(semel.once('mail.send', { to: 'bob' }, async () => ++sent)).rejects.toMatchObject(unsafe);
    // The transaction is aborted by now: that is the same mistake, not an outage.
    await expect(semel.once('mail.send', { to: 'eve' }, async () => ++sent)).rejects.toMatchObject(unsafe);
    await client.query('ROLLBACK');
    expect(sent).toBe(1);
    await semel.close();
    await client.end();
  });

  test('a driver that shows its transaction is refused without aborting the work in it', async () => {
    const { url, schema } = await ownSchema();
    const client = await connected(url);
    const semel = createSemel({ store: postgresStore({ client, schema }), namespace: 'shop' });
    await client.query('BEGIN');
    await client.query(`CREATE TABLE ${schema}.orders AS SELECT 7 AS id`);
    await expect(semel.once('mail.send', { to: 'ada' }, async () => 1)).rejects.toMatchObject(unsafe);
    await client.query('COMMIT');
    expect((await client.query(`SELECT id FROM ${schema}.orders`)).rows).toEqual([{ id: 7 }]);
    await semel.close();
    await client.end();
  });

  test('a pool whose connection was given back inside a transaction does not lose a record', async () => {
    const { url, schema } = await ownSchema();
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    const semel = createSemel({ store: postgresStore({ client: pool, schema }), namespace: 'shop' });
    await semel.open();
    const leaked = await pool.connect();
    await leaked.query('BEGIN');
    leaked.release();
    let sent = 0;
    await expect(semel.once('mail.send', { to: 'ada' }, async () => ++sent)).rejects.toMatchObject(unsafe);
    expect(sent).toBe(0);
    await semel.close();
    await pool.end();
  });

  test('the transaction of postgres.js is refused without aborting the work in it', async () => {
    const { url, schema } = await ownSchema();
    const sql = postgres(url, { max: 1, onnotice: () => {} });
    const rows = await sql.begin(async (transaction) => {
      await transaction.unsafe(`CREATE TABLE ${schema}.orders AS SELECT 7 AS id`);
      const semel = createSemel({ store: postgresStore({ client: transaction, schema }), namespace: 'shop' });
      await expect(semel.once('mail.send', { to: 'ada' }, async () => 1)).rejects.toMatchObject(unsafe);
      await semel.close();
      return transaction.unsafe(`SELECT id FROM ${schema}.orders`);
    });
    expect([...rows]).toEqual([{ id: 7 }]);
    await sql.end();
  });
});

describe('SQLite', () => {
  test.each(['open', 'opened before'])('a handle inside a transaction (%s) is refused', async (when) => {
    const database = new Database(newPath());
    const semel = createSemel({ store: sqliteStore({ database, busyMs: 50 }), namespace: 'shop' });
    if (when === 'opened before') await semel.open();
    let sent = 0;
    database.exec('BEGIN');
    const refusal: SemelError = await semel
      .once('mail.send', { to: 'ada' }, async () => ++sent)
      .then(
        () => expect.unreachable(),
        (error) => error,
      );
    expect(refusal).toMatchObject(unsafe);
    expect(refusal.message).toMatch(
      /inside a transaction.*rollback would erase the record.*`tool.inTransaction/s,
    );
    database.exec('ROLLBACK');
    expect(sent).toBe(0);
    expect(await semel.once('mail.send', { to: 'ada' }, async () => ++sent)).toBe(1);
    await semel.close();
    database.close();
  });
});

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}
