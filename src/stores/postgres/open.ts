// Opens the ledger, creating or migrating it if allowed. Refuses a database that cannot keep records safely, before
// anything is claimed.

import { SemelError } from '../../core/errors.ts';
import { refusalOf, type Standing } from '../../store/move/ledger-state.ts';
import { askRow, type Connection, isTrue } from './client.ts';
import { isolationNext } from './failure.ts';
import { functionNames, migration, newerError, qualify, readVersion, schemaVersion } from './schema.ts';

interface OpenOptions {
  readonly schema: string;
  readonly migrate: boolean;
  readonly acceptLoss: boolean;
  readonly where: string;
  /** A mover may open the ledger even while it is closed to its users. */
  readonly who: 'user' | 'mover';
}

interface ServerFacts {
  readonly server: string;
  readonly schema: number;
  /** A sentence if this server can lose confirmed writes. */
  readonly forgets: string | undefined;
}

/** Older versions get no more fixes. */
const oldestVersion = 140_000;

/** A schema that was never released and cannot be migrated. */
const unreleasedVersion = 1;

export function checkSchemaName(schema: string): string {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(schema) && !schema.startsWith('pg_')) return schema;
  throw new SemelError('CONTRACT_INVALID', `${JSON.stringify(schema)} is not a valid schema name.`, {
    path: 'schema',
    next: 'Use lower-case letters, digits and underscores, at most 63, not starting with a digit or "pg_".',
  });
}

/** Fails inside a transaction, where nothing that semel writes would be durable. */
const outsideTransaction = 'DO $$ BEGIN COMMIT; END $$';

/** Row security can hide rows from this user: an existing record would seem absent. */
export const hides: string = ['records', 'events', 'outbox']
  .map((table) => `pg_catalog.row_security_active('semel.${table}'::regclass)`)
  .join(' OR ');

/** A server crash empties unlogged tables: every effect would be repeated. */
const isUnlogged = `EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.relpersistence OPERATOR(pg_catalog.<>) 'p'
    AND c.oid OPERATOR(pg_catalog.=) ANY (ARRAY['semel.records'::regclass::oid, 'semel.meta'::regclass::oid, 'semel.outbox'::regclass::oid]))`;

/** A restore creates the primary key last; until then, every claim of a key wins. */
const isWithoutKey = `NOT EXISTS (SELECT FROM pg_catalog.pg_index i
    WHERE i.indrelid OPERATOR(pg_catalog.=) 'semel.records'::regclass::oid AND i.indisprimary AND i.indisvalid)`;

/** A trigger can drop or change what semel writes, after the database has confirmed it. Constraints have internal ones. */
const triggerName = `(SELECT pg_catalog.min(t.tgname) FROM pg_catalog.pg_trigger t WHERE NOT t.tgisinternal
    AND t.tgenabled OPERATOR(pg_catalog.<>) 'D'
    AND t.tgrelid OPERATOR(pg_catalog.=) ANY (ARRAY['semel.records'::regclass::oid, 'semel.meta'::regclass::oid, 'semel.outbox'::regclass::oid]))`;

/** A second function of the same name, for other parameters, makes our calls ambiguous: some claim, and none can settle. */
const secondFunction = `(SELECT pg_catalog.min(p.proname) FROM pg_catalog.pg_proc p
    WHERE p.pronamespace OPERATOR(pg_catalog.=) (SELECT c.relnamespace FROM pg_catalog.pg_class c
      WHERE c.oid OPERATOR(pg_catalog.=) 'semel.records'::regclass::oid)
    AND p.proname OPERATOR(pg_catalog.=) ANY (ARRAY[${functionNames.map((name) => `'${name}'`).join(', ')}]::name[])
    AND EXISTS (SELECT FROM pg_catalog.pg_proc o WHERE o.pronamespace OPERATOR(pg_catalog.=) p.pronamespace
      AND o.proname OPERATOR(pg_catalog.=) p.proname AND o.oid OPERATOR(pg_catalog.<>) p.oid))`;

/** A user who can insert a record but not update it would run the effect and could not settle it. */
const hasHalf = `(pg_catalog.has_table_privilege('semel.records', 'INSERT') AND NOT (
    pg_catalog.has_table_privilege('semel.records', 'SELECT') AND pg_catalog.has_table_privilege('semel.records', 'UPDATE')
    AND pg_catalog.has_table_privilege('semel.events', 'INSERT')))`;

