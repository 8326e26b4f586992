// The tables as they are, how an older file gets there, and what they cost.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { migrate, migrations, schemaVersion } from '../../src/stores/sqlite/schema.ts';
import { lose, take } from '../../src/testing/store-contract/attempt.ts';
import { newPath } from './sqlite-folder.ts';

const description = { incarnation: 'i', anchor: { boot: 'b', wall: 1, uptime: 2, seen: 3 } };

function schemaOf(database: DatabaseSync): string {
  const rows = database
    .prepare("SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY type DESC, name")
    .all();
  const version = database.prepare('PRAGMA user_version').get();
  return [
    `-- What migrations 1 to ${version?.user_version} make of an empty file. Written by UPDATE=1 npx vitest run sqlite-schema.`,
    ...rows.map(({ sql }) => `${sql};`),
    '',
  ].join('\n\n');
}

const single = (database: DatabaseSync, sql: string) => Object.values(database.prepare(sql).get() ?? {})[0];

test('the schema is the one that was reviewed', () => {
  const snapshot = join(import.meta.dirname, 'schema.sql');
  const database = new DatabaseSync(newPath());
  migrate(database, 'ledger.db', description);
  const schema = schemaOf(database);
  if (process.env.UPDATE !== undefined) writeFileSync(snapshot, schema);
  expect(schema).toBe(readFileSync(snapshot, 'utf8'));
  database.close();
});

test('a file of an earlier schema is migrated, and keeps what it knew', () => {
  const database = new DatabaseSync(newPath());
  const [first = []] = migrations;
  migrate(database, 'ledger.db', description, [first]);
  database.exec("INSERT INTO scopes (namespace, contract, sum) VALUES ('shop', 'mail.send/', 7)");
  const second = ['CREATE TABLE notes (text TEXT) STRICT', 'ALTER TABLE scopes ADD COLUMN since INTEGER'];
  migrate(database, 'ledger.db', { ...description, incarnation: 'other' }, [first, second]);
  expect(single(database, 'PRAGMA user_version')).toBe(2);
  expect(single(database, 'SELECT schema FROM meta')).toBe(2);
  expect(single(database, 'SELECT incarnation FROM meta')).toBe('i');
  expect(database.prepare('SELECT * FROM scopes').all()).toEqual([
    { id: 1, namespace: 'shop', contract: 'mail.send/', sum: 7, since: null },
  ]);
  expect(single(database, 'SELECT count(*) FROM notes')).toBe(0);
  database.close();
});

test('the store migrates what it opens', async () => {
  const path = newPath();
  const database = new DatabaseSync(path);
  migrate(database, path, description);
  database.close();
  const store = sqliteStore({ path });
  await take(store);
  await lose(store);
  await store.close();
});

test('a migration that fails or dies in the middle has not begun', () => {
  const database = new DatabaseSync(newPath());
  const [first = []] = migrations;
  for (let length = 0; length < first.length; length += 1) {
    const broken = [...first.slice(0, length), 'CREATE TABLE broken ('];
    expect(() => migrate(database, 'ledger.db', description, [broken])).toThrow(/incomplete input|syntax/);
    expect(single(database, 'SELECT count(*) FROM sqlite_schema')).toBe(0);
    expect(single(database, 'PRAGMA user_version')).toBe(0);
    expect(database.isTransaction).toBe(false);
  }
  migrate(database, 'ledger.db', description);
  expect(single(database, 'PRAGMA user_version')).toBe(schemaVersion);
  database.close();
});

test('a ledger of a newer semel is refused and left alone', async () => {
  const path = newPath();
  const database = new DatabaseSync(path);
  migrate(database, path, description, [...migrations, ['CREATE TABLE later (id INTEGER)']]);
  database.close();
  const before = readFileSync(path);
  const store = sqliteStore({ path });
  await expect(store.open()).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
  await expect(store.open()).rejects.toThrow(
    `has schema ${schemaVersion + 1}; this version of semel supports up to ${schemaVersion}. Nothing was changed. Upgrade semel`,
  );
  await store.close();
  expect(readFileSync(path).equals(before)).toBe(true);
});

test('two processes that open a new ledger at once make it once', async () => {
  const path = newPath();
  const stores = Array.from({ length: 8 }, () => sqliteStore({ path }));
  await Promise.all(stores.map((store) => store.open()));
  await take(stores[0] as (typeof stores)[0]);
  for (const store of stores) await lose(store);
  await Promise.all(stores.map((store) => store.close()));
});
