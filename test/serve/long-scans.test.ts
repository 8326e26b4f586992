// A reader must not stop the executors: a scan of a large ledger takes its turn, in parts of a bounded number of rows.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { limits } from '../../src/core/limits.ts';
import { createSemel } from '../../src/index.ts';
import { overrideStore } from '../../src/semel/index.ts';
import { digestToken, startServer } from '../../src/server/index.ts';
import { memoryStore } from '../../src/store/memory.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';

const token = 'a-token-that-is-long-enough-to-be-one-of-them';
const copies = 210_000;

/** A store that counts how often one statement evaluates the filter of a list: once per row that it looks at. */
function countedLedger() {
  const folder = mkdtempSync(join(tmpdir(), 'semel-scans-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const database = new DatabaseSync(join(folder, 'ledger.db'));
  onTestFinished(() => database.close());
  let rows = 0;
  const seen = { most: 0, total: 0 };
  database.function('ifnull', { deterministic: true }, (value, other) => {
    if (other === 1) rows += 1;
    return value ?? other;
  });
  const prepare = database.prepare.bind(database);
  database.prepare = (sql: string) => {
    const statement = prepare(sql);
    const all = statement.all.bind(statement);
    statement.all = (...values: never[]) => {
      rows = 0;
      const found = all(...values);
      seen.most = Math.max(seen.most, rows);
      seen.total += rows;
      return found;
    };
    return statement;
  };
  return { database, seen };
}

async function serveLedger(fill: 'settled' | 'open' | 'few') {
  const { database, seen } = countedLedger();
  const store = sqliteStore({ database });
  const semel = createSemel({ store, namespace: 'shop', prune: false, onWarning: () => undefined });
  for (let n = 0; n < 3; n += 1) await semel.once('mail.send', `z-${n}`, async () => n);
  const lost = () => semel.once('mail.send', 'z-lost', () => Promise.reject(new Error('socket hang up')));
  await lost().catch(() => undefined);
  // Their checksums are those of another key; no request below asks for one of them.
  const ofCopies = fill === 'open' ? 0 : 1;
  if (fill !== 'few')
    database.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${copies})
      INSERT INTO records (scope, key, key_sum, status, flags, fence, version, owner, created, sum)
      SELECT scope, 'a-' || printf('%07d', i), i, ${ofCopies}, 0, 1, version, owner, created, 0
      FROM n CROSS JOIN (SELECT * FROM records LIMIT 1)`);
  const server = await startServer({
    store,
    tokens: [{ name: 'reader', role: 'admin', namespace: 'shop', sha256: digestToken(token) }],
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: () => undefined,
  });
  onTestFinished(() => server.close(0));
  const get = async (path: string, signal?: AbortSignal) => {
    const answer = await fetch(`${server.url}${path}`, {
      headers: { authorization: `Bearer ${token}` },
      ...(signal && { signal }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: each endpoint has its own.
    return (await answer.json()) as any;
  };
  seen.most = 0;
  seen.total = 0;
  return { get, seen, semel, store, database };
}

test('no statement of a filtered list looks at more than its share of the rows', async () => {
  const { get, seen } = await serveLedger('settled');
  for (const filter of ['conversation=none', 'status=failed', 'status=released&tool=mail.send']) {
    seen.most = 0;
    seen.total = 0;
    const { items, next } = await get(`/v1/records?${filter}`);
    expect(items).toEqual([]);
    expect(seen.most).toBe(limits.scannedRows);
    // And one request no more than its own.
    expect(seen.total).toBeLessThanOrEqual(limits.pageRows + limits.scannedRows);
    expect(next).toEqual(expect.any(String));
    expect(await get(`/v1/records?${filter}&after=${encodeURIComponent(next)}`)).toEqual({ items: [] });
  }
});

test('a page that is behind many others is found, in parts', async () => {
  const { semel, seen } = await serveLedger('settled');
  const { items, next } = await semel.records.list({ prefix: 'mail.send/', status: 'unknown' });
  expect(items).toHaveLength(1);
  expect(next).toBeUndefined();
  expect(seen.most).toBeLessThanOrEqual(limits.scannedRows);
});

test('more open records than usual are not sorted for each page', async () => {
  const { semel, seen } = await serveLedger('open');
  const { items } = await semel.records.list({ prefix: 'mail.send/', status: 'unknown' });
  expect(items).toHaveLength(1);
  // The one that matches counts twice.
  expect(seen.most).toBeLessThanOrEqual(limits.scannedRows + 1);
});

test('a search by an id ends when its client hangs up', async () => {
  const { semel, store } = await serveLedger('few');
  const leave = new AbortController();
  let pages = 0;
  const { list } = store;
  store.list = (query) => {
    pages += 1;
    if (pages === 2) leave.abort(new Error('it left'));
    return list(query);
  };
  const { signal } = leave;
  await expect(semel.records.get('0123456789abcdef', { signal })).rejects.toThrow('it left');
  await expect(semel.records.forget('0123456789abcdef', { signal })).rejects.toThrow('it left');
  await expect(semel.records.reopen('0123456789abcdef', { signal })).rejects.toThrow('it left');
  await expect(semel.doubts.resolve('0123456789@1', 'landed', { signal })).rejects.toThrow('it left');
  await expect(semel.doubts.groups({ signal })).rejects.toThrow('it left');
  expect(pages).toBeLessThan(10);
});

test('an answer of groups covers the first doubts, and says so', async () => {
  const { semel } = await serveLedger('few');
  const lost = () => semel.once('mail.send', 'z-lost-too', () => Promise.reject(new Error('timeout')));
  await lost().catch(() => undefined);
  expect((await semel.doubts.groups()).flatMap(({ refs }) => refs)).toHaveLength(2);
  expect((await semel.doubts.groups({ limit: 1 })).flatMap(({ refs }) => refs)).toHaveLength(1);
});

test('a reader who hangs up is not read for any longer', async () => {
  let pages = 0;
  const store = overrideStore(memoryStore(), {
    // A ledger without an end.
    async list() {
      pages += 1;
      await new Promise((resolve) => setTimeout(resolve, 1));
      return { items: [], next: `page ${pages}` };
    },
  });
  const server = await startServer({
    store,
    tokens: [{ name: 'admin', role: 'admin', namespace: 'shop', sha256: digestToken(token) }],
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: () => undefined,
  });
  onTestFinished(() => server.close(0));
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const act = (body: object) => ({ method: 'POST', headers, body: JSON.stringify(body) });
  const asked: readonly [path: string, init: RequestInit][] = [
    ['/v1/record?ref=0123456789', { headers }],
    ['/v1/records?status=failed', { headers }],
    ['/v1/doubts', { headers }],
    ['/v1/doubts/groups', { headers }],
    ['/v1/forget', act({ ref: '0123456789@1' })],
    ['/v1/reopen', act({ ref: '0123456789@1' })],
    ['/v1/resolve', act({ items: [{ ref: '0123456789@1', verdict: 'landed' }] })],
  ];
  for (const [path, init] of asked) {
    const leave = new AbortController();
    const before = pages;
    const answer = fetch(`${server.url}${path}`, { ...init, signal: leave.signal });
    await expect.poll(() => pages).toBeGreaterThan(before + 3);
    leave.abort();
    await expect(answer).rejects.toThrow();
    let last = -1;
    const isStill = () => {
      const grown = pages - last;
      last = pages;
      return grown;
    };
    await expect.poll(isStill, { interval: 100, message: path }).toBe(0);
  }
});
