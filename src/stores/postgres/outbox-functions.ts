// The table of the outbox and its SQL functions. They keep rows and lend them; they never decide whether an effect may run.
// `semel` stands for the schema.

import { admission, byKey, byKeyAlone, declarations, gate, mostFence, readStanding } from './functions.ts';
import { packed } from './rows.ts';

export function outboxTables(): readonly string[] {
  return [
    // state: see src/store/outbox.ts. due: not taken before. ready: the same without loans, so never later; it is indexed
    // instead of `due`, so that lending a row rewrites no index, if its page has room. Rows come and go quickly, so
    // vacuum early.
    `CREATE TABLE semel.outbox (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  due bigint NOT NULL,
  ready bigint NOT NULL,
  staged bigint NOT NULL,
  generation bigint,
  tries integer NOT NULL DEFAULT 0,
  state smallint NOT NULL DEFAULT 0,
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  contract text COLLATE "C" NOT NULL,
  version text NOT NULL,
  group_name text COLLATE "C",
  fingerprint text COLLATE "C",
  caller text COLLATE "C",
  call text NOT NULL,
  reason text,
  drift text,
  UNIQUE (namespace, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500)`,
    'CREATE INDEX outbox_due ON semel.outbox (namespace, ready, n) WHERE state < 2::smallint',
    'CREATE INDEX outbox_groups ON semel.outbox (namespace, group_name, n) WHERE group_name IS NOT NULL',
  ];
}

/** A row as JSON. */
export const outboxJson = `pg_catalog.json_build_object('n', o.n, 'state', o.state, 'stagedAt', o.staged, 'dueAt', o.due, 'tries', o.tries,
    'generation', o.generation, 'namespace', o.namespace, 'key', o.key, 'contract', o.contract,
    'version', o.version, 'group', o.group_name, 'fingerprint', o.fingerprint, 'caller', o.caller, 'call', o.call, 'reason', o.reason, 'drift', o.drift)`;

/** Makes commits durable even in a session that does not wait for the disk. */
const durable = `IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;`;

/**
 * Which ledger this is, by what a copy or a restored backup does not share with it: table, server and database. By the name of
 * the database, which cannot change while anyone is connected to it: its number would have to be looked up.
 */
export const place: string = `pg_catalog.concat_ws(' ', m.incarnation, 'semel.meta'::regclass::oid,
    extract(epoch FROM pg_catalog.pg_postmaster_start_time()), pg_catalog.current_database())`;

const qualifiedGate = gate.slice(1, -1).replace("hashtext('semel')", "pg_catalog.hashtext('semel'::text)");

/**
 * Parameters of `stage`, each a text, which every driver sends alike; then `anyway` and `writer`. Not one JSON document: Postgres
 * would parse it again for every field. The statement that calls it is planned for every staging, so it is as small as can be.
 */
export const stageParameters = [
  'space',
  'key_list',
  'tool',
  'form',
  'in_group',
  'strict',
  'not_before',
  'print',
  'called_by',
  'encoded',
] as const;

/**
 * Stages an intent in the caller's transaction, at any isolation level: a row that it cannot see fails the INSERT (40001). If
 * the key has records, returns them first: the caller decides by the rules, and asks again with `anyway`.
 */
export function stageFunction(): string {
  const parameters = stageParameters.map((name) => `${name} text`).join(', ');
  const known = 'r.namespace = space AND r.key = ANY (keys)';
  return `CREATE FUNCTION semel.stage(${parameters}, anyway boolean, writer integer) RETURNS text LANGUAGE plpgsql ${byKeyAlone} AS $$
#variable_conflict use_column
DECLARE
  ${declarations}
  keys text[] := key_list;
  place text;
  now bigint;
  records json;
  row_n bigint;
  existing json;
BEGIN
  entered := pg_advisory_xact_lock_shared${gate} IS NULL;
  ${readStanding(`, ${place}, semel.now_ms()`, ', place, now')}
  ${durable}
  IF strict = 'true' THEN
    PERFORM pg_advisory_xact_lock(hashtextextended(space || chr(1) || chr(2) || in_group, 0));
    now := semel.now_ms();
  END IF;
  FOR tries IN 1..10 LOOP
    INSERT INTO semel.outbox (due, ready, staged, namespace, key, contract, version, group_name, fingerprint, caller, call)
      SELECT coalesce(not_before::bigint, now), coalesce(not_before::bigint, now), now, space, keys[1], tool, form, in_group, print, called_by, encoded
      WHERE (anyway AND tries = 1) OR NOT EXISTS (SELECT FROM semel.records r WHERE ${known})
      ON CONFLICT (namespace, key) DO NOTHING RETURNING n INTO row_n;
    EXIT WHEN row_n IS NOT NULL;
    -- It may have been delivered while the INSERT waited for a lock.
    IF NOT anyway OR tries > 1 THEN
      SELECT json_agg(json_build_array(${packed()})) INTO records FROM semel.records r WHERE ${known};
      IF records IS NOT NULL THEN
        RETURN json_build_object('place', place, 'now', now, 'records', records);
      END IF;
    END IF;
    SELECT ${outboxJson} INTO existing FROM semel.outbox o WHERE o.namespace = space AND o.key = keys[1];
    EXIT WHEN existing IS NOT NULL;
    -- It was removed in between.
  END LOOP;
  RETURN json_build_object('place', place, 'now', now, 'n', row_n, 'existing', existing);
END $$`;
}

