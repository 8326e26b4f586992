// What the database does by itself, one call at a time: it compares and writes, and never decides. `semel` stands for the
// schema; schema.ts makes these with the tables.

import { columns } from './rows.ts';

/** What a claim or an act writes, as the columns of a JSON list. */
const written = `namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, status smallint, flags smallint, token text, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint`;

const names = `namespace, key, revision, fence, created, expires, settled, status, flags, token, version, owner, args,
      content, result, asker, more`;

const values = (from: string): string =>
  names
    .split(/,\s*/)
    .map((name) => `${from}.${name}`)
    .join(', ');

const settings = (from: string): string =>
  names
    .split(/,\s*/)
    .filter((name) => name !== 'namespace' && name !== 'key')
    .map((name) => `${name} = ${from}.${name}`)
    .join(', ');

/** Of one record, whichever table it is in. */
const eitherTable = `(
        SELECT ${values('o')} FROM semel.open o WHERE o.namespace = a.namespace AND o.key = a.key
        UNION ALL SELECT ${values('c')} FROM semel.closed c WHERE c.namespace = a.namespace AND c.key = a.key
      )`;

/** A plan is made while the table is small and kept when it is large: rows are looked up by their keys all the same. */
const byKey =
  'SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan';

/** Whoever changes the standing of the ledger waits for those who are writing, and they for nobody else. */
const gate = `(hashtext('semel'), 'semel.meta'::regclass::oid::integer)`;

/** A snapshot for all statements would not see what the lock was waited for: a key could be taken twice, a seal overlooked. */
const entry = `IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  PERFORM pg_advisory_xact_lock_shared${gate};
  SELECT * INTO known FROM semel.meta WHERE one;`;

/** What stands first in every write of a user. */
const admission = `${entry}
  IF known.moved_to IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = known.moved_to;
  ELSIF known.filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < known.min_writer THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = known.min_writer::text;
  END IF;`;

/** What is asked about a record, in the order in which it is done. */
export const kinds = { fresh: 0, held: 1, ended: 2, taken: 3, told: 4, looked: 5 } as const;

/** Each column of what is asked comes as a list of its own: to read those costs a database far less than JSON. */
export const askedColumns: readonly (readonly [name: string, type: string])[] = [
  ['kind', 'smallint'],
  ['namespace', 'text'],
  ['key', 'text'],
  ['revision', 'bigint'],
  ['old', 'bigint'],
  ['at', 'bigint'],
  ['until', 'bigint'],
  ['fence', 'bigint'],
  ['created', 'bigint'],
  ['expires', 'bigint'],
  ['settled', 'bigint'],
  ['status', 'smallint'],
  ['flags', 'smallint'],
  ['token', 'text'],
  ['version', 'text'],
  ['owner', 'text'],
  ['args', 'text'],
  ['content', 'text'],
  ['result', 'text'],
  ['asker', 'text'],
  ['more', 'text'],
];
const askedNames = askedColumns.map(([name]) => name);
const lists = askedNames.map((name) => `${name}_list`);
const listParameters = askedColumns.map(([name, type]) => `${name}_list ${type}[]`).join(', ');

/** In the list of a SELECT and not in its FROM: there each list would be written down once more before it is read. */
const listed = (...columns: readonly string[]) =>
  `(SELECT ${columns.map((name) => `unnest(${name}_list) AS ${name}`).join(', ')}) AS a`;
const asked = listed(...askedNames);

/**
 * Many swaps, each of a row that is still the one that was seen. What is asked comes by kind and key, so that no two
 * of these ever wait for each other in a circle.
 */
