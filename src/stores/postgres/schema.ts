// The tables and functions, and how an older schema is migrated. test/stores/postgres-schema.sql shows the result. A
// migration is one statement under one lock, so that many programs can start at once.

import { SemelError } from '../../core/errors.ts';
import type { Migration } from '../../store/store.ts';
import { type Connection, isTrue } from './client.ts';
import {
  lookFunction,
  ownProcedure,
  swapFunction,
  swapWithOutboxFunction,
  writeFunction,
  writeWithOutboxFunction,
} from './exchange-functions.ts';
import { judge } from './failure.ts';
import {
  appendFunction,
  openRows,
  refillFunction,
  removeFunction,
  removeWithOutboxFunction,
  standFunction,
  standWithOutboxFunction,
} from './functions.ts';
import {
  finishFunction,
  keepFunction,
  markFunction,
  noteDriftFunction,
  outboxTables,
  stageFunction,
  stageNewFunction,
  takeFunction,
} from './outbox-functions.ts';

/**
 * `more` with each escape such as \u0000 or half of a pair as its own text: Postgres cannot read those, and one record would
 * hide all. JSON has no raw chr(1), so it can stand for an escaped backslash meanwhile. No backslash is written here,
 * because a session may give it another meaning.
 */
const backslash = 'pg_catalog.chr(92)';
const escaped = `pg_catalog.repeat(${backslash}, 2)`;
const mark = 'pg_catalog.chr(1)';
const readableMore = `pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(more, ${escaped}, ${mark}),
    pg_catalog.concat(${backslash}, 'u'), pg_catalog.concat(${mark}, 'u')), ${mark}, ${escaped})::pg_catalog.json`;

/** One list of statements per version. A released list never changes. `semel` stands for the schema. */
export const migrations: readonly (readonly string[])[] = [
  // Never released and never migrated: open.ts refuses it.
  [],
  [
    // One row. `min_writer` is the oldest version that may still write; raise it only once nothing older runs. moved_to,
    // came_from, filling: see src/store/move/ledger-state.ts.
    `CREATE TABLE semel.meta (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  min_writer integer NOT NULL,
  incarnation text NOT NULL,
  floor bigint NOT NULL DEFAULT 0,
  moved_to text,
  came_from text,
  filling boolean NOT NULL DEFAULT false
)`,
    // created, expires: milliseconds since the epoch; settled: since created; sum: checksum.ts. Every settlement leaves a
    // dead row version behind, so vacuum earlier than by default.
    `CREATE TABLE semel.records (
  revision bigint NOT NULL,
  fence bigint NOT NULL,
  created bigint NOT NULL,
  expires bigint,
  settled bigint,
  sum integer NOT NULL,
  status smallint NOT NULL,
  flags smallint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  token bytea,
  version text NOT NULL,
  owner text NOT NULL,
  args text,
  content text,
  result text,
  asker text,
  more text,
  PRIMARY KEY (namespace, key)
) WITH (autovacuum_vacuum_scale_factor = 0.05)`,
    // Running or in doubt: few rows, and the ones that people look for first.
    `CREATE INDEX open_records ON semel.records (namespace, key) WHERE ${openRows}`,
    'CREATE INDEX record_expiry ON semel.records (expires) WHERE expires IS NOT NULL',
    `CREATE TABLE semel.events (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  generation bigint NOT NULL,
  fence bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  type text NOT NULL,
  detail text NOT NULL
)`,
    'CREATE INDEX events_of ON semel.events (namespace, key, n)',
    // For people with an SQL shell. Without operators: the search path of the one who migrates may have others of that name.
    `CREATE VIEW semel.operations AS SELECT
  namespace,
  key,
  (ARRAY['running', 'succeeded', 'failed', 'released', 'unknown'])[pg_catalog.int4pl(status::integer, 1)] AS status,
  coalesce(pg_catalog.json_extract_path_text(${readableMore}, 'attempts')::integer, 1) AS attempts,
  CASE WHEN pg_catalog.int2eq(status, 0::smallint) THEN pg_catalog.to_timestamp(pg_catalog.float8div(
    pg_catalog.json_extract_path_text(${readableMore}, 'lease', '1')::double precision, 1000)) END AS locked_until,
  owner,
  args,
  result,
  pg_catalog.json_extract_path_text(${readableMore}, 'error', 'message') AS error,
  pg_catalog.to_timestamp(pg_catalog.float8div(created::double precision, 1000)) AS created_at,
  pg_catalog.to_timestamp(pg_catalog.float8div(pg_catalog.int8pl(created, settled)::double precision, 1000)) AS settled_at,
  pg_catalog.to_timestamp(pg_catalog.float8div(expires::double precision, 1000)) AS expires_at
FROM semel.records`,
    // The current time, not the start of the transaction.
    `CREATE FUNCTION semel.now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT pg_catalog.floor(extract(epoch FROM pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000)::bigint $$`,
    writeFunction(),
    swapFunction(),
    lookFunction(),
    ownProcedure('write'),
    ownProcedure('swap'),
    ownProcedure('look'),
    removeFunction(),
    appendFunction(),
    standFunction(),
    refillFunction(),
  ],
  [
    ...outboxTables(),
    stageFunction(),
    stageNewFunction(),
    noteDriftFunction(),
    takeFunction(),
    markFunction(),
    keepFunction(),
    finishFunction(),
    standWithOutboxFunction(),
    removeWithOutboxFunction(),
    writeWithOutboxFunction(),
    swapWithOutboxFunction(),
  ],
];

