// The tables and the functions, and how an older schema becomes this one. test/stores/postgres-schema.sql shows the
// result. Everything is made by one statement list under one lock, so that many programs may start at once.

const asked = `json_to_recordset(asked) AS a (
      n integer, namespace text, key text, old bigint, revision bigint, at bigint, until bigint,
      fence bigint, created bigint, due bigint, expires bigint, settled bigint, status smallint, flags smallint,
      token text, version text, owner text, args text, content text, result text, asker text, more text,
      long text, shorter boolean)`;

/** A plan is made while the table is small and kept when it is large: rows are looked up by their keys all the same. */
const byKey = 'SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off';

/** Whoever changes the standing of the ledger waits for those who are writing, and they for nobody else. */
const gate = `(hashtext('semel'), 'semel.meta'::regclass::oid::integer)`;

/** What stands first in every write. */
const admission = `PERFORM pg_advisory_xact_lock_shared${gate};
  -- A pooler may have given us a session of somebody who does not care.
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  -- A snapshot from before the lock does not see what the lock was waited for: then this fails, and is tried again.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    PERFORM FROM semel.meta FOR SHARE;
  END IF;
  SELECT * INTO known FROM semel.meta;
  IF known.moved_to IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = known.moved_to;
  ELSIF known.filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM004';
  ELSIF writer < known.min_writer THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = known.min_writer::text;
  END IF;`;

