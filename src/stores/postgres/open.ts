// Whether a database may keep a ledger, and whether the ledger is there. What it cannot promise is refused in a
// sentence, before anything is claimed.

import { SemelError } from '../../core/errors.ts';
import { refusalOf, type Standing } from '../../store/move/ledger-state.ts';
import { type Connection, isTrue } from './client.ts';
import { isolationNext } from './failure.ts';
import { isNewer, migration, schemaVersion, versionOf, within } from './schema.ts';

export interface OpenOptions {
  readonly schema: string;
  readonly migrate: boolean;
  readonly acceptLoss: boolean;
  readonly where: string;
  /** Whoever moves the ledger may open it also while it is closed to its users. */
  readonly who: 'users' | 'whoever';
}

export interface ServerFacts {
  readonly server: string;
  readonly schema: number;
  /** A sentence where this server may forget what it has confirmed. */
  readonly forgets: string | undefined;
}

/** Older ones get no more repairs. */
const oldestVersion = 140_000;

/** Of the schema: two tables, and no checksums that the database could make. */
const unreleasedVersion = 1;

export function checkSchemaName(schema: string): string {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(schema) && !schema.startsWith('pg_')) return schema;
  throw new SemelError('CONTRACT_INVALID', `${JSON.stringify(schema)} is no name for the schema.`, {
    path: 'schema',
    next: 'Use lower-case letters, digits and underscores, at most 63, not starting with a digit or "pg_".',
  });
}

/** Fails inside a transaction, where nothing that semel writes would be durable. */
const outsideTransaction = 'DO $$ BEGIN COMMIT; END $$';

/** Policies of row security hide rows from this user: a record that is there would look as if it were not. */
const hides = ['records', 'events']
  .map((table) => `pg_catalog.row_security_active('semel.${table}'::regclass)`)
  .join(' OR ');

/** A crash of the server empties what it does not log: everything would be done again. */
const isUnlogged = `EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.relpersistence OPERATOR(pg_catalog.<>) 'p'
    AND c.oid OPERATOR(pg_catalog.=) ANY (ARRAY['semel.records'::regclass::oid, 'semel.meta'::regclass::oid]))`;

/** A restore creates the primary key last, or fails to: until then every claim of a key wins. */
const isWithoutKey = `NOT EXISTS (SELECT FROM pg_catalog.pg_index i
    WHERE i.indrelid OPERATOR(pg_catalog.=) 'semel.records'::regclass::oid AND i.indisprimary AND i.indisvalid)`;

/** A trigger can drop or change what semel writes, after the database has confirmed it. Its own constraints have none. */
const triggerName = `(SELECT pg_catalog.min(t.tgname) FROM pg_catalog.pg_trigger t WHERE NOT t.tgisinternal
    AND t.tgenabled OPERATOR(pg_catalog.<>) 'D'
    AND t.tgrelid OPERATOR(pg_catalog.=) ANY (ARRAY['semel.records'::regclass::oid, 'semel.meta'::regclass::oid]))`;

/** Who may make a record and not change it would run the effect and could not say that it is done. */
const hasHalf = `(pg_catalog.has_table_privilege('semel.records', 'INSERT') AND NOT (
    pg_catalog.has_table_privilege('semel.records', 'SELECT') AND pg_catalog.has_table_privilege('semel.records', 'UPDATE')
    AND pg_catalog.has_table_privilege('semel.events', 'INSERT')))`;

export async function openLedger(query: Connection['query'], options: OpenOptions): Promise<ServerFacts> {
  await query(outsideTransaction);
  const [server = {}] = await query(`SELECT
    pg_catalog.current_setting('server_version_num')::integer AS number, pg_catalog.current_setting('server_version') AS version,
    pg_catalog.pg_is_in_recovery() AS replica, pg_catalog.current_setting('transaction_read_only') AS read_only,
    pg_catalog.current_setting('synchronous_commit') AS commits, pg_catalog.current_setting('fsync') AS fsync,
    pg_catalog.current_setting('full_page_writes') AS whole_pages, pg_catalog.current_setting('server_encoding') AS encoding,
    pg_catalog.current_setting('transaction_isolation') AS isolation`);
  const forgets = refuse(server, options);
  const found = await versionOf(query, options.schema);
  if (options.migrate && found < schemaVersion && found !== unreleasedVersion)
    await query(migration(options.schema));
  const version = await versionOf(query, options.schema);
  if (version < schemaVersion) throw notMigrated(version, options);
  const [meta] = await query(
    within(
      options.schema,
      `SELECT *, ${hides} AS hides, ${isUnlogged} AS unlogged, ${isWithoutKey} AS keyless, ${hasHalf} AS half,
        ${triggerName} AS trigger_name FROM semel.meta`,
    ),
  );
  if (meta === undefined) throw lost(options);
  if (isTrue(meta.hides)) throw hidden(options);
  if (isTrue(meta.half)) throw halfAllowed(options);
  if (isTrue(meta.keyless)) throw keyless(options);
  if (meta.trigger_name != null) throw hasTrigger(options, String(meta.trigger_name));
  if (isTrue(meta.unlogged) && !options.acceptLoss) throw unlogged(options);
  if (Number(meta.min_writer) > schemaVersion) throw isNewer(options.where);
  const refused = options.who === 'users' ? refusalOf(standingOf(meta), options.where) : undefined;
  if (refused !== undefined) throw refused;
  const empties = isTrue(meta.unlogged)
    ? 'This ledger forgets everything after a crash: it is UNLOGGED.'
    : undefined;
  const sentences = [forgets, empties].filter((each) => each !== undefined);
  return {
    server: `Postgres ${server.version}`,
    schema: version,
    forgets: sentences.length === 0 ? undefined : sentences.join(' '),
  };
}

