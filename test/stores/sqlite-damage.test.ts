// A ledger whose content was damaged: what was changed is noticed when it is read, one damaged record does not stop the
// others, and a process that has heard of damage to the whole runs nothing more.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { createSemel, type Semel } from '../../src/index.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { claimRequest, take } from '../../src/testing/store-contract/attempt.ts';
import { newPathInMemory } from './sqlite-folder.ts';

const keyOf = (nth: number) => `mail.send/=${nth}`;
const count = 40;

/** Forty records that say which they are; and one that runs. */
async function usedLedger(): Promise<string> {
  const path = newPathInMemory();
  const store = sqliteStore({ path });
  for (let nth = 0; nth < count; nth += 1)
    await (await take(store, { key: keyOf(nth) })).succeed(`"the value of ${nth}"`);
  await take(store, { key: 'mail.send/=running' });
  await store.close();
  return path;
}

function change(path: string, sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

/**
 * Unlike ALTER TABLE, leaves the text of the schema as it is: what is renamed back is as it was. In a process of its own, since
 * two SQLite libraries in one drop each other's locks.
 */
function rename(path: string, table: string, to: string): void {
  const program = `
    const database = require('better-sqlite3')(process.argv[1]).unsafeMode();
    database.pragma('writable_schema = ON');
    const version = database.pragma('schema_version', { simple: true });
    database.exec("UPDATE sqlite_schema SET name = '${to}' WHERE type = 'table' AND name = '${table}'");
    database.pragma('schema_version = ' + (version + 1));
    database.close();`;
  execFileSync(process.execPath, ['-e', program, path], { cwd: import.meta.dirname });
}

/** Large enough that opening does not look through it. */
function grow(path: string): void {
  change(path, 'CREATE TABLE ballast AS SELECT zeroblob(1100000) AS room');
}

/** In the file, as a disk would. */
function overwrite(path: string, from: string, to: string): void {
  const bytes = readFileSync(path);
  // A page that was rearranged may hold an earlier copy too.
  for (let at = bytes.indexOf(from); at >= 0; at = bytes.indexOf(from, at + 1)) bytes.write(to, at);
  writeFileSync(path, bytes);
}

const codeOf = (asked: Promise<unknown>) =>
  asked.then(
    () => 'answered',
    (error) => `${error.code} ${error.retriable}`,
  );

describe('one damaged record is refused and named, and the others still work:', () => {
  const kinds: [string, (path: string) => void, RegExp][] = [
    [
      'a byte of its result',
      (path) => overwrite(path, 'the value of 7"', 'the value of 8'),
      /checksum is wrong/,
    ],
    ['its status', (path) => change(path, "UPDATE records SET status = 3 WHERE key = '=7'"), /checksum/],
    [
      'its key leads elsewhere',
      (path) =>
        change(path, "DELETE FROM records WHERE key = '=7'; UPDATE records SET key = '=7' WHERE key = '=8'"),
      /checksum/,
    ],
    ['its JSON', (path) => change(path, "UPDATE records SET more = '{' WHERE key = '=7'"), /checksum/],
    [
      'a number that is too large',
      (path) => change(path, "UPDATE records SET created = 9223372036854775807 WHERE key = '=7'"),
      /too large/,
    ],
  ];

  test.each(kinds)('%s', async (_, damage, problem) => {
    const path = await usedLedger();
    grow(path);
    damage(path);
    const store = sqliteStore({ path });
    const claims = [7, 9, 10].map((nth) => codeOf(store.read('shop', keyOf(nth))));
    expect(await Promise.all(claims)).toEqual(['STORE_UNSAFE false', 'answered', 'answered']);
    // In one batch.
    const taken = ['=7', '=new', '=newer'].map((rest) =>
      codeOf(store.claim(claimRequest({ key: `mail.send/${rest}` }))),
    );
    expect(await Promise.all(taken)).toEqual(['STORE_UNSAFE false', 'answered', 'answered']);
    await expect(take(store, { key: keyOf(7) })).rejects.toThrow(/record mail\.send\/=7 of shop is damaged/);
    await expect(take(store, { key: keyOf(7) })).rejects.toThrow(problem);
    expect((await store.verify()).join('\n')).toMatch(/=7 of shop|too large/);
    await store.close();
  });

  test('the circuit stays closed for healthy keys', async () => {
    const path = await usedLedger();
    grow(path);
    change(path, "UPDATE records SET result = '\"x\"' WHERE key = '=7'");
    await using semel = createSemel({ store: `sqlite:${path}`, namespace: 'shop', onWarning: () => {} });
    const call = (nth: number) => semel.once('mail.send', `${nth}`, { key: `${nth}` }, () => 'sent');
    for (let time = 0; time < 6; time += 1) expect(await codeOf(call(7))).toBe('STORE_UNSAFE false');
    expect(await call(1000)).toBe('sent');
  });

  test('lists name it and show the rest, on any page', async () => {
    const path = await usedLedger();
    grow(path);
    change(path, "UPDATE records SET result = '\"x\"' WHERE key IN ('=17', '=3')");
    const said: string[] = [];
    await using semel = createSemel({
      store: `sqlite:${path}`,
      namespace: 'shop',
      onWarning: (sentence) => void said.push(sentence),
    });
    const keys: string[] = [];
    const damaged: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await semel.records.list({ limit: 4, ...(after === undefined ? {} : { after }) });
      keys.push(...page.items.map(({ key }) => key));
      damaged.push(...(page.damaged ?? []).map(({ key }) => key));
      if (page.next === undefined) break;
      after = page.next;
    }
    expect(keys).toHaveLength(count - 1);
    expect(damaged).toEqual([keyOf(17), keyOf(3)]);
    const exported: string[] = [];
    for await (const { key } of semel.records.export()) exported.push(key);
    expect(exported).toEqual(keys);
    expect(
      said.filter((sentence) => /mail\.send\/=(3|17) of shop cannot be read/.test(sentence)),
    ).toHaveLength(2);
  });
});

