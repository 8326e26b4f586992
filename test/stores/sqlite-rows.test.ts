// A row survives being stored, whatever is in it; and what is usual costs little.
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { effects } from '../../src/core/contract/words.ts';
import { toColumns } from '../../src/store/columns.ts';
import type { News, Row, StoredResult } from '../../src/store/store.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { createRecords } from '../../src/stores/sqlite/rows.ts';
import { migrate } from '../../src/stores/sqlite/schema.ts';
import { createScopes } from '../../src/stores/sqlite/scopes.ts';
import { take, theKey, theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { newPathInMemory } from './sqlite-folder.ts';

const text = fc.string({ unit: 'binary' }).filter((value) => value.isWellFormed());
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });
const instant = fc.integer({ min: 0, max: 4_000_000_000_000 });
const maybeNever = fc.oneof(instant, fc.constant(Number.MAX_SAFE_INTEGER), fc.constant(0));
const ms = fc.integer({ min: 0, max: 100 * 365 * 86_400_000 });
const fence = fc.integer({ min: 1, max: 1_000_000_000 });
const token = fc.oneof(fc.stringMatching(/^[0-9a-f]{16}$/), fc.stringMatching(/^[0-9A-F]{16}$/), text);
const result: fc.Arbitrary<StoredResult> = fc.record({
  text: maybe(text),
  omitted: maybe(text),
  remoteRef: maybe(text),
});

const news: fc.Arbitrary<News> = fc.record<News>({ token, fence, result, found: fc.boolean() });

const withLease = fc.record({ leaseBoot: text, leaseUntil: fc.double({ min: 0, max: 1e12, noNaN: true }) });
const withoutLease = fc.constant({ leaseBoot: null, leaseUntil: null });

/** Typed by field, so that a field which rows.ts does not know fails to compile here. */
const fields: { [K in Exclude<keyof Row, 'leaseBoot' | 'leaseUntil'>]: fc.Arbitrary<Row[K]> } = {
  namespace: text,
  key: text,
  generation: fence,
  fence,
  providerKeyFence: fence,
  token,
  status: fc.constantFrom('running', 'succeeded', 'failed', 'released', 'unknown'),
  doubtFence: maybe(fence),
  dispatched: fc.boolean(),
  attempts: fence,
  crashes: fc.nat(),
  version: text,
  effect: fc.constantFrom(...effects),
  keyed: fc.boolean(),
  fingerprint: maybe(text),
  owner: text,
  retention: maybe(
    fc.record({ windowMs: ms, failureWindowMs: ms, keep: fc.boolean(), periodEndsAt: maybe(instant) }),
  ),
  args: maybe(text),
  prepared: maybe(text),
  content: maybe(text),
  result: maybe(result),
  notes: fc.nat(),
  error: maybe(fc.record({ code: text, message: text, retriable: fc.boolean() })),
  news: maybe(news),
  createdAt: instant,
  updatedAt: instant,
  settledAt: maybe(instant),
  expiresAt: maybe(maybeNever),
  firstDispatchedAt: maybe(instant),
  lastDispatchedAt: maybe(instant),
  inFlightUntil: maybe(maybeNever),
  networkMs: ms,
  notAfter: maybe(maybeNever),
  conversation: maybe(text),
  turn: maybe(text),
  toolCallId: maybe(text),
  run: maybe(text),
  again: maybe(text),
  caller: maybe(text),
  movedTo: maybe(fc.array(text, { minLength: 1, maxLength: 3 })),
};

const row: fc.Arbitrary<Row> = fc
  .tuple(fc.record(fields), fc.oneof(withLease, withoutLease))
  .map(([rest, lease]) => ({ ...rest, ...lease }));