/** What was found at the server that rules it out. */
function refuse(server: Record<string, unknown>, { where, acceptLoss }: OpenOptions): string | undefined {
  const unsafe = (happened: string, next: string) => new SemelError('STORE_UNSAFE', happened, { next });
  if (Number(server.number) < oldestVersion)
    throw unsafe(
      `Postgres at ${where} is version ${server.version}, which is too old.`,
      'Use version 14 or newer.',
    );
  if (isTrue(server.replica) || server.read_only === 'on')
    throw unsafe(`Postgres at ${where} is a replica or read-only.`, 'Point semel at the primary.');
  if (server.encoding !== 'UTF8')
    throw unsafe(
      `The database at ${where} has the encoding ${server.encoding}, which cannot hold every record.`,
      'Use a database with the encoding UTF8.',
    );
  if (server.isolation !== 'read committed')
    throw unsafe(
      `The connection to ${where} is at isolation level ${server.isolation}, at which a key could be taken twice.`,
      isolationNext,
    );
  const weak = [
    server.commits === 'off' && 'synchronous_commit is off',
    server.fsync === 'off' && 'fsync is off',
    server.whole_pages === 'off' && 'full_page_writes is off',
  ].filter((reason) => reason !== false);
  if (weak.length === 0) return undefined;
  if (!acceptLoss)
    throw unsafe(
      `Postgres at ${where} can lose what it has confirmed: ${weak.join(', ')}. An effect could be repeated.`,
      "Switch it on for this database or user, or accept the loss with `durability: 'accept-loss'`.",
    );
  return `This ledger can forget after a crash of the server: ${weak.join(', ')}.`;
}

export function standingOf(meta: Readonly<Record<string, unknown>>): Standing {
  return {
    incarnation: String(meta.incarnation),
    movedTo: (meta.moved_to as string | null) ?? null,
    cameFrom: (meta.came_from as string | null) ?? null,
    filling: isTrue(meta.filling),
  };
}

function notMigrated(version: number, { where }: OpenOptions): SemelError {
  const what =
    version === 0 ? 'is not there yet' : `has schema ${version}, and this program needs ${schemaVersion}`;
  return new SemelError('STORE_UNSAFE', `The ledger at ${where} ${what}.`, {
    next:
      version === unreleasedVersion
        ? 'It was never part of a release. Use another schema, or drop this one.'
        : 'Run `semel store migrate` with a user who may create tables, or leave `migrate` on.',
  });
}

function hidden({ where }: OpenOptions): SemelError {
  return new SemelError(
    'STORE_UNSAFE',
    `Row security hides records of the ledger at ${where} from this user.`,
    {
      next: 'Switch it off for the tables of the ledger, or use a user with BYPASSRLS. Give each tenant a schema of its own.',
    },
  );
}

function halfAllowed({ where }: OpenOptions): SemelError {
  return new SemelError(
    'STORE_UNSAFE',
    `The user of the connection may make records in the ledger at ${where}, and may not change them or their history: what was done could not be recorded.`,
    { next: 'Nothing was run. Grant it usage of the schema, and all of its tables and functions.' },
  );
}

function keyless({ where }: OpenOptions): SemelError {
  return new SemelError(
    'STORE_UNSAFE',
    `The table of the ledger at ${where} has no primary key: a restore is not over, or it has failed. A key could be taken twice.`,
    { next: 'Nothing was run. Finish the restore, or restore the backup again; then start this program.' },
  );
}

function hasTrigger({ where }: OpenOptions, name: string): SemelError {
  return new SemelError(
    'STORE_UNSAFE',
    `The ledger at ${where} has a trigger, ${JSON.stringify(name)}: it can change what semel writes, and an effect could be repeated.`,
    {
      next: 'Nothing was run. Drop or disable it. To watch a ledger, use logical replication or `semel export`.',
    },
  );
}

function unlogged({ where }: OpenOptions): SemelError {
  return new SemelError(
    'STORE_UNSAFE',
    `The tables of the ledger at ${where} are UNLOGGED: a crash of the server empties them, and everything would be done again.`,
    { next: "Write ALTER TABLE … SET LOGGED for each, or accept the loss with `durability: 'accept-loss'`." },
  );
}

function lost({ where }: OpenOptions): SemelError {
  return new SemelError('STORE_UNSAFE', `The ledger at ${where} has lost its description.`, {
    next: 'Restore it from a backup.',
  });
}
