// The store in a Postgres database. Every question is one statement on any connection, so that a pool or a pooler in
// transaction mode is enough; many questions at once are one statement too.

import { type Clock, type Random, systemClock, systemRandom } from '../../core/clock.ts';
import { fullAddress, redactAddress } from '../../store/address.ts';
import { dispatchedFlag, statusCode } from '../../store/columns.ts';
import { isDamaged, parseDetail, readOrDamage } from '../../store/damage.ts';
import type { Found, RemoteBackend, Removal } from '../../store/remote/backend.ts';
import { withTimeout } from '../../store/remote/in-time.ts';
import { remoteStore } from '../../store/remote/remote-store.ts';
import type { Store, StoreEvent, StoreFacts } from '../../store/store.ts';
import { arrayOf, binaryArrayOf, isListType, type ListType, type Value } from './array.ts';
import { type Connection, connectionOf, type PostgresClient, showsTransaction } from './client.ts';
import { connect, placeOf, usualSchema } from './connection.ts';
import { type Call, eventOf, exchange } from './exchange.ts';
import { type QuestionName, questions } from './exchange-functions.ts';
import { inTransaction, isConflict, isDataError, judge, sqlStateOf } from './failure.ts';
import { openRows } from './functions.ts';
import { listRows } from './list.ts';
import { checkSchemaName, openLedger } from './open.ts';
import { postgresRaw } from './raw.ts';
import { foundIn, itemOf, type Packed, packed } from './rows.ts';
import { planMigration, schemaVersion, within } from './schema.ts';

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

export function postgresStore(options: PostgresStoreOptions): Store {
  const { clock = systemClock, random = systemRandom } = options;
  const { backend, raw, migration } = postgresBackend(options, clock, random);
  return { ...remoteStore(backend, { clock, random }), raw, migration };
}

interface PostgresBackend extends Pick<Required<Store>, 'raw' | 'migration'> {
  readonly backend: RemoteBackend;
}

function postgresBackend(options: PostgresStoreOptions, clock: Clock, random: Random): PostgresBackend {
  const schema = checkSchemaName(options.schema ?? usualSchema);
  const where = placeOf(options.url, schema);
  const timeoutMs = options.timeoutMs ?? 10_000;
  const sql = (text: string) => within(schema, text);
  const expired = `(SELECT * FROM semel.records WHERE expires <= t.now AND NOT ${openRows} ORDER BY expires LIMIT $1)`;
  const dueOf = (rows: string) =>
    sql(`SELECT t.now, (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(${packed()}))::text FROM (
        SELECT * FROM (${rows}) AS d LIMIT $1) AS r) AS found
      FROM (SELECT semel.now_ms() AS now) AS t`);
  const texts = {
    now: sql('SELECT semel.now_ms() AS now'),
    remove: sql('SELECT semel.remove($1::text::json, $2::integer) AS removed'),
    // What is open is looked through: a worker that died before the line left it there. What may only go later must not
    // take the place of what may go now. Texts beside what is asked for are read too, and one with a NUL could not be:
    // \u is made harmless, also where its backslash is itself an escaped one.
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
    // One step of an index per namespace, not one per record.
    namespaces: sql(`WITH RECURSIVE names AS (
      SELECT pg_catalog.min(namespace) AS namespace FROM semel.records
      UNION ALL SELECT (SELECT pg_catalog.min(r.namespace) FROM semel.records r WHERE r.namespace > n.namespace)
      FROM names n WHERE n.namespace IS NOT NULL)
      SELECT namespace FROM names WHERE namespace IS NOT NULL`),
  };
  // A transaction can be open on a client that the program uses too; never on a connection of our own.
  const statements = statementsOf(schema, options.client === undefined);
  let connecting: Promise<Connection> | undefined;

  const address = fullAddress(options.url, {
    schema: schema === usualSchema ? undefined : schema,
    durability: options.durability,
  });

  const backend: RemoteBackend = {
    open: () => open('users'),
    async now() {
      const [row] = await query(texts.now);
      return Number(row?.now);
    },
    exchange: (swaps) => exchange(call, swaps),
    list: (asked) => listRows(query, schema, asked),
    async due(limit) {
      // An open record that the server itself cannot read must not keep all others from going.
      const [row] = await query(texts.due, [limit]).catch((error: unknown) => {
        if (!isDataError(error)) throw error;
        return query(texts.dueOfClosed, [limit]);
      });
      const packedRows = JSON.parse((row?.found as string | null) ?? '[]') as Packed[];
      const found = packedRows.map((values) => readOrDamage(() => foundIn(values)));
      return { now: Number(row?.now), found: found.filter((one): one is Found => !isDamaged(one)) };
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
    open: () => open('whoever'),
  });
  return {
    backend,
    raw,
    migration: () => planMigration({ query, schema, where, open: () => open('whoever', true) }),
  };

  async function open(who: 'users' | 'whoever', migrate = options.migrate ?? true): Promise<StoreFacts> {
    const acceptLoss = options.durability === 'accept-loss';
    const facts = await openLedger(query, { schema, where, migrate, acceptLoss, who });
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
    return persistently(() => withTimeout(ask(text, values, name), clock, timeoutMs));
  }

  async function call(...[asked, values]: Parameters<Call>): ReturnType<Call> {
    const { text, name } = statements[asked];
    const { lists } = await connection();
    // The pool that is ours keeps the time itself.
    if (lists !== undefined)
      return persistently(() => lists(text, encoded(asked, values, binaryArrayOf), name));
    const [row] = await query(
      text,
      encoded(asked, values, (_, list) => arrayOf(list)),
      name,
    );
    return (JSON.parse(row?.answer as string) as (string | object)[]).map((one) =>
      typeof one === 'string' ? [one] : Object.values(one),
    );
  }
}