export function swapFunction(): string {
  const inTime = 'a.at <= now_ms AND now_ms < a.until AND NOT a.revision = ANY (spoilt)';
  const seen = (table: string) =>
    `${table}.namespace = a.namespace AND ${table}.key = a.key AND ${table}.revision = a.old AND ${inTime}`;
  const has = (kind: keyof typeof kinds) => `${kinds[kind]} = ANY (kind_list)`;
  const is = (kind: keyof typeof kinds) => `a.kind = ${kinds[kind]}`;
  const noted = "SELECT swapped || coalesce(array_agg(w.revision), '{}') INTO swapped FROM written w";
  const stays = (table: string, kind: keyof typeof kinds) => `-- In ${table}, and stays there: ${kind}.
  IF ${has(kind)} THEN
    WITH written AS (
      UPDATE semel.${table} t SET ${settings('a')}
      FROM ${asked} WHERE ${is(kind)} AND ${seen('t')} RETURNING t.revision
    ) ${noted};
  END IF;`;
  const moves = (from: string, to: string, kind: keyof typeof kinds) => `-- From ${from} to ${to}: ${kind}.
  IF ${has(kind)} THEN
    WITH gone AS (
      DELETE FROM semel.${from} t USING ${asked}
      WHERE ${is(kind)} AND ${seen('t')} RETURNING a.*
    ), written AS (
      INSERT INTO semel.${to} (${names}) SELECT ${values('g')} FROM gone g RETURNING revision
    ) ${noted};
  END IF;`;
  return `CREATE FUNCTION semel.swap(${listParameters},
  now_ms bigint, floor bigint, spoilt bigint[])
RETURNS bigint[] LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  swapped bigint[] := '{}';
  late bigint[];
BEGIN
  -- New: nothing may be there, in either table.
  IF ${has('fresh')} THEN
    WITH made AS (
      INSERT INTO semel.open (${names})
      SELECT ${values('a')} FROM ${asked}
      WHERE ${is('fresh')} AND ${inTime} AND a.fence > swap.floor
      ON CONFLICT DO NOTHING RETURNING revision
    )
    SELECT coalesce(array_agg(m.revision), '{}') INTO swapped FROM made m;
    -- Whoever waited for a record to leave the one table finds it in the other, by a statement that starts only now.
    SELECT array_agg(a.revision) INTO late
    FROM ${listed('kind', 'namespace', 'key', 'revision')}
    JOIN semel.closed c ON c.namespace = a.namespace AND c.key = a.key
    WHERE ${is('fresh')};
    IF late IS NOT NULL THEN
      DELETE FROM semel.open o USING ${listed('namespace', 'key', 'revision')}
      WHERE o.namespace = a.namespace AND o.key = a.key AND o.revision = a.revision AND a.revision = ANY (late);
      SELECT coalesce(array_agg(m), '{}') INTO swapped FROM unnest(swapped) AS m WHERE NOT m = ANY (late);
    END IF;
  END IF;
  ${stays('open', 'held')}
  ${moves('open', 'closed', 'ended')}
  ${moves('closed', 'open', 'taken')}
  ${stays('closed', 'told')}
  RETURN swapped;
END $$`;
}

/**
 * One transaction. What was not done is read by a statement of its own: one that follows the write sees what the write
 * has lost to.
 */
