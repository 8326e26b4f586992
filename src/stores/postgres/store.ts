// The store in a Postgres database. Every question is one statement on any connection, so that a pool or a pooler in
// transaction mode is enough; many questions at once are one statement too.

import { type Clock, type Random, systemClock, systemRandom } from '../../core/clock.ts';
import { fullAddress, shownAddress } from '../../store/address.ts';
import type { FarBackend, Found, Removal, Swap, Swapped, Write } from '../../store/far-backend.ts';
import { farStore } from '../../store/far-store.ts';
import { inTime } from '../../store/in-time.ts';
import { dispatchedFlag, isOpen, statusCode } from '../../store/row-columns.ts';
import type { Row, Store, StoreEvent, StoreFacts } from '../../store/store.ts';
import { arrayOf, type Value } from './array.ts';
import { type Connection, connectionOf, type PostgresClient, showsTransaction } from './client.ts';
import { inTransaction, isConflict, isLockTimeout, judge, sqlStateOf } from './failure.ts';
import { askedColumns, kinds } from './functions.ts';
import { listRows } from './list.ts';
import { checkSchemaName, openLedger } from './open.ts';
import { postgresRaw } from './raw.ts';
import { columns, decode, itemOf, type Selected, writtenOf } from './rows.ts';
import { schemaVersion, within } from './schema.ts';
import { migrationOf } from './upkeep.ts';
import { connect, placeOf, usualSchema } from './url.ts';