export const schemaVersion: number = migrations.length;

/** Functions and procedures that are called by name. */
export const functionNames: readonly string[] = migrations
  .flat()
  .flatMap((statement) => /^CREATE (?:FUNCTION|PROCEDURE) semel\.(\w+)/.exec(statement)?.[1] ?? []);

/** Puts in the schema's name, which `checkSchemaName` has checked. */
export function qualify(schema: string, sql: string): string {
  return sql.replaceAll('semel.', `"${schema}".`);
}

/**
 * Creates or migrates the schema in one statement, and so in one transaction, even behind a pooler. Programs that start
 * at the same time run it one after the other.
 */
export function migration(schema: string, lists: readonly (readonly string[])[] = migrations): string {
  const steps = lists.map(
    (list, index) => `  IF version < ${index + 1} THEN
${list.map((statement) => `    EXECUTE $step$${qualify(schema, statement)}$step$;`).join('\n')}
  END IF;`,
  );
  return `DO $migrate$
DECLARE version integer := 0;
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('semel migrate'), pg_catalog.hashtext('${schema}'));
  IF pg_catalog.to_regnamespace('"${schema}"') IS NULL THEN CREATE SCHEMA "${schema}"; END IF;
  IF pg_catalog.to_regclass('"${schema}".meta') IS NOT NULL THEN
    EXECUTE 'SELECT version FROM "${schema}".meta' INTO version;
  END IF;
${steps.join('\n')}
  IF version = 0 THEN
    EXECUTE 'INSERT INTO "${schema}".meta (version, min_writer, incarnation) VALUES (${lists.length}, 1, pg_catalog.gen_random_uuid())';
  ELSIF version < ${lists.length} THEN
    EXECUTE 'UPDATE "${schema}".meta SET version = ${lists.length}';
  END IF;
END $migrate$`;
}

/** 0 if there is no ledger. */
export async function readVersion(query: Connection['query'], schema: string): Promise<number> {
  const [found] = await query(`SELECT pg_catalog.to_regclass('"${schema}".meta') IS NOT NULL AS there`);
  if (!isTrue(found?.there)) return 0;
  const [meta] = await query(qualify(schema, 'SELECT version FROM semel.meta'));
  return meta === undefined ? 0 : Number(meta.version);
}

export function newerError(where: string): SemelError {
  return new SemelError('STORE_UNSAFE', `The ledger at ${where} belongs to a newer version of semel.`, {
    next: 'Upgrade semel in this program.',
  });
}

interface MigrationOptions {
  readonly query: Connection['query'];
  readonly schema: string;
  readonly where: string;
  /** Opens the ledger, and creates or migrates the schema. */
  open(): Promise<unknown>;
}

export async function planMigration({ query, schema, where, open }: MigrationOptions): Promise<Migration> {
  const from = await explainErrors(() => readVersion(query, schema));
  if (from > schemaVersion) throw newerError(where);
  return {
    from,
    to: schemaVersion,
    // One statement under one lock, so running it by hand does what `run` does.
    statements: from < migrations.length ? [migration(schema)] : [],
    run: () => explainErrors(async () => void (await open())),
  };

  async function explainErrors<T>(question: () => Promise<T>): Promise<T> {
    try {
      return await question();
    } catch (error) {
      throw judge(error, where).error;
    }
  }
}