interface Statement {
  readonly text: string;
  readonly name: string | undefined;
}

/** To others' clients lists are a text first, whatever a driver would make of one: the server reads it. */
function statementsOf(schema: string, isOwn: boolean): Record<QuestionName, Statement> {
  const entries = Object.entries(questions).map(([question, { of, parameters }]) => {
    const given = parameters.map(([parameter, type], index) => {
      const isText = type === 'json' || (!isOwn && isListType(type));
      return `${parameter} => $${index + 1}::${isText ? 'text::' : ''}${type}`;
    });
    const list = given.join(', ');
    const isRows = of === 'look';
    const ask = isOwn
      ? `SELECT ${isRows ? '* FROM ' : ''}semel.${of}(${list})`
      : `CALL semel.own_${of}(${list})`;
    return [
      question,
      { text: within(schema, ask), name: nameOf(`semel ${schemaVersion} ${question} ${schema}`) },
    ];
  });
  return Object.fromEntries(entries);
}

function encoded(
  asked: QuestionName,
  values: Parameters<Call>[1],
  encode: (type: ListType, list: readonly Value[]) => unknown,
): readonly unknown[] {
  const { parameters } = questions[asked];
  return values.map((value, index) =>
    Array.isArray(value) ? encode(parameters[index]?.[1] as ListType, value) : value,
  );
}

async function persistently<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      // The floor was raised by somebody else between two statements: the answer tells it next time.
      const isPassing = isConflict(error) || sqlStateOf(error) === 'SM001';
      if (!isPassing || tries >= mostTries) throw error;
    }
  }
}

/** A name that Postgres would cut off might meet another. */
function nameOf(name: string): string | undefined {
  return name.length > 63 ? undefined : name;
}

function removalOf({ before, row, revision, events }: Removal): object {
  const { namespace, key } = before.row;
  const about = { namespace, key, old: before.revision };
  if (row === undefined) return about;
  const types = events === undefined ? null : JSON.stringify(events);
  return { ...about, revision, ...itemOf(row), types };
}