test('any row is read back unchanged, inserted or replacing another', () => {
  const database = new DatabaseSync(':memory:');
  const anchor = { boot: '', wall: 0, uptime: 0, seen: 0 };
  migrate(database, ':memory:', { incarnation: '1', anchor });
  const known = createScopes(database);
  const table = createRecords(database, known);
  fc.assert(
    fc.property(row, row, fc.subarray(Object.keys(fields) as (keyof Row)[]), (first, other, changed) => {
      database.exec('DELETE FROM records; DELETE FROM scopes');
      known.forget();
      const { namespace, key } = first;
      expect(table.insert(first)).toBe(true);
      expect(table.get(namespace, key)).toEqual(first);
      const stored = table.find(namespace, key);
      table.forget();
      expect(table.find(namespace, key)).toEqual(stored);
      const changes = Object.fromEntries(changed.map((field) => [field, other[field]]));
      const second = { ...first, ...changes, namespace, key };
      const updated = stored && table.update(stored, second);
      expect(table.get(namespace, key)).toEqual(second);
      expect(table.find(namespace, key)).toEqual(updated);
    }),
    { numRuns: 1000 },
  );
  database.close();
});

test('a lease that never ends and other endless times are stored as far away', () => {
  const [given] = fc.sample(row, 1) as [Row];
  const endless = { ...given, networkMs: Number.POSITIVE_INFINITY, inFlightUntil: Number.POSITIVE_INFINITY };
  const more = JSON.parse(toColumns(endless).at(-1) as string);
  expect(more.tail).toBe(Number.MAX_SAFE_INTEGER);
  expect(more.quiet).toBe(Number.MAX_SAFE_INTEGER - given.createdAt);
});

test.each([
  ['token', "UPDATE records SET token = x'00'"],
  ['fence', 'UPDATE records SET fence = fence + 1'],
  ['status', 'UPDATE records SET status = 4'],
])('an update leaves a row alone whose %s has changed since it was read', async (_, change) => {
  const path = newPathInMemory();
  const store = sqliteStore({ path });
  await take(store);
  await store.close();
  const database = new DatabaseSync(path);
  const table = createRecords(database, createScopes(database));
  const stored = table.find(theNamespace, theKey);
  if (stored === undefined) throw new Error('there is none');
  const renewed = { ...stored.row, leaseUntil: 1 };
  expect(table.update(stored, renewed)).toMatchObject({ id: stored.id, row: renewed });
  database.exec(change);
  for (const row of [renewed, { ...renewed, status: 'released' as const }, { ...renewed, owner: 'other' }])
    expect(table.update(stored, row)).toBeUndefined();
  database.close();
});

test('a record with a 200-byte result takes at most 490 bytes, whatever the order', async () => {
  const path = newPathInMemory();
  const store = sqliteStore({ path });
  const count = 10_000;
  const digest = (n: number) => {
    // Spread like a hash, and repeatable.
    let state = n * 2654435761 + 12345;
    return Array.from({ length: 32 }, () => {
      state = (Math.imul(state ^ (state >>> 15), 2246822519) + 374761393) >>> 0;
      return '0123456789abcdefghijklmnopqrstuv'[state >>> 27];
    }).join('');
  };
  let next = 0;
  async function caller(): Promise<void> {
    while (next < count) {
      next += 1;
      const attempt = await take(store, {
        namespace: 'default',
        key: `email.send/2026-06-19/${digest(next)}`,
        token: next.toString(16).padStart(16, '0'),
        version: '1',
        crossing: true,
        owner: 'host:1234',
        args: JSON.stringify({ lead: 'a'.repeat(29) }),
      });
      await attempt.succeed(JSON.stringify({ id: 'x'.repeat(191) }));
    }
  }
  await Promise.all(Array.from({ length: 128 }, caller));
  await store.close();
  const database = new DatabaseSync(path);
  const single = (sql: string) => Object.values(database.prepare(sql).get() ?? {})[0] as number;
  expect(single('SELECT count(*) FROM records')).toBe(count);
  expect(single('SELECT max(length(args)) FROM records')).toBe(40);
  expect(single('SELECT max(length(result)) FROM records')).toBe(200);
  const bytes = (single('PRAGMA page_count') * single('PRAGMA page_size')) / count;
  console.log(`${bytes.toFixed(1)} bytes per record`);
  // Its key is there twice, in the row and in the index: 95 of them.
  expect(bytes).toBeLessThanOrEqual(490);
  database.close();
});
