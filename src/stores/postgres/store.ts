// The store in a Postgres database. Every request, or batch of requests, is one statement on any connection, so a pool or
// a pooler in transaction mode is enough.

import { type Clock, type Random, systemClock, systemRandom, withTimeout } from '../../core/clock.ts';
import { fullAddress, redactAddress } from '../../store/address.ts';
import { dispatchedFlag, statusCode } from '../../store/columns.ts';
import { isDamaged, parseDetail, readOrDamage } from '../../store/damage.ts';
import type { Found, RemoteBackend, Removal } from '../../store/remote/backend.ts';
import { remoteStore } from '../../store/remote/remote-store.ts';
import type { Store, StoreEvent, StoreFacts } from '../../store/store.ts';
import { encodeArray, encodeBinaryArray } from './array.ts';
import { adaptClient, type Connection, isInTransaction, type PostgresClient } from './client.ts';
import { connect, defaultSchema, describePlace } from './connection.ts';
import { type Call, encodeEvent, exchange } from './exchange.ts';
import { insideTransactionError, isConflict, isDataError, judge, readSqlState } from './failure.ts';
import { awaited, openRows } from './functions.ts';
import { listRows } from './list.ts';
import { checkSchemaName, openLedger } from './open.ts';
import { postgresOutbox } from './outbox.ts';
import { postgresRaw } from './raw.ts';
import { decodeFound, encode, type Packed, packed } from './rows.ts';
import { planMigration, qualify, schemaVersion } from './schema.ts';
import { buildStatements, encodeValues, parseAnswer } from './statements.ts';
import { postgresTransactions } from './transaction/transactions.ts';