/**
 * The parameters of `stage` for an ordinary staging, and in which ledger the caller believes to be: `place`.
 */
export const stageNewParameters = [
  'space',
  'only_key',
  'tool',
  'form',
  'in_group',
  'not_before',
  'print',
  'called_by',
  'encoded',
  'here',
] as const;

/**
 * The ordinary case of `stage`: an intent with one key, of which the ledger knows nothing. One INSERT, which checks everything
 * on its way; if anything is not as expected it writes nothing, and `stage` finds out what. Every setting and statement of a
 * function costs each staging some microseconds, so all names are qualified here instead, and no table has a second plan:
 * without sequential scans there is only its key.
 */
export function stageNewFunction(): string {
  const parameters = stageNewParameters.map((name) => `${name} text`).join(', ');
  const equals = 'OPERATOR(pg_catalog.=)';
  return `CREATE FUNCTION semel.stage_new(${parameters}, writer integer) RETURNS text LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  entered boolean := pg_catalog.pg_advisory_xact_lock_shared(${qualifiedGate}) IS NULL;
  now bigint := pg_catalog.floor(extract(epoch FROM pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000::numeric)::bigint;
  answer text;
BEGIN
  INSERT INTO semel.outbox (due, ready, staged, namespace, key, contract, version, group_name, fingerprint, caller, call)
    SELECT coalesce(not_before::bigint, now), coalesce(not_before::bigint, now), now, space, only_key, tool, form, in_group, print,
      called_by, encoded FROM semel.meta m
    WHERE m.one AND m.moved_to IS NULL AND NOT m.filling AND m.min_writer OPERATOR(pg_catalog.<=) writer
      AND m.floor OPERATOR(pg_catalog.>=) 0::bigint AND m.floor OPERATOR(pg_catalog.<=) ${mostFence}::bigint
      AND ${place} ${equals} here
      AND NOT EXISTS (SELECT FROM semel.records r WHERE r.namespace ${equals} space AND r.key ${equals} only_key)
    ON CONFLICT (namespace, key) DO NOTHING RETURNING n::text INTO answer;
  IF answer IS NULL THEN
    RETURN semel.stage(space, ARRAY[only_key]::text, tool, form, in_group, 'false'::text, not_before, print, called_by, encoded,
      false, writer);
  END IF;
  IF pg_catalog.current_setting('synchronous_commit'::text) ${equals} 'off'::text THEN
    PERFORM pg_catalog.set_config('synchronous_commit'::text, 'on'::text, true);
  END IF;
  RETURN answer;
END $$`;
}

/** Notes that a later staging was worded differently. */
export function noteDriftFunction(): string {
  return `CREATE FUNCTION semel.note_drift(row_n bigint, fields text) RETURNS void LANGUAGE sql ${byKey}
AS $$ UPDATE semel.outbox o SET drift = fields WHERE o.n = row_n $$`;
}

/**
 * Reads an index from its beginning and stops at the limit. A bitmap of it, sorted, would be all rows that wait, at every poll;
 * and only an index scan marks the entries of removed rows, which others then skip.
 */
const inIndexOrder = 'SET enable_bitmapscan = off SET enable_sort = off';

/** A lent row, in this order: JSON of it would cost the server several times as much. Its namespace is the one asked for. */
const lentColumns = `n bigint, state smallint, staged bigint, due bigint, tries integer, generation bigint, key text, contract text,
  version text, group_name text, fingerprint text, caller text, call text, reason text, drift text`;