export interface PostgresStoreOptions {
  /** `postgres://user@host/database`; uses the package `pg`. */
  readonly url?: string;
  /** A pool or client of `pg`, or an instance of `postgres`; yours to close. */
  readonly client?: PostgresClient;
  /** @default 'semel' */
  readonly schema?: string;
  /** Makes the schema, or brings it up to date, when it is opened. @default true */
  readonly migrate?: boolean;
  /** `accept-loss`: also a server that can lose what it has confirmed. @default 'durable' */
  readonly durability?: 'durable' | 'accept-loss';
  /** How long a statement is waited for, in milliseconds. @default 10_000 */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** Tries of one statement when transactions stand in each other's way. */
const mostTries = 5;

/** Lists are a text first, whatever a driver would make of one: the server reads it. */
const exchangeParameters = [
  ...askedColumns.map(([, type]) => `text::${type}[]`),
  'integer',
  'boolean',
  'text::json',
  'text::json',
  'integer',
]
  .map((type, index) => `$${index + 1}::${type}`)
  .join(', ');

export function postgresStore(options: PostgresStoreOptions): Store {
  const { clock = systemClock, random = systemRandom } = options;
  const { backend, raw, migration } = postgresBackend(options, clock, random);
  return { ...farStore(backend, { clock, random }), raw, migration };
}

interface PostgresBackend extends Pick<Required<Store>, 'raw' | 'migration'> {
  readonly backend: FarBackend;
}

function postgresBackend(options: PostgresStoreOptions, clock: Clock, random: Random): PostgresBackend {
  const schema = checkSchemaName(options.schema ?? usualSchema);
  const where = placeOf(options.url, schema);
  const timeoutMs = options.timeoutMs ?? 10_000;
  const sql = (text: string) => within(schema, text);
  const texts = {
    now: sql('SELECT semel.now_ms() AS now'),
    // A transaction can be open on a client that the program uses too; never on a connection of our own.
    exchange:
      options.client === undefined
        ? sql(`SELECT now, floor, done, seen FROM semel.exchange(${exchangeParameters})`)
        : sql(`CALL semel.own_exchange(${exchangeParameters})`),
    remove: sql('SELECT semel.remove($1::text::json, $2::integer) AS removed'),
    // What is open is looked through: a worker that died before the line left it there. What may only go later must not
    // take the place of what may go now. Texts beside what is asked for are read too, and one with a NUL could not be:
    // \u is made harmless, also where its backslash is itself an escaped one.
    due: sql(`SELECT t.now, (
      SELECT json_agg(json_build_array(r.namespace, r.key, ${columns}))::text FROM (
        (SELECT * FROM semel.closed c WHERE c.expires <= t.now ORDER BY c.expires LIMIT $1)
        UNION ALL (SELECT o.* FROM semel.open o, LATERAL (SELECT replace(o.more, chr(92) || 'u', '//')::json AS more) m
          WHERE o.status = ${statusCode('running')} AND o.flags & ${dispatchedFlag} = 0
          AND m.more ->> 'doubtSince' IS NULL AND m.more ->> 'news' IS NULL
          AND (m.more -> 'lease' ->> 1)::bigint <= t.now
          AND o.created + coalesce((m.more ->> 'updated')::bigint, 0)
            + coalesce((m.more ->> 'failureWindow')::bigint, 0) <= t.now LIMIT $1)
        LIMIT $1) AS r) AS found
      FROM (SELECT semel.now_ms() AS now) AS t`),
    append: sql('SELECT semel.append($1::text::json, $2::integer)'),
    history: sql(`SELECT at, generation, fence, type, detail FROM semel.events
      WHERE namespace = $1 AND key = $2 ORDER BY n`),
    // One step of an index per namespace, not one per record.
    namespaces: sql(`WITH RECURSIVE names AS (
      SELECT least((SELECT min(namespace) FROM semel.open), (SELECT min(namespace) FROM semel.closed)) AS namespace
      UNION ALL SELECT least((SELECT min(o.namespace) FROM semel.open o WHERE o.namespace > n.namespace),
        (SELECT min(c.namespace) FROM semel.closed c WHERE c.namespace > n.namespace))
      FROM names n WHERE n.namespace IS NOT NULL)
      SELECT namespace FROM names WHERE namespace IS NOT NULL`),
  };
  const exchangeName = nameOf(`semel ${schemaVersion} ${schema}`);
  let connecting: Promise<Connection> | undefined;

  const address = fullAddress(options.url, {
    schema: schema === usualSchema ? undefined : schema,
    durability: options.durability,
  });

  const backend: FarBackend = {
    open: () => open('users'),
    async now() {
      const [row] = await query(texts.now);
      return Number(row?.now);
    },
    async exchange(swaps) {
      const asked = askedOf(swaps);
      const [row] = await unlocked((oneByOne) =>
        query(texts.exchange, valuesOf(swaps, asked, oneByOne), exchangeName),
      );
      const done = new Set(JSON.parse(row?.done as string) as number[]);
      const answers = swaps.map(({ write }): Swapped => {
        const isDone = write !== undefined && (write.row === undefined || done.has(write.revision));
        return isDone ? swapDone : nothingFound;
      });
      for (const [place, ...values] of JSON.parse((row?.seen as string | null) ?? '[]') as Seen[]) {
        const { n, namespace, key } = asked[place - 1] as Asked;
        answers[n] = { done: false, found: foundIn(namespace, key, values) };
      }
      return { now: Number(row?.now), floor: Number(row?.floor), answers };
    },
    list: (asked) => listRows(query, schema, asked),
    async due(limit) {
      const [row] = await query(texts.due, [limit]);
      const found = JSON.parse((row?.found as string | null) ?? '[]') as [string, string, ...Selected][];
      return {
        now: Number(row?.now),
        found: found.map(([namespace, key, ...values]) => foundIn(namespace, key, values)),
      };
    },
    async remove(removals) {
      const [row] = await query(texts.remove, [JSON.stringify(removals.map(removalOf)), schemaVersion]);
      return Number(row?.removed);
    },
    async append(events) {
      const noted = events.map((event, i) => ({ i, ...eventOf(event) }));
      await query(texts.append, [JSON.stringify(noted), schemaVersion]);
    },
    async history(namespace, key) {
      const rows = await query(texts.history, [namespace, key]);
      return rows.map(({ at, generation, fence, type, detail }) => ({
        at: Number(at),
        namespace,
        key,
        generation: Number(generation),
        fence: Number(fence),
        type: type as StoreEvent['type'],
        detail: JSON.parse(detail as string),
      }));
    },
    async namespaces() {
      return (await query(texts.namespaces)).map(({ namespace }) => String(namespace));
    },
    async close() {
      const connection = await connecting?.catch(() => undefined);
      await connection?.end();
    },
    judge: (error) => judge(error, where),
  };
  const raw = postgresRaw({
    query,
    schema,
    where,
    address: address === undefined ? where : shownAddress(address),
    random,
    open: () => open('whoever'),
  });
  return {
    backend,
    raw,
    migration: () => migrationOf({ query, schema, where, open: () => open('whoever', true) }),
  };

  async function open(who: 'users' | 'whoever', migrate = options.migrate ?? true): Promise<StoreFacts> {
    const acceptLoss = options.durability === 'accept-loss';
    const facts = await openLedger(
      { query, end: async () => {} },
      { schema, where, migrate, acceptLoss, who },
    );
    return { kind: 'postgres', location: where, address, clockProblem: undefined, ...facts };
  }

  function connection(): Promise<Connection> {
    connecting ??=
      options.client === undefined
        ? connect(options.url, timeoutMs)
        : Promise.resolve(connectionOf(options.client));
    connecting.catch(() => {
      connecting = undefined;
    });
    return connecting;
  }

  async function query(
    text: string,
    values?: readonly unknown[],
    name?: string,
  ): Promise<readonly Record<string, unknown>[]> {
    const { query: ask } = await connection();
    if (options.client !== undefined && showsTransaction(options.client)) throw inTransaction(where);
    for (let tries = 1; ; tries += 1) {
      try {
        return await inTime(ask(text, values, name), clock, timeoutMs);
      } catch (error) {
        // The floor was raised by somebody else between two statements: the answer tells it next time.
        const isPassing = isConflict(error) || sqlStateOf(error) === 'SM001';
        if (!isPassing || tries >= mostTries) throw error;
      }
    }
  }
}

/** All at once; where one record is locked, once more so that it holds up no other. */
async function unlocked<T>(exchange: (oneByOne: boolean) => Promise<T>): Promise<T> {
  try {
    return await exchange(false);
  } catch (error) {
    if (!isLockTimeout(error)) throw error;
    return exchange(true);
  }
}

/** A name that Postgres would cut off might meet another. */
function nameOf(name: string): string | undefined {
  return name.length > 63 ? undefined : name;
}

/** What the function is asked about one record. */
interface Asked {
  /** Of the swap. */
  readonly n: number;
  readonly kind: number;
  readonly namespace: string;
  readonly key: string;
  readonly write: Write | undefined;
}

/** All who write many at once do so in one order: by kind, then by key. */
function askedOf(swaps: readonly Swap[]): readonly Asked[] {
  const asked: Asked[] = [];
  for (let n = 0; n < swaps.length; n += 1) {
    const { namespace, key, write } = swaps[n] as Swap;
    if (write === undefined) asked.push({ n, kind: kinds.looked, namespace, key, write });
    else if (write.row !== undefined)
      asked.push({ n, kind: kindOf(write, write.row), namespace, key, write });
  }
  return asked.sort(inOrder);
}

function kindOf({ before }: Write, row: Row): number {
  if (before === undefined) return kinds.fresh;
  if (isOpen(before.row.status)) return isOpen(row.status) ? kinds.held : kinds.ended;
  return isOpen(row.status) ? kinds.taken : kinds.told;
}

function inOrder(a: Asked, b: Asked): number {
  if (a.kind !== b.kind) return a.kind - b.kind;
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1;
  return a.key < b.key ? -1 : 1;
}

/** As the function takes them. */
function valuesOf(swaps: readonly Swap[], asked: readonly Asked[], oneByOne: boolean): unknown[] {
  const lists = askedColumns.map((): Value[] => []);
  let writes = 0;
  for (const { kind, namespace, key, write } of asked) {
    const written = write === undefined ? nothingWritten : writtenOf(write);
    if (write !== undefined) writes += 1;
    lists[0]?.push(kind);
    lists[1]?.push(namespace);
    lists[2]?.push(key);
    for (let column = 3; column < lists.length; column += 1) lists[column]?.push(written[column - 3] ?? null);
  }
  const noted = swaps.flatMap(notedOf);
  const beside = swaps.flatMap(besideOf);
  return [...lists.map(arrayOf), writes, oneByOne, jsonOf(noted), jsonOf(beside), schemaVersion];
}

const nothingWritten: readonly Value[] = [];

function jsonOf(list: readonly object[]): string | null {
  return list.length === 0 ? null : JSON.stringify(list);
}

const none: readonly object[] = [];

function notedOf({ write }: Swap): readonly object[] {
  if (write === undefined || write.events.length === 0) return none;
  const revision = write.row === undefined ? null : write.revision;
  return write.events.map((event, i) => ({ i, revision, at: event.at, ...eventOf(event) }));
}

function besideOf({ namespace, key, write }: Swap): readonly object[] {
  if (write === undefined || write.beside.length === 0) return none;
  // A lock for each key, in one order: another claim may share only one of these forms with this one.
  const locks = [key, ...write.beside.map((other) => other.key)].sort();
  return locks.map((lock, index) => {
    const other = write.beside[Math.min(index, write.beside.length - 1)] as Write['beside'][number];
    return { revision: write.revision, namespace, key: other.key, was: other.revision ?? null, first: lock };
  });
}

function eventOf({ namespace, key, generation, fence, type, detail }: Omit<StoreEvent, 'at'>): object {
  return { namespace, key, generation, fence, type, detail: JSON.stringify(detail) };
}

function removalOf({ before, row, revision, events }: Removal): object {
  const { namespace, key } = before.row;
  const about = { namespace, key, old: before.revision };
  if (row === undefined) return about;
  const types = events === undefined ? null : JSON.stringify(events);
  return { ...about, revision, ...itemOf(row), types };
}

const swapDone: Swapped = { done: true };
const nothingFound: Swapped = { done: false, found: undefined };

/** A record that was read, and its place in what was asked, from 1. */
type Seen = [place: number, ...Selected];

function foundIn(namespace: string, key: string, selected: Selected): Found {
  return { row: decode(namespace, key, selected), revision: selected[0] };
}