export function exchangeFunction(): string {
  const one = lists.map((list) => `${list}[i:i]`).join(', ');
  return `CREATE FUNCTION semel.exchange(${listParameters}, writes integer, one_by_one boolean,
  noted json, beside json, writer integer)
RETURNS TABLE (now bigint, floor bigint, done text, seen text) LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  now_ms bigint := semel.now_ms();
  known semel.meta;
  swapped bigint[] := '{}';
  spoilt bigint[] := '{}';
BEGIN
  ${admission}

  IF beside IS NOT NULL THEN
    -- Two claims of one intent under several forms of its key come one after the other. A transaction that never ends
    -- fails the one that waits for it, and is not waited for by everybody in this batch.
    PERFORM set_config('lock_timeout', '250ms', true);
    PERFORM pg_advisory_xact_lock(hashtextextended(b.namespace || chr(1) || b.first, 0))
      FROM (SELECT DISTINCT x.namespace, x.first FROM json_to_recordset(beside) AS x (namespace text, first text)
            ORDER BY 1, 2) AS b;
    SELECT coalesce(array_agg(a.revision), '{}') INTO spoilt
      FROM json_to_recordset(beside) AS a (revision bigint, namespace text, key text, was bigint)
      LEFT JOIN LATERAL ${eitherTable} AS r ON true
      WHERE r.revision IS DISTINCT FROM a.was;
  END IF;

  IF writes > 0 THEN
    -- A pooler may have given us a session of somebody who does not care.
    IF current_setting('synchronous_commit') = 'off' THEN
      PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF NOT one_by_one THEN
      PERFORM set_config('lock_timeout', '50ms', true);
      swapped := semel.swap(${lists.join(', ')},
        now_ms, known.floor, spoilt);
    ELSE
      -- Somebody's open transaction holds one of these records: the others do not wait for it.
      PERFORM set_config('lock_timeout', '10ms', true);
      FOR i IN 1..cardinality(kind_list) LOOP
        BEGIN
          swapped := swapped || semel.swap(${one},
            now_ms, known.floor, spoilt);
        EXCEPTION WHEN lock_not_available THEN
          NULL;
        END;
      END LOOP;
    END IF;
    -- A fence that was removed while this waited for the one who removed it must not be given again.
    IF ${kinds.fresh} = ANY (kind_list) AND EXISTS (SELECT FROM semel.meta m WHERE m.one AND m.floor > known.floor) THEN
      SELECT * INTO known FROM semel.meta WHERE one;
      IF EXISTS (SELECT FROM ${listed('kind', 'revision', 'fence')}
                 WHERE a.kind = ${kinds.fresh} AND a.fence <= known.floor AND a.revision = ANY (swapped)) THEN
        RAISE EXCEPTION 'floor' USING ERRCODE = 'SM001', DETAIL = known.floor::text;
      END IF;
    END IF;
  END IF;

  IF noted IS NOT NULL THEN
    INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
    SELECT e.at, e.generation, e.fence, e.namespace, e.key, e.type, e.detail
    FROM json_to_recordset(noted) AS e (i integer, revision bigint, at bigint, generation bigint,
      fence bigint, namespace text, key text, type text, detail text)
    WHERE e.revision IS NULL OR e.revision = ANY (swapped) ORDER BY e.i;
  END IF;

  now := now_ms;
  floor := known.floor;
  done := array_to_json(swapped)::text;
  IF cardinality(swapped) < cardinality(kind_list) THEN
    SELECT json_agg(json_build_array(a.n, ${columns}))::text INTO seen
      FROM (SELECT row_number() OVER () AS n, * FROM ${listed('kind', 'namespace', 'key', 'revision')}) AS a,
      LATERAL ${eitherTable} AS r WHERE a.kind = ${kinds.looked} OR NOT a.revision = ANY (swapped);
  END IF;
  RETURN NEXT;
END $$`;
}

/**
 * The same on a connection that is not ours alone. COMMIT is allowed only where no transaction is open around the call,
 * so a record is never written into a transaction that its owner may roll back (SQLSTATE 2D000).
 */
export function ownExchangeProcedure(): string {
  return `CREATE PROCEDURE semel.own_exchange(${listParameters}, writes integer, one_by_one boolean,
  noted json, beside json, writer integer,
  INOUT now bigint DEFAULT NULL, INOUT floor bigint DEFAULT NULL, INOUT done text DEFAULT NULL,
  INOUT seen text DEFAULT NULL) LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SELECT e.now, e.floor, e.done, e.seen INTO now, floor, done, seen
  FROM semel.exchange(${lists.join(', ')}, writes, one_by_one, noted, beside, writer) AS e;
END $$`;
}

/** What retention takes, if it is still as it was seen; whoever is at work on it is waited for a moment only. */
export function removeFunction(): string {
  return `CREATE FUNCTION semel.remove(asked json, writer integer) RETURNS integer LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  known semel.meta;
  highest bigint;
  taken integer;
BEGIN
  ${admission}
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM set_config('lock_timeout', '50ms', true);

  WITH gone AS (
    DELETE FROM semel.closed c USING json_to_recordset(asked) AS a (${written}, types text)
    WHERE a.status IS NULL AND c.namespace = a.namespace AND c.key = a.key AND c.revision = a.old
    RETURNING c.fence, c.namespace, c.key, a.types
  ), lapsed AS (
    DELETE FROM semel.open o USING json_to_recordset(asked) AS a (${written}, types text)
    WHERE a.status IS NULL AND o.namespace = a.namespace AND o.key = a.key AND o.revision = a.old
    RETURNING o.fence, o.namespace, o.key, a.types
  ), buried AS (
    UPDATE semel.closed c SET ${settings('a')} FROM json_to_recordset(asked) AS a (${written}, types text)
    WHERE a.status IS NOT NULL AND c.namespace = a.namespace AND c.key = a.key AND c.revision = a.old
    RETURNING 0::bigint, c.namespace, c.key, a.types
  ), written AS (
    SELECT * FROM gone UNION ALL SELECT * FROM lapsed UNION ALL SELECT * FROM buried
  ), silenced AS (
    DELETE FROM semel.events e USING written w WHERE e.namespace = w.namespace AND e.key = w.key
      AND (w.types IS NULL OR e.type IN (SELECT json_array_elements_text(w.types::json)))
  )
  SELECT count(*), max(w.fence) INTO taken, highest FROM written w;

  IF highest > known.floor THEN
    UPDATE semel.meta m SET floor = highest WHERE m.floor < highest;
  END IF;
  RETURN taken;
END $$`;
}

