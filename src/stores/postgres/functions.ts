// The SQL functions for single operations, and what all functions share. They compare and write, and never decide. `semel`
// stands for the schema; schema.ts creates them with the tables.

import { statusCode } from '../../store/columns.ts';
import { boundedTypes, maxKept } from '../../store/kept-events.ts';

/** Running or unknown. */
export const openRows: string = `status IN (${statusCode('running')}, ${statusCode('unknown')})`;

/** A write as a JSON recordset. */
export const written: string = `namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint`;

export const names: string = `namespace, key, revision, fence, created, expires, settled, sum, status, flags, token, version, owner, args,
      content, result, asker, more`;

export const values = (from: string): string =>
  names
    .split(/,\s*/)
    .map((name) => `${from}.${name}`)
    .join(', ');

export const settings = (from: string): string =>
  names
    .split(/,\s*/)
    .filter((name) => name !== 'namespace' && name !== 'key')
    .map((name) => `${name} = ${from}.${name}`)
    .join(', ');

/**
 * Any user who can create objects in a schema of the search path (in `public` often everybody) could add a function or
 * operator that matches our types better than the built-in one, and it would run with our rights. Statements outside a
 * function qualify names instead: `pg_catalog.json_agg`.
 */
const ownNames = 'SET search_path = pg_catalog, pg_temp';

/** Plans are cached while the table is small and kept when it is large, so force lookups by key. */
const scansByKey = 'SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan';
export const byKey: string = `${ownNames} ${scansByKey} SET enable_hashjoin = off SET enable_mergejoin = off`;
/** The same for a function without joins: every setting costs each call a little. */
export const byKeyAlone: string = `${ownNames} ${scansByKey}`;

/** Writers share this lock; changing the ledger's state takes it exclusively. */
export const gate: string = `(hashtext('semel'), 'semel.meta'::regclass::oid::integer)`;

/** Variables of every function that checks the ledger's state. */
export const declarations: string = `known_floor bigint;
  moved text;
  is_filling boolean;
  oldest integer;
  entered boolean;`;

/** With one snapshot per transaction, a statement would miss what it waited for: a key could be claimed twice. */
const entry = `IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  entered := pg_advisory_xact_lock_shared${gate} IS NULL;`;

/** Above it JavaScript cannot tell two fences apart: somebody has changed the lowest one. */
export const mostFence = 9_000_000_000_000_000;

/** Fails if the ledger is damaged, or closed to users or to this version. May read more, in the same statement. */
export const readStanding = (
  columns = '',
  variables = '',
): string => `SELECT m.floor, m.moved_to, m.filling, m.min_writer${columns}
    INTO known_floor, moved, is_filling, oldest${variables} FROM semel.meta m;
  IF known_floor IS NULL OR known_floor NOT BETWEEN 0 AND ${mostFence} THEN
    RAISE EXCEPTION 'no such fence' USING ERRCODE = 'SM009';
  ELSIF moved IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = moved;
  ELSIF is_filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < oldest THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = oldest::text;
  END IF;`;

export const standing: string = readStanding();

/** How every write by a user begins. */
export const admission: string = `${entry}
  ${standing}`;

/** Removes or empties records that are unchanged since they were read. Waits only briefly for locked rows. */
export function removeFunction(): string {
  return defineRemove('CREATE', '', '');
}

/** A repeatable write (by the two lowest flags) is a write of its own each time, and leaves the outbox alone. */
export const isOnce = (record: string): string => `${record}.flags & 3::smallint > 1`;
export const isGivenUp = (record: string): string => `strpos(${record}.more, '"doubtFence":') > 0`;

/** An ended record that has landed, or may have, answers for what was staged before its window was over. */
export const mayAnswerRows = (record: string): string => `${isOnce(record)}
      AND (${record}.status = ${statusCode('succeeded')} OR ${record}.status = ${statusCode('failed')} AND ${isGivenUp(record)})`;

/** Waits for every open transaction that has staged the key of one of these records. */
export const probe = (
  record: string,
  from: string,
  probes: string,
): string => `-- Waits for a transaction that has staged the intent and is still open.
      WITH probed AS (
        INSERT INTO semel.outbox (due, ready, staged, namespace, key, contract, version, call)
          SELECT 0, 0, 0, ${record}.namespace, ${record}.key, '', '', '' FROM ${from}
          ORDER BY 4, 5 ON CONFLICT (namespace, key) DO NOTHING RETURNING n
      ) SELECT array_agg(p.n) INTO ${probes} FROM probed p;
      DELETE FROM semel.outbox o WHERE o.n = ANY (${probes});`;

