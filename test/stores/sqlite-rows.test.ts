// A row survives being stored, whatever is in it; and what is usual costs little.
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { effects } from '../../src/core/words.ts';
import type { News, Row, StoredResult } from '../../src/store/store.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { columns, decode, encode, moreAt, selected } from '../../src/stores/sqlite/rows.ts';
import { take } from '../../src/testing/store-contract/attempt.ts';
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
  keyFence: fence,
  token,
  status: fc.constantFrom('running', 'succeeded', 'failed', 'released', 'unknown'),
  doubtSince: maybe(fence),
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
  error: maybe(fc.record({ code: text, message: text, retriable: fc.boolean() })),
  news: maybe(news),
  createdAt: instant,
  updatedAt: instant,
  settledAt: maybe(instant),
  expiresAt: maybe(maybeNever),
  firstDispatchedAt: maybe(instant),
  lastDispatchedAt: maybe(instant),
  quietAt: maybe(maybeNever),
  tailMs: ms,
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

test('any row comes back as it was', () => {
  const database = new DatabaseSync(':memory:');
  database.exec(
    `CREATE TABLE t (${columns.map((column) => `${column} ${column === 'token' ? 'BLOB' : ['version', 'owner', 'args', 'content', 'result', 'asker', 'more'].includes(column) ? 'TEXT' : 'INTEGER'}`).join(', ')}) STRICT`,
  );
  const insert = database.prepare(`INSERT INTO t VALUES (${columns.map(() => '?').join(', ')})`);
  const read = database.prepare(`SELECT ${selected('t')} FROM t`);
  read.setReturnArrays(true);
  fc.assert(
    fc.property(row, (given) => {
      database.exec('DELETE FROM t');
      insert.run(...encode(given));
      expect(decode(given.namespace, given.key, read.get() as never)).toEqual(given);
    }),
    { numRuns: 1000 },
  );
  database.close();
});

test('a lease that never ends and other endless times are stored as far away', () => {
  const [given] = fc.sample(row, 1) as [Row];
  const endless = { ...given, tailMs: Number.POSITIVE_INFINITY, quietAt: Number.POSITIVE_INFINITY };
  const more = JSON.parse(String(encode(endless)[moreAt]));
  expect(more.tail).toBe(Number.MAX_SAFE_INTEGER);
  expect(more.quiet).toBe(Number.MAX_SAFE_INTEGER - given.createdAt);
});

test('a record with a 200-byte result takes at most 400 bytes, whatever the order', async () => {
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
  expect(single('SELECT count(*) FROM closed')).toBe(count);
  expect(single('SELECT max(length(args)) FROM closed')).toBe(40);
  expect(single('SELECT max(length(result)) FROM closed')).toBe(200);
  const bytes = (single('PRAGMA page_count') * single('PRAGMA page_size')) / count;
  console.log(`${bytes.toFixed(1)} bytes per record`);
  expect(bytes).toBeLessThanOrEqual(400);
  database.close();
});