/** One list of statements per version; a list that was released never changes. `semel` stands for the schema. */
export const migrations: readonly (readonly string[])[] = [
  [
    // One row. `min_writer` is the oldest version that may still write: raised only once nothing older runs. moved_to,
    // came_from, filling: whether it may be used, see src/store/standing.ts.
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
    // created, expires, due: milliseconds since the epoch; settled: since created. What is written when a record ends
    // needs no more room than what it replaces, and touches no index: updates stay on their page.
    `CREATE TABLE semel.records (
  id bigint GENERATED ALWAYS AS IDENTITY,
  revision bigint NOT NULL,
  fence bigint NOT NULL,
  created bigint NOT NULL,
  due bigint,
  expires bigint,
  settled bigint,
  status smallint NOT NULL,
  flags smallint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  token text,
  version text NOT NULL,
  owner text NOT NULL,
  args text,
  content text,
  result text,
  asker text,
  more text,
  PRIMARY KEY (namespace, key)
) WITH (fillfactor = 80)`,
    // Where retention looks, from when on. A record that succeeds keeps what its claim foresaw, and its place here.
    'CREATE INDEX records_due ON semel.records (due) WHERE due IS NOT NULL',
    // Results that are too large to lie beside their record.
    'CREATE TABLE semel.results (id bigint PRIMARY KEY, result text NOT NULL)',
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
AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$`,
    swapFunction(),
    exchangeFunction(),
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
  PERFORM pg_advisory_xact_lock(hashtext('semel migrate'), hashtext('${schema}'));
  IF to_regnamespace('"${schema}"') IS NULL THEN CREATE SCHEMA "${schema}"; END IF;
  IF to_regclass('"${schema}".meta') IS NOT NULL THEN
    EXECUTE 'SELECT version FROM "${schema}".meta' INTO version;
  END IF;
${steps.join('\n')}
  IF version = 0 THEN
    EXECUTE 'INSERT INTO "${schema}".meta (version, min_writer, incarnation) VALUES (${lists.length}, 1, gen_random_uuid())';
  ELSIF version < ${lists.length} THEN
    EXECUTE 'UPDATE "${schema}".meta SET version = ${lists.length}';
  END IF;
END $migrate$`;
}

/**
 * Many swaps by one statement. A row that somebody else has locked is passed over, and inserts go in the order of their
 * keys, so that no two of these ever wait for each other in a circle.
 */
function swapFunction(): string {
  return `CREATE FUNCTION semel.swap(asked json, now_ms bigint, floor bigint, spoilt bigint[])
RETURNS bigint[] LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  swapped bigint[];
BEGIN
  WITH a AS MATERIALIZED (
    SELECT * FROM ${asked}
    WHERE a.at <= now_ms AND now_ms < a.until AND a.status IS NOT NULL AND NOT a.revision = ANY (spoilt)
  ), fresh AS (
    INSERT INTO semel.records (namespace, key, revision, fence, created, due, expires, settled, status, flags,
      token, version, owner, args, content, result, asker, more)
    SELECT namespace, key, revision, fence, created, due, expires, settled, status, flags,
      token, version, owner, args, content, result, asker, more
    FROM a WHERE a.old IS NULL AND a.fence > swap.floor ORDER BY namespace, key
    ON CONFLICT DO NOTHING RETURNING revision
  ), free AS MATERIALIZED (
    SELECT r.ctid AS place, a.* FROM a JOIN semel.records r ON r.namespace = a.namespace AND r.key = a.key
    WHERE a.old IS NOT NULL AND r.revision = a.old FOR UPDATE OF r SKIP LOCKED
  ), changed AS (
    UPDATE semel.records r SET revision = f.revision, fence = f.fence, created = f.created,
      due = CASE WHEN f.status = 1 AND r.due <= f.expires THEN r.due ELSE f.due END,
      expires = f.expires, settled = f.settled, status = f.status, flags = f.flags, token = f.token,
      version = f.version, owner = f.owner, args = f.args, content = f.content, result = f.result,
      asker = f.asker, more = f.more
    FROM free f WHERE r.ctid = f.place
    RETURNING r.id, r.revision, f.long, f.shorter
  ), longer AS (
    INSERT INTO semel.results (id, result) SELECT c.id, c.long FROM changed c WHERE c.long IS NOT NULL
    ON CONFLICT (id) DO UPDATE SET result = excluded.result
  ), shorter AS (
    DELETE FROM semel.results l USING changed c WHERE c.shorter AND l.id = c.id
  ), written AS (
    SELECT revision FROM fresh UNION ALL SELECT revision FROM changed
  )
  SELECT coalesce(array_agg(w.revision), '{}') INTO swapped FROM written w;
  RETURN swapped;
END $$`;
}

/**
 * One transaction. What was not done is read by a statement of its own: one that follows the write sees what the write
 * has lost to.
 */
function exchangeFunction(): string {
  return `CREATE FUNCTION semel.exchange(asked json, noted json, beside json, writer integer)
RETURNS TABLE (now bigint, floor bigint, done text, seen text) LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  now_ms bigint := semel.now_ms();
  known semel.meta;
  swapped bigint[] := '{}';
  spoilt bigint[] := '{}';
  count integer := json_array_length(asked);
  item json;
BEGIN
  ${admission}

  IF beside IS NOT NULL THEN
    -- Two claims of one intent under several forms of its key come one after the other.
    PERFORM pg_advisory_xact_lock(hashtextextended(b.namespace || chr(1) || b.first, 0))
      FROM (SELECT DISTINCT namespace, first FROM json_to_recordset(beside) AS x (namespace text, first text)
            ORDER BY namespace, first) AS b;
    SELECT coalesce(array_agg(b.revision), '{}') INTO spoilt
      FROM json_to_recordset(beside) AS b (revision bigint, namespace text, key text, was bigint)
      LEFT JOIN semel.records r ON r.namespace = b.namespace AND r.key = b.key
      WHERE r.revision IS DISTINCT FROM b.was;
  END IF;

  BEGIN
    PERFORM set_config('lock_timeout', '50ms', true);
    swapped := semel.swap(asked, now_ms, known.floor, spoilt);
  EXCEPTION WHEN lock_not_available THEN
    -- Somebody's open transaction has made one of these records, or is removing it: the others do not wait for it.
    PERFORM set_config('lock_timeout', '10ms', true);
    FOR item IN SELECT e.value FROM json_array_elements(asked) WITH ORDINALITY AS e ORDER BY e.ordinality LOOP
      BEGIN
        swapped := swapped || semel.swap(json_build_array(item), now_ms, known.floor, spoilt);
      EXCEPTION WHEN lock_not_available THEN
        NULL;
      END;
    END LOOP;
  END;

  IF noted IS NOT NULL THEN
    INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
    SELECT e.at, e.generation, e.fence, e.namespace, e.key, e.type, e.detail
    FROM json_to_recordset(noted) AS e (i integer, revision bigint, at bigint, generation bigint,
      fence bigint, namespace text, key text, type text, detail text)
    WHERE e.revision IS NULL OR e.revision = ANY (swapped) ORDER BY e.i;
  END IF;

  -- A fence that was removed while this waited for the one who removed it must not be given again.
  IF EXISTS (SELECT FROM semel.meta m WHERE m.floor > known.floor) THEN
    SELECT * INTO known FROM semel.meta;
    IF EXISTS (SELECT FROM ${asked} WHERE a.old IS NULL AND a.fence <= known.floor
               AND a.revision = ANY (swapped)) THEN
      RAISE EXCEPTION 'floor' USING ERRCODE = 'SM001', DETAIL = known.floor::text;
    END IF;
  END IF;

  now := now_ms;
  floor := known.floor;
  done := array_to_json(swapped)::text;
  IF cardinality(swapped) < count THEN
    SELECT json_agg(json_build_array(a.n, r.revision, r.status, r.flags, r.fence, r.token, r.version, r.owner,
        r.created, r.settled, r.expires, r.args, r.content, coalesce(r.result, l.result), r.asker, r.more))::text
      INTO seen
      FROM json_to_recordset(asked) AS a (n integer, namespace text, key text, revision bigint)
      JOIN semel.records r ON r.namespace = a.namespace AND r.key = a.key
      LEFT JOIN semel.results l ON l.id = r.id
      WHERE a.revision IS NULL OR NOT a.revision = ANY (swapped);
  END IF;
  RETURN NEXT;
END $$`;
}

/** What retention takes, if it is still as it was seen; never waits for anybody who is at work on it. */
function removeFunction(): string {
  return `CREATE FUNCTION semel.remove(asked json, writer integer) RETURNS integer LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  known semel.meta;
  highest bigint;
  taken integer;
BEGIN
  ${admission}

  WITH a AS MATERIALIZED (
    SELECT * FROM json_to_recordset(asked) AS a (namespace text, key text, old bigint, revision bigint,
      expires bigint, status smallint, flags smallint, args text, content text, result text, asker text, more text,
      shorter boolean, types text)
  ), free AS MATERIALIZED (
    SELECT r.ctid AS place, a.* FROM a JOIN semel.records r ON r.namespace = a.namespace AND r.key = a.key
    WHERE r.revision = a.old FOR UPDATE OF r SKIP LOCKED
  ), gone AS (
    DELETE FROM semel.records r USING free f WHERE f.status IS NULL AND r.ctid = f.place
    RETURNING r.id, r.fence, f.namespace, f.key, f.types, true AS emptied
  ), buried AS (
    UPDATE semel.records r SET revision = f.revision, due = NULL, expires = f.expires, flags = f.flags, args = f.args,
      content = f.content, result = f.result, asker = f.asker, more = f.more
    FROM free f WHERE f.status IS NOT NULL AND r.ctid = f.place
    RETURNING r.id, 0::bigint, f.namespace, f.key, f.types, f.shorter
  ), written AS (
    SELECT * FROM gone UNION ALL SELECT * FROM buried
  ), emptied AS (
    DELETE FROM semel.results l USING written w WHERE w.emptied AND l.id = w.id
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
function appendFunction(): string {
  return `CREATE FUNCTION semel.append(noted json, writer integer) RETURNS void LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  known semel.meta;
BEGIN
  ${admission}
  INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
  SELECT semel.now_ms(), e.generation, e.fence, e.namespace, e.key, e.type, e.detail
  FROM json_to_recordset(noted) AS e (i integer, generation bigint, fence bigint, namespace text, key text,
    type text, detail text)
  WHERE EXISTS (SELECT FROM semel.records r WHERE r.namespace = e.namespace AND r.key = e.key) ORDER BY e.i;
END $$`;
}

/** Another standing, if it is still the one that was seen. Nobody is writing meanwhile. */
function standFunction(): string {
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
  IF must_be_empty AND EXISTS (SELECT FROM semel.records) THEN
    RETURN false;
  END IF;
  UPDATE semel.meta SET moved_to = becomes ->> 'movedTo', came_from = becomes ->> 'cameFrom',
    filling = (becomes ->> 'filling')::boolean;
  RETURN true;
END $$`;
}

/** Records of another ledger replace what is here, by whoever fills it; what is gone there goes here. */
function refillFunction(): string {
  const named = 'AS x (namespace text, key text)';
  return `CREATE FUNCTION semel.refill(came text, asked json, gone json, noted json, lowest bigint)
RETURNS void LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  known semel.meta;
BEGIN
  PERFORM pg_advisory_xact_lock_shared${gate};
  PERFORM set_config('synchronous_commit', 'on', true);
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    PERFORM FROM semel.meta FOR SHARE;
  END IF;
  SELECT * INTO known FROM semel.meta;
  IF NOT known.filling OR known.came_from IS DISTINCT FROM came THEN
    RAISE EXCEPTION 'not filling' USING ERRCODE = 'SM005';
  END IF;

  WITH x AS MATERIALIZED (
    SELECT * FROM json_to_recordset(asked) ${named} UNION ALL SELECT * FROM json_to_recordset(gone) ${named}
  ), removed AS (
    DELETE FROM semel.records r USING x WHERE r.namespace = x.namespace AND r.key = x.key RETURNING r.id
  ), emptied AS (
    DELETE FROM semel.results l USING removed d WHERE l.id = d.id
  )
  DELETE FROM semel.events e USING x WHERE e.namespace = x.namespace AND e.key = x.key;

  WITH a AS MATERIALIZED (
    SELECT * FROM ${asked}
  ), fresh AS (
    INSERT INTO semel.records (namespace, key, revision, fence, created, due, expires, settled, status, flags,
      token, version, owner, args, content, result, asker, more)
    SELECT namespace, key, revision, fence, created, due, expires, settled, status, flags,
      token, version, owner, args, content, result, asker, more
    FROM a ORDER BY namespace, key RETURNING id, namespace, key
  )
  INSERT INTO semel.results (id, result)
  SELECT f.id, a.long FROM fresh f JOIN a ON a.namespace = f.namespace AND a.key = f.key WHERE a.long IS NOT NULL;

  INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
  SELECT e.at, e.generation, e.fence, e.namespace, e.key, e.type, e.detail
  FROM json_to_recordset(noted) AS e (i integer, at bigint, generation bigint, fence bigint, namespace text, key text,
    type text, detail text) ORDER BY e.i;

  UPDATE semel.meta SET floor = lowest WHERE floor < lowest;
END $$`;
}