export async function openLedger(query: Connection['query'], options: OpenOptions): Promise<ServerFacts> {
  await query(outsideTransaction);
  const server = await askRow(
    query,
    `SELECT
    pg_catalog.current_setting('server_version_num')::integer AS number, pg_catalog.current_setting('server_version') AS version,
    pg_catalog.pg_is_in_recovery() AS replica, pg_catalog.current_setting('transaction_read_only') AS read_only,
    pg_catalog.current_setting('synchronous_commit') AS commits, pg_catalog.current_setting('fsync') AS fsync,
    pg_catalog.current_setting('full_page_writes') AS whole_pages, pg_catalog.current_setting('server_encoding') AS encoding,
    pg_catalog.current_setting('transaction_isolation') AS isolation,
    pg_catalog.current_setting('client_encoding') AS converts, pg_catalog.current_setting('array_nulls') AS nulls`,
  );
  if (server === undefined) throw new Error('no answer to what the server is');
  const forgets = checkServer(server, options);
  const found = await readVersion(query, options.schema);
  if (options.migrate && found < schemaVersion && found !== unreleasedVersion)
    await query(migration(options.schema));
  const version = await readVersion(query, options.schema);
  if (version < schemaVersion) throw notMigratedError(version, options);
  const meta = await askRow(
    query,
    qualify(
      options.schema,
      `SELECT *, ${hides} AS hides, ${isUnlogged} AS unlogged, ${isWithoutKey} AS keyless, ${hasHalf} AS half,
        ${triggerName} AS trigger_name, ${secondFunction} AS second_function FROM semel.meta`,
    ),
  );
  refuseUnsafeTables(meta, options);
  if (Number(meta.min_writer) > schemaVersion) throw newerError(options.where);
  const refused = options.who === 'user' ? refusalOf(parseStanding(meta), options.where) : undefined;
  if (refused !== undefined) throw refused;
  const empties = isTrue(meta.unlogged)
    ? 'A server crash empties this ledger: its tables are UNLOGGED.'
    : undefined;
  const sentences = [forgets, empties].filter((each) => each !== undefined);
  return {
    server: `Postgres ${server.version}`,
    schema: version,
    forgets: sentences.length === 0 ? undefined : sentences.join(' '),
  };
}

/** Throws if the server is unfit; returns a sentence if it can lose writes and the user accepted that. */
function checkServer(
  server: Record<string, unknown>,
  { where, acceptLoss }: OpenOptions,
): string | undefined {
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
  // Drivers send UTF-8, whatever the session was set to since. With SQL_ASCII nothing is converted.
  if (server.converts !== 'UTF8' && server.converts !== 'SQL_ASCII')
    throw unsafe(
      `The connection to ${where} converts text to ${server.converts}, so other connections would not find what it writes.`,
      'Nothing was run. Use a connection whose client_encoding is UTF8.',
    );
  if (server.nulls === 'off')
    throw unsafe(
      `array_nulls is off on the connection to ${where}, which would corrupt records.`,
      'Nothing was run. Use a connection where it is on.',
    );
  if (server.isolation !== 'read committed')
    throw unsafe(
      `The connection to ${where} is at isolation level ${server.isolation}, at which a key could be claimed twice.`,
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
      `Postgres at ${where} can lose confirmed writes: ${weak.join(', ')}. An effect could be repeated.`,
      "Switch it on for this database or user, or accept the loss, as in development: `?durability=accept-loss` in the URL, or the option `durability: 'accept-loss'`.",
    );
  return `This ledger can lose writes if the server crashes: ${weak.join(', ')}.`;
}

export function parseStanding(meta: Readonly<Record<string, unknown>>): Standing {
  return {
    incarnation: String(meta.incarnation),
    movedTo: (meta.moved_to as string | null) ?? null,
    cameFrom: (meta.came_from as string | null) ?? null,
    filling: isTrue(meta.filling),
  };
}

function refuseUnsafeTables(
  meta: Record<string, unknown> | undefined,
  { where, acceptLoss }: OpenOptions,
): asserts meta is Record<string, unknown> {
  if (meta === undefined)
    throw unsafe(
      `The ledger at ${where} has lost its description (table meta).`,
      'Restore it from a backup.',
    );
  if (isTrue(meta.hides))
    throw unsafe(
      `Row security hides records of the ledger at ${where} from this user.`,
      'Switch it off for the tables of the ledger, or use a user with BYPASSRLS. Give each tenant a schema of its own.',
    );
  if (isTrue(meta.half))
    throw unsafe(
      `The user of the connection can create records in the ledger at ${where} but not change them or their history: no result could be recorded.`,
      'Nothing was run. Grant it usage of the schema and all of its tables and functions.',
    );
  if (isTrue(meta.keyless))
    throw unsafe(
      `The table of the ledger at ${where} has no primary key: a restore is still running, or it failed. A key could be claimed twice.`,
      'Nothing was run. Finish the restore, or restore the backup again; then start this program.',
    );
  if (meta.trigger_name != null)
    throw unsafe(
      `The ledger at ${where} has a trigger, ${JSON.stringify(String(meta.trigger_name))}: it can change what semel writes, and an effect could be repeated.`,
      'Nothing was run. Drop or disable it. To watch a ledger, use logical replication or `semel export`.',
    );
  if (meta.second_function != null)
    throw unsafe(
      `The schema of the ledger at ${where} has a second function named ${JSON.stringify(String(meta.second_function))}, so that semel's own cannot be called.`,
      'Nothing was run. Drop it, and let nobody else create functions there: REVOKE CREATE ON SCHEMA.',
    );
  if (isTrue(meta.unlogged) && !acceptLoss)
    throw unsafe(
      `The tables of the ledger at ${where} are UNLOGGED: a server crash empties them, and every effect would be repeated.`,
      "Write ALTER TABLE … SET LOGGED for each, or accept the loss, as in development: `?durability=accept-loss` in the URL, or the option `durability: 'accept-loss'`.",
    );
}

function notMigratedError(version: number, { where }: OpenOptions): SemelError {
  const what =
    version === 0 ? 'does not exist yet' : `has schema ${version}, but this program needs ${schemaVersion}`;
  return unsafe(
    `The ledger at ${where} ${what}.`,
    version === unreleasedVersion
      ? 'It was never part of a release. Use another schema, or drop this one.'
      : 'Run `semel store migrate` as a user who can create tables, or leave `migrate` on.',
  );
}

function unsafe(happened: string, next: string): SemelError {
  return new SemelError('STORE_UNSAFE', happened, { next });
}