/**
 * Runs a step for the revisions in `of`, which it takes as `part`; those that would wait for another transaction are found by
 * halves and added to `held`, so that they hold up no others. Needs the variables `part` and `size`.
 */
export const eachHalf = ({
  of,
  held,
  patience,
  run,
}: Record<'of' | 'held' | 'patience' | 'run', string>): string => `size := cardinality(${of});
  WHILE cardinality(${of}) > 0 LOOP
    part := ${of}[1:size];
    BEGIN
      ${run}
      ${of} := ${of}[cardinality(part) + 1:];
      size := size * 2;
    EXCEPTION WHEN lock_not_available THEN
      IF cardinality(part) = 1 THEN
        ${held} := ${held} || part;
        ${of} := ${of}[2:];
      END IF;
      size := greatest(cardinality(part) / 2, 1);
      -- The first step has waited for those that end soon.
      PERFORM set_config('lock_timeout', '1ms', true);
    END;
  END LOOP;
  IF size > 0 THEN
    PERFORM set_config('lock_timeout', ${patience}, true);
  END IF;`;

/**
 * The same, but never removes a record while an intent waits that was staged before its window was over: it says that it has
 * landed. Nor while a transaction is open that has staged it; asked only if one is open, because it costs a row of the outbox
 * per record.
 */
export function removeWithOutboxFunction(): string {
  const removed = `json_to_recordset(asked) AS a (${written})
        JOIN semel.records r ON r.namespace = a.namespace AND r.key = a.key AND r.revision = a.old
        WHERE a.status IS NULL AND ${mayAnswerRows('r')}`;
  return defineRemove(
    'CREATE OR REPLACE',
    `IF EXISTS (SELECT FROM pg_locks l WHERE l.relation = 'semel.outbox'::regclass AND l.mode = 'RowExclusiveLock'
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND l.pid IS DISTINCT FROM pg_backend_pid()) THEN
    SELECT coalesce(array_agg(r.revision ORDER BY r.namespace, r.key), '{}') INTO answering FROM ${removed};
    ${eachHalf({
      of: 'answering',
      held: 'held',
      patience: "'50ms'",
      run: probe('r', `${removed} AND r.revision = ANY (part)`, 'probes'),
    })}
  END IF;
  `,
    `
      AND NOT ${awaited('r')} AND r.revision <> ALL (held)`,
  );
}

/** An intent waits that was staged before the record's window was over. */
export const awaited = (record: string): string =>
  `EXISTS (SELECT FROM semel.outbox w WHERE w.namespace = ${record}.namespace AND w.key = ${record}.key AND w.staged < ${record}.expires)`;

function defineRemove(create: string, asks: string, unless: string): string {
  return `${create} FUNCTION semel.remove(asked json, writer integer) RETURNS integer LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  ${declarations}
  highest bigint;
  taken integer;${
    asks === ''
      ? ''
      : `
  probes bigint[];
  answering bigint[];
  part bigint[];
  size integer;
  held bigint[] := '{}';`
  }
BEGIN
  ${admission}
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM set_config('lock_timeout', '50ms', true);

  ${asks}WITH gone AS (
    DELETE FROM semel.records r USING json_to_recordset(asked) AS a (${written}, types text)
    WHERE a.status IS NULL AND r.namespace = a.namespace AND r.key = a.key AND r.revision = a.old${unless}
    RETURNING r.fence, r.namespace, r.key, a.types
  ), buried AS (
    UPDATE semel.records r SET ${settings('a')} FROM json_to_recordset(asked) AS a (${written}, types text)
    WHERE a.status IS NOT NULL AND r.namespace = a.namespace AND r.key = a.key AND r.revision = a.old
    RETURNING 0::bigint, r.namespace, r.key, a.types
  ), written AS (
    SELECT * FROM gone UNION ALL SELECT * FROM buried
  ), silenced AS (
    DELETE FROM semel.events e USING written w WHERE e.namespace = w.namespace AND e.key = w.key
      AND (w.types IS NULL OR e.type IN (SELECT json_array_elements_text(w.types::json)))
  )
  SELECT count(*), max(w.fence) INTO taken, highest FROM written w;

  IF highest > known_floor THEN
    UPDATE semel.meta m SET floor = highest WHERE m.floor < highest;
  END IF;
  RETURN taken;
END $$`;
}