/** Audit events of records that are there. */
export function appendFunction(): string {
  return `CREATE FUNCTION semel.append(noted json, writer integer) RETURNS void LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  known semel.meta;
BEGIN
  ${admission}
  INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
  SELECT semel.now_ms(), e.generation, e.fence, e.namespace, e.key, e.type, e.detail
  FROM json_to_recordset(noted) AS e (i integer, generation bigint, fence bigint, namespace text, key text,
    type text, detail text)
  WHERE EXISTS (SELECT FROM semel.open o WHERE o.namespace = e.namespace AND o.key = e.key)
    OR EXISTS (SELECT FROM semel.closed c WHERE c.namespace = e.namespace AND c.key = e.key) ORDER BY e.i;
END $$`;
}

/** Another standing, if it is still the one that was seen. Nobody is writing meanwhile. */
export function standFunction(): string {
  return `CREATE FUNCTION semel.stand(was json, becomes json, must_be_empty boolean) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  known semel.meta;
BEGIN
  PERFORM set_config('lock_timeout', '1s', true);
  PERFORM pg_advisory_xact_lock${gate};
  PERFORM set_config('synchronous_commit', 'on', true);
  SELECT * INTO known FROM semel.meta FOR UPDATE;
  IF known.moved_to IS DISTINCT FROM was ->> 'movedTo' OR known.came_from IS DISTINCT FROM was ->> 'cameFrom'
    OR known.filling IS DISTINCT FROM (was ->> 'filling')::boolean THEN
    RETURN false;
  END IF;
  IF must_be_empty AND (EXISTS (SELECT FROM semel.open) OR EXISTS (SELECT FROM semel.closed)) THEN
    RETURN false;
  END IF;
  UPDATE semel.meta SET moved_to = becomes ->> 'movedTo', came_from = becomes ->> 'cameFrom',
    filling = (becomes ->> 'filling')::boolean;
  RETURN true;
END $$`;
}

/** Records of another ledger replace what is here, by whoever fills it; what is gone there goes here. */
export function refillFunction(): string {
  return `CREATE FUNCTION semel.refill(came text, opened json, ended json, gone json, noted json, lowest bigint)
RETURNS void LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  known semel.meta;
BEGIN
  ${entry}
  PERFORM set_config('synchronous_commit', 'on', true);
  IF NOT known.filling OR known.came_from IS DISTINCT FROM came THEN
    RAISE EXCEPTION 'not filling' USING ERRCODE = 'SM005';
  END IF;

  WITH x AS MATERIALIZED (
    ${['opened', 'ended', 'gone'].map((list) => `SELECT * FROM json_to_recordset(${list}) AS y (namespace text, key text)`).join('\n    UNION ALL ')}
  ), opened AS (
    DELETE FROM semel.open o USING x WHERE o.namespace = x.namespace AND o.key = x.key
  ), closed AS (
    DELETE FROM semel.closed c USING x WHERE c.namespace = x.namespace AND c.key = x.key
  )
  DELETE FROM semel.events e USING x WHERE e.namespace = x.namespace AND e.key = x.key;

  INSERT INTO semel.open (${names}) SELECT ${values('a')} FROM json_to_recordset(opened) AS a (${written});
  INSERT INTO semel.closed (${names}) SELECT ${values('a')} FROM json_to_recordset(ended) AS a (${written});
  INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
  SELECT e.at, e.generation, e.fence, e.namespace, e.key, e.type, e.detail
  FROM json_to_recordset(noted) AS e (i integer, at bigint, generation bigint, fence bigint, namespace text, key text,
    type text, detail text) ORDER BY e.i;
  UPDATE semel.meta SET floor = lowest WHERE floor < lowest;
END $$`;
}