export interface PostgresStoreOptions {
  /** `postgres://user@host/database`; needs the package `pg`. */
  readonly url?: string;
  /** A `pg` pool or client, or a `postgres` instance. You close it. */
  readonly client?: PostgresClient;
  /** @default 'semel' */
  readonly schema?: string;
  /** Create or migrate the schema when the store is opened. @default true */
  readonly migrate?: boolean;
  /** `accept-loss`: also use a server that can lose confirmed writes. @default 'durable' */
  readonly durability?: 'durable' | 'accept-loss';
  /** Timeout per statement, in milliseconds. @default 10_000 */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** Maximum number of attempts at a statement that conflicts with other transactions. */
const mostTries = 5;

export function postgresStore(options: PostgresStoreOptions): Store {
  const { clock = systemClock, random = systemRandom } = options;
  const { backend, raw, migration, query, schema, where } = postgresBackend(options, clock, random);
  const store = remoteStore(backend, { clock, random });
  const transactions = postgresTransactions({ open: store.open, query, schema, where, clock, random });
  const outbox = postgresOutbox({ open: store.open, query, schema, where });
  return { ...store, raw, migration, transactions, outbox };
}

interface PostgresBackend extends Pick<Required<Store>, 'raw' | 'migration'> {
  readonly backend: RemoteBackend;
  readonly query: Connection['query'];
  readonly schema: string;
  readonly where: string;
}

function postgresBackend(options: PostgresStoreOptions, clock: Clock, random: Random): PostgresBackend {
  const schema = checkSchemaName(options.schema ?? defaultSchema);
  const where = describePlace(options.url, schema);
  const timeoutMs = options.timeoutMs ?? 10_000;
  const sql = (text: string) => qualify(schema, text);
  const expired = `(SELECT * FROM semel.records e WHERE expires <= t.now AND NOT ${openRows} AND NOT ${awaited('e')} ORDER BY expires LIMIT $1)`;
  const dueOf = (rows: string) =>
    sql(`SELECT t.now, (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(${packed()}))::text FROM (
        SELECT * FROM (${rows}) AS d LIMIT $1) AS r) AS found
      FROM (SELECT semel.now_ms() AS now) AS t`);
  const texts = {
    now: sql('SELECT semel.now_ms() AS now'),
    remove: sql('SELECT semel.remove($1::text::json, $2::integer) AS removed'),
    // Expired records, and open ones whose worker died before dispatching. Filtered here, so that records that cannot go
    // yet do not use up the limit. Postgres parses all of `more` and rejects an escaped NUL, so \u is replaced first, even
    // if its backslash is itself escaped.
    due: dueOf(`${expired} UNION ALL (SELECT o.* FROM (SELECT * FROM semel.records WHERE ${openRows}) o,
          LATERAL (SELECT pg_catalog.replace(o.more, pg_catalog.chr(92) || 'u', '//')::json AS more) m
          WHERE o.status = ${statusCode('running')} AND o.flags & ${dispatchedFlag}::smallint = 0
          AND m.more ->> 'doubtFence'::text IS NULL AND m.more ->> 'news'::text IS NULL
          AND (m.more -> 'lease'::text ->> 1)::bigint <= t.now
          AND o.created + coalesce((m.more ->> 'updated'::text)::bigint, 0)
            + coalesce((m.more ->> 'failureWindow'::text)::bigint, 0) <= t.now LIMIT $1)`),
    dueOfClosed: dueOf(expired),
    append: sql('SELECT semel.append($1::text::json, $2::integer)'),
    history: sql(`SELECT at, generation, fence, type, detail FROM semel.events
      WHERE namespace = $1 AND key = $2 ORDER BY n`),
    // One index lookup per namespace, not one per record.
    namespaces: sql(`WITH RECURSIVE names AS (
      SELECT pg_catalog.min(namespace) AS namespace FROM semel.records
      UNION ALL SELECT (SELECT pg_catalog.min(r.namespace) FROM semel.records r WHERE r.namespace > n.namespace)
      FROM names n WHERE n.namespace IS NOT NULL)
      SELECT namespace FROM names WHERE namespace IS NOT NULL`),
  };
  // The user's client may have a transaction open; our own connections never do.
  const statements = buildStatements(schema, options.client === undefined ? 'own' : 'client');
  let connecting: Promise<Connection> | undefined;

  const address = fullAddress(options.url, {
    schema: schema === defaultSchema ? undefined : schema,
    durability: options.durability,
  });

  const backend: RemoteBackend = {
    open: () => open('user'),
    async now() {
      const [row] = await query(texts.now);
      return Number(row?.now);
    },
    exchange: (swaps) => exchange(call, swaps),
    list: (filter) => listRows(query, schema, filter),
    async due(limit) {
      // An open record that Postgres cannot parse must not stop the others from being pruned.
      const [row] = await query(texts.due, [limit]).catch((error: unknown) => {
        if (!isDataError(error)) throw error;
        return query(texts.dueOfClosed, [limit]);
      });
      const packedRows = JSON.parse((row?.found as string | null) ?? '[]') as Packed[];
      const found = packedRows.map((values) => readOrDamage(() => decodeFound(values)));
      return { now: Number(row?.now), found: found.filter((one): one is Found => !isDamaged(one)) };
    },
    async remove(removals) {
      const [row] = await query(texts.remove, [JSON.stringify(removals.map(encodeRemoval)), schemaVersion]);
      return Number(row?.removed);
    },
    async append(events) {
      const noted = events.map((event, i) => ({ i, ...encodeEvent(event) }));
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
        detail: parseDetail(detail as string),
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
    address: address === undefined ? where : redactAddress(address),
    random,
    open: () => open('mover'),
  });
  return {
    backend,
    raw,
    query,
    schema,
    where,
    migration: () => planMigration({ query, schema, where, open: () => open('mover', true) }),
  };

  async function open(who: 'user' | 'mover', migrate = options.migrate ?? true): Promise<StoreFacts> {
    const acceptLoss = options.durability === 'accept-loss';
    const facts = await openLedger(query, { schema, where, migrate, acceptLoss, who });
    return { kind: 'postgres', location: where, address, clockProblem: undefined, ...facts };
  }

  function connection(): Promise<Connection> {
    connecting ??=
      options.client === undefined
        ? connect(options.url, timeoutMs)
        : Promise.resolve(adaptClient(options.client));
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
    if (options.client !== undefined && isInTransaction(options.client)) throw insideTransactionError(where);
    return retryConflicts(() => withTimeout(ask(text, values, name), clock, timeoutMs));
  }

  async function call(...[question, values]: Parameters<Call>): ReturnType<Call> {
    const { text, name } = statements[question];
    const { lists } = await connection();
    // Our own pool has its own timeout.
    if (lists !== undefined)
      return retryConflicts(() => lists(text, encodeValues(question, values, encodeBinaryArray), name));
    const [row] = await query(
      text,
      encodeValues(question, values, (_, list) => encodeArray(list)),
      name,
    );
    return parseAnswer(row);
  }
}

async function retryConflicts<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      // SM001: pruning raised the floor meanwhile. The next attempt sees the new one.
      const isPassing = isConflict(error) || readSqlState(error) === 'SM001';
      if (!isPassing || tries >= mostTries) throw error;
    }
  }
}

function encodeRemoval({ before, row, revision, events }: Removal): object {
  const { namespace, key } = before.row;
  const about = { namespace, key, old: before.revision };
  if (row === undefined) return about;
  const types = events === undefined ? null : JSON.stringify(events);
  return { ...about, revision, ...encode(row), types };
}
