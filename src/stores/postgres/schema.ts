// The tables, and how an older schema becomes this one. test/stores/postgres-schema.sql shows the result. Everything is
// made by one statement list under one lock, so that many programs may start at once.

import { SemelError } from '../../core/errors.ts';
import type { Migration } from '../../store/store.ts';
import { type Connection, isTrue } from './client.ts';
import { lookFunction, ownProcedure, swapFunction, writeFunction } from './exchange-functions.ts';
import { judge } from './failure.ts';
import { appendFunction, openRows, refillFunction, removeFunction, standFunction } from './functions.ts';

/** One list of statements per version; a list that was released never changes. `semel` stands for the schema. */
export const migrations: readonly (readonly string[])[] = [
  // Never released, and never brought up to date: open.ts refuses it.
  [],
  [
    // One row. `min_writer` is the oldest version that may still write: raised only once nothing older runs. moved_to,
    // came_from, filling: whether it may be used, see src/store/move/ledger-state.ts.
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
    // created, expires: milliseconds since the epoch; settled: since created; sum: checksum.ts. A settlement leaves the version that the claim
    // wrote behind it: vacuumed before there are many.
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
    // What is running or in doubt: few rows, and the first that people look for.
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
    // The time at which a statement runs, not at which its transaction began.
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
];

export const schemaVersion: number = migrations.length;

/** Written with the schema's name, which is checked before. */
export function within(schema: string, sql: string): string {
  return sql.replaceAll('semel.', `"${schema}".`);
}

/**
 * One statement, and so one transaction, on whatever connection a pooler gives: makes the schema or brings it up to
 * date. Programs that start at the same moment come one after the other.
 */
export function migration(schema: string, lists: readonly (readonly string[])[] = migrations): string {
  const steps = lists.map(
    (list, index) => `  IF version < ${index + 1} THEN
${list.map((statement) => `    EXECUTE $step$${within(schema, statement)}$step$;`).join('\n')}
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

/** 0: there is none. */
export async function versionOf(query: Connection['query'], schema: string): Promise<number> {
  const [found] = await query(`SELECT pg_catalog.to_regclass('"${schema}".meta') IS NOT NULL AS there`);
  if (!isTrue(found?.there)) return 0;
  const [meta] = await query(within(schema, 'SELECT version FROM semel.meta'));
  return meta === undefined ? 0 : Number(meta.version);
}

export function isNewer(where: string): SemelError {
  return new SemelError('STORE_UNSAFE', `The ledger at ${where} is of a newer version of semel.`, {
    next: 'Update semel in this program.',
  });
}

export interface MigrationOptions {
  readonly query: Connection['query'];
  readonly schema: string;
  readonly where: string;
  /** With the schema made or brought up to date. */
  open(): Promise<unknown>;
}

export async function planMigration({ query, schema, where, open }: MigrationOptions): Promise<Migration> {
  const from = await asked(() => versionOf(query, schema));
  if (from > schemaVersion) throw isNewer(where);
  return {
    from,
    to: schemaVersion,
    // One statement under one lock: whoever runs it by hand does what `run` does.
    statements: from < migrations.length ? [migration(schema)] : [],
    run: () => asked(async () => void (await open())),
  };

  async function asked<T>(question: () => Promise<T>): Promise<T> {
    try {
      return await question();
    } catch (error) {
      throw judge(error, where).error;
    }
  }
}