describe('what is not found because its name was changed is damage, not absence:', () => {
  const kinds: [string, (path: string) => void, string[]][] = [
    ['a settled key', (path) => overwrite(path, '=27', '=2z'), ['=27']],
    ['a running key', (path) => overwrite(path, '=running', '=runninG'), ['=running']],
    ['a contract', (path) => overwrite(path, 'mail.send/', 'mail.senD/'), ['=27', '=running']],
  ];

  test.each(kinds)('%s', async (_, damage, broken) => {
    const path = await usedLedger();
    grow(path);
    damage(path);
    const store = sqliteStore({ path });
    for (const rest of broken)
      expect(await codeOf(take(store, { key: `mail.send/${rest}` }))).toBe('STORE_UNSAFE false');
    await store.close();
  });

  test('a key whose contract was changed in the index', async () => {
    const path = await usedLedger();
    grow(path);
    const bytes = readFileSync(path);
    // Five bytes of header before the key say how its values are stored: 9, that the scope is 1; 8, that it is 0.
    const entry = bytes.indexOf(Buffer.from([5, 9, 19, 2, 1, ...Buffer.from('=27')]));
    bytes[entry + 1] = 8;
    writeFileSync(path, bytes);
    const store = sqliteStore({ path });
    expect(await codeOf(take(store, { key: 'mail.send/=27' }))).toBe('STORE_UNSAFE false');
    await store.close();
  });

  test('a contract whose entry in the index leads elsewhere', async () => {
    const path = newPathInMemory();
    const store = sqliteStore({ path });
    for (const key of ['mail.send/1', 'card.refund/2', 'site.publish/3'])
      await (await take(store, { key })).succeed('1');
    await store.close();
    grow(path);
    overwrite(path, 'shopcard.refund/\u0002', 'shopcard.refund/\u0003');
    const again = sqliteStore({ path });
    expect(await codeOf(take(again, { key: 'card.refund/2' }))).toBe('STORE_UNSAFE false');
    await again.close();
  });

  test('a neighbouring key that was never there is free', async () => {
    const path = await usedLedger();
    const store = sqliteStore({ path });
    for (const rest of ['', '=', '=2a', '=27a', '~']) await take(store, { key: `mail.send/${rest}` });
    await take(store, { key: 'aaa/1' });
    await take(store, { key: 'zzz/1', namespace: 'other' });
    await store.close();
  });
});

describe('damage of the whole is not for the caller to retry, and is heard once:', () => {
  const kinds: [string, string, RegExp][] = [
    ['a lost table', 'DROP TABLE records', /^Tables of the ledger .*no such table: records/],
    [
      'a lost column',
      'DROP VIEW operations; ALTER TABLE records DROP COLUMN asker',
      /has a table that is not semel's \(records\)/,
    ],
  ];

  test.each(kinds)('%s', async (_, sql, message) => {
    const path = await usedLedger();
    grow(path);
    change(path, sql);
    const store = sqliteStore({ path });
    for (const nth of [1, 2]) {
      const claim = take(store, { key: keyOf(nth) });
      await expect(claim).rejects.toMatchObject({ code: 'STORE_UNSAFE', retriable: false });
      await expect(claim).rejects.toThrow(message);
    }
    await store.close();
  });

  test('a record that is missing, in a ledger that is small enough to be looked through', async () => {
    const path = await usedLedger();
    change(path, "DELETE FROM records WHERE key = '=5'");
    await expect(sqliteStore({ path }).open()).rejects.toThrow(/is damaged \(a record is missing/);
  });

  test('a table that goes while a process uses it: it runs nothing more, also when the table is back', async () => {
    const path = await usedLedger();
    const semel: Semel = createSemel({ store: `sqlite:${path}`, namespace: 'shop', cache: false });
    let runs = 0;
    const call = (nth: number) =>
      semel.once('mail.new', nth, () => {
        runs += 1;
      });
    await call(1);
    rename(path, 'records', 'gone');
    expect(await codeOf(call(2))).not.toBe('answered');
    rename(path, 'gone', 'records');
    // As before in every byte that counts: another process may use it.
    const other = sqliteStore({ path });
    await other.open();
    await other.close();
    const before = runs;
    expect(await codeOf(call(3))).toBe('STORE_UNSAFE false');
    expect(runs).toBe(before);
    await semel.close();
  });
});

test('an open record that is missing is noticed when the ledger is opened, however large it is', async () => {
  const path = await usedLedger();
  grow(path);
  change(path, "DELETE FROM records WHERE key = '=running'");
  await expect(sqliteStore({ path }).open()).rejects.toThrow(/is damaged \(an open record is missing/);
});

test('a healthy ledger is verified as such', async () => {
  const path = await usedLedger();
  const store = sqliteStore({ path });
  expect(await store.verify()).toEqual([]);
  await store.close();
});