const lentRow = lentColumns
  .split(',')
  .map((column) => `o.${column.trim().split(' ')[0]}`)
  .join(', ');

/**
 * Lends rows that are due, in no order. Rows that another relay is taking right now are skipped; the lock ends with this statement. Of a
 * group only the first row is lent, and with \`skip\` the first that is neither in doubt nor dead, besides those in doubt.
 */
export function takeFunction(): string {
  return `CREATE FUNCTION semel.take(space text, contracts text, most integer, hold bigint, skip boolean, writer integer)
RETURNS TABLE (${lentColumns}) LANGUAGE plpgsql ${byKey} ${inIndexOrder} AS $$
#variable_conflict use_column
DECLARE
  ${declarations}
  now bigint;
BEGIN
  ${admission}
  now := semel.now_ms();
  RETURN QUERY WITH picked AS (
    SELECT o.n FROM semel.outbox o
    WHERE o.namespace = space AND o.ready <= now AND o.due <= now AND o.state < 2::smallint
      AND o.contract = ANY (ARRAY(SELECT json_array_elements_text(contracts::json)))
      AND (o.group_name IS NULL OR NOT EXISTS (SELECT FROM semel.outbox e
        WHERE e.namespace = space AND e.group_name = o.group_name AND e.n < o.n AND NOT (skip AND e.state > 0)))
    ORDER BY o.ready, o.n LIMIT most FOR UPDATE SKIP LOCKED
  )
  UPDATE semel.outbox o SET due = now + hold FROM picked p WHERE o.n = p.n
  RETURNING ${lentRow};
END $$`;
}

/** Before effects start: a row whose effect was started in another life of its record must not run again. */
export function markFunction(): string {
  return `CREATE FUNCTION semel.mark(asked json, writer integer) RETURNS text LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  ${declarations}
  marked json;
BEGIN
  ${admission}
  ${durable}
  WITH written AS (
    UPDATE semel.outbox o SET generation = a.generation
    FROM json_to_recordset(asked) AS a (n bigint, generation bigint)
    WHERE o.n = a.n AND (o.generation IS NULL OR o.generation = a.generation) RETURNING o.n
  )
  SELECT json_agg(w.n) INTO marked FROM written w;
  RETURN marked;
END $$`;
}

/** Holds lent rows for longer. Returns the new end, and the rows that are still lent under the old one. */
export function keepFunction(): string {
  return `CREATE FUNCTION semel.keep(asked json, hold bigint, writer integer) RETURNS text LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  ${declarations}
  until bigint;
  kept json;
BEGIN
  ${admission}
  until := semel.now_ms() + hold;
  WITH held AS (
    SELECT o.n FROM json_to_recordset(asked) AS a (n bigint, due bigint) JOIN semel.outbox o ON o.n = a.n AND o.due = a.due
    FOR UPDATE OF o SKIP LOCKED
  ), written AS (
    UPDATE semel.outbox o SET due = until FROM held h WHERE o.n = h.n RETURNING o.n
  )
  SELECT json_agg(w.n) INTO kept FROM written w;
  RETURN json_build_object('due', until, 'kept', kept);
END $$`;
}

/**
 * What became of lent rows: delivered ones go; the others wait, are in doubt or dead, unless they were lent again or a person
 * decided since. A row that a caller's transaction has locked is not waited for: it is lent again later.
 */
export function finishFunction(): string {
  return `CREATE FUNCTION semel.finish(delivered json, others json, writer integer) RETURNS void LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  ${declarations}
  now bigint;
BEGIN
  ${admission}
  ${durable}
  now := semel.now_ms();
  DELETE FROM semel.outbox o WHERE o.n IN (SELECT d.n FROM semel.outbox d
    WHERE d.n = ANY (ARRAY(SELECT json_array_elements_text(delivered)::bigint)) FOR UPDATE SKIP LOCKED);
  WITH ended AS (
    SELECT a.* FROM json_to_recordset(others) AS a (n bigint, due bigint, state smallint, wait bigint, reason text, spent integer)
    JOIN semel.outbox o ON o.n = a.n AND o.due = a.due FOR UPDATE OF o SKIP LOCKED
  )
  UPDATE semel.outbox o SET state = e.state, due = now + e.wait, ready = now + e.wait, reason = e.reason,
    tries = o.tries + e.spent, generation = CASE WHEN e.spent > 0 THEN NULL ELSE o.generation END
  FROM ended e WHERE o.n = e.n;
END $$`;
}