/** Drops old events of the records of which `noted` has some. */
export const dropOldEvents: string = boundedTypes
  .map((types) => {
    const these = types.map((type) => `'${type}'`).join(', ');
    return `DELETE FROM semel.events old
  USING (SELECT DISTINCT e.namespace, e.key FROM json_to_recordset(noted) AS e (namespace text, key text)) e
  WHERE old.namespace = e.namespace AND old.key = e.key AND old.type IN (${these}) AND old.n <= (
    SELECT o.n FROM semel.events o WHERE o.namespace = e.namespace AND o.key = e.key AND o.type IN (${these})
    ORDER BY o.n DESC LIMIT 1 OFFSET ${maxKept});`;
  })
  .join('\n  ');

/** Adds events to existing records. */
export function appendFunction(): string {
  return `CREATE FUNCTION semel.append(noted json, writer integer) RETURNS void LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  ${declarations}
BEGIN
  ${admission}
  INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
  SELECT semel.now_ms(), e.generation, e.fence, e.namespace, e.key, e.type, e.detail
  FROM json_to_recordset(noted) AS e (i integer, generation bigint, fence bigint, namespace text, key text,
    type text, detail text)
  WHERE EXISTS (SELECT FROM semel.records r WHERE r.namespace = e.namespace AND r.key = e.key) ORDER BY e.i;
  ${dropOldEvents}
END $$`;
}

/** Changes the ledger's state if it is unchanged since it was read, while nobody writes. */
export function standFunction(): string {
  return defineStand('CREATE', '');
}

/** The same, but never seals a ledger with staged intents: they would not move with it, and nobody would deliver them. */
export function standWithOutboxFunction(): string {
  return defineStand(
    'CREATE OR REPLACE',
    `IF becomes ->> 'movedTo' IS NOT NULL AND EXISTS (SELECT FROM semel.outbox) THEN
    RAISE EXCEPTION 'outbox' USING ERRCODE = 'SM010';
  END IF;
  `,
  );
}

function defineStand(create: string, check: string): string {
  return `${create} FUNCTION semel.stand(was json, becomes json, must_be_empty boolean) RETURNS boolean LANGUAGE plpgsql ${ownNames} AS $$
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
  IF must_be_empty AND EXISTS (SELECT FROM semel.records) THEN
    RETURN false;
  END IF;
  ${check}UPDATE semel.meta SET moved_to = becomes ->> 'movedTo', came_from = becomes ->> 'cameFrom',
    filling = (becomes ->> 'filling')::boolean;
  RETURN true;
END $$`;
}

/** Copies records from another ledger, and removes those that it no longer has. Only while the ledger is being filled. */
export function refillFunction(): string {
  return `CREATE FUNCTION semel.refill(came text, put json, gone json, noted json, lowest bigint)
RETURNS void LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  known semel.meta;
  entered boolean;
BEGIN
  ${entry}
  SELECT * INTO known FROM semel.meta;
  PERFORM set_config('synchronous_commit', 'on', true);
  IF NOT known.filling OR known.came_from IS DISTINCT FROM came THEN
    RAISE EXCEPTION 'not filling' USING ERRCODE = 'SM005';
  END IF;

  WITH x AS MATERIALIZED (
    ${['put', 'gone'].map((list) => `SELECT * FROM json_to_recordset(${list}) AS y (namespace text, key text)`).join('\n    UNION ALL ')}
  ), cleared AS (
    DELETE FROM semel.records r USING x WHERE r.namespace = x.namespace AND r.key = x.key
  )
  DELETE FROM semel.events e USING x WHERE e.namespace = x.namespace AND e.key = x.key;

  INSERT INTO semel.records (${names}) SELECT ${values('a')} FROM json_to_recordset(put) AS a (${written});
  INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
  SELECT e.at, e.generation, e.fence, e.namespace, e.key, e.type, e.detail
  FROM json_to_recordset(noted) AS e (i integer, at bigint, generation bigint, fence bigint, namespace text, key text,
    type text, detail text) ORDER BY e.i;
  UPDATE semel.meta SET floor = lowest WHERE floor < lowest;
END $$`;
}
