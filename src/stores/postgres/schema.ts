// The tables and the functions, and how an older schema becomes this one. test/stores/postgres-schema.sql shows the
// result. Everything is made by one statement list under one lock, so that many programs may start at once.

import { columns } from './rows.ts';

/** What a claim or an act writes, as the columns of a JSON list. */
const written = `namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      due bigint, expires bigint, settled bigint, status smallint, flags smallint, token text, version text, owner text,
      args text, content text, result text, asker text, more text`;

/** A plan is made while the table is small and kept when it is large: rows are looked up by their keys all the same. */
const byKey = 'SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off';

/** One list of statements per version; a list that was released never changes. `semel` stands for the schema. */
export const migrations: readonly (readonly string[])[] = [
  [
    // One row. `min_writer` is the oldest version that may still write: raised only once nothing older runs.
    `CREATE TABLE semel.meta (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  min_writer integer NOT NULL,
  incarnation text NOT NULL,
  floor bigint NOT NULL DEFAULT 0,
  moved_to text
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
 * Many swaps. Lists come in the order of their keys and new records before changed ones, so that no two of these ever
 * wait for each other in a circle.
 */
function swapFunction(): string {
  return `CREATE FUNCTION semel.swap(fresh json, changed json, now_ms bigint, floor bigint, spoilt bigint[])
RETURNS bigint[] LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  made bigint[] := '{}';
  swapped bigint[] := '{}';
BEGIN
  IF fresh IS NOT NULL THEN
    WITH made AS (
      INSERT INTO semel.records (namespace, key, revision, fence, created, due, expires, settled, status, flags,
        token, version, owner, args, content, result, asker, more)
      SELECT a.namespace, a.key, a.revision, a.fence, a.created, a.due, a.expires, a.settled, a.status, a.flags,
        a.token, a.version, a.owner, a.args, a.content, a.result, a.asker, a.more
      FROM json_to_recordset(fresh) AS a (${written})
      WHERE a.at <= now_ms AND now_ms < a.until AND a.fence > swap.floor AND NOT a.revision = ANY (spoilt)
      ON CONFLICT DO NOTHING RETURNING revision
    )
    SELECT coalesce(array_agg(m.revision), '{}') INTO made FROM made m;
  END IF;
  IF changed IS NOT NULL THEN
    WITH swapped AS (
      UPDATE semel.records r SET revision = a.revision, fence = a.fence, created = a.created,
        due = CASE WHEN a.status = 1 AND r.due <= a.expires THEN r.due ELSE a.due END,
        expires = a.expires, settled = a.settled, status = a.status, flags = a.flags, token = a.token,
        version = a.version, owner = a.owner, args = a.args, content = a.content, result = a.result,
        asker = a.asker, more = a.more
      FROM json_to_recordset(changed) AS a (${written}, old bigint, long text, shorter boolean)
      WHERE r.namespace = a.namespace AND r.key = a.key AND r.revision = a.old
        AND a.at <= now_ms AND now_ms < a.until AND NOT a.revision = ANY (spoilt)
      RETURNING r.id, r.revision, a.long, a.shorter
    ), longer AS (
      INSERT INTO semel.results (id, result) SELECT s.id, s.long FROM swapped s WHERE s.long IS NOT NULL
      ON CONFLICT (id) DO UPDATE SET result = excluded.result
    ), shorter AS (
      DELETE FROM semel.results l USING swapped s WHERE s.shorter AND l.id = s.id
    )
    SELECT coalesce(array_agg(s.revision), '{}') INTO swapped FROM swapped s;
  END IF;
  RETURN made || swapped;
END $$`;
}

/**
 * One transaction. What was not done is read by a statement of its own: one that follows the write sees what the write
 * has lost to.
 */
function exchangeFunction(): string {
  return `CREATE FUNCTION semel.exchange(fresh json, changed json, looked json, noted json, beside json, writer integer)
RETURNS TABLE (now bigint, floor bigint, done text, seen text) LANGUAGE plpgsql ${byKey} AS $$
DECLARE
  now_ms bigint := semel.now_ms();
  known semel.meta;
  swapped bigint[] := '{}';
  spoilt bigint[] := '{}';
  expected integer := coalesce(json_array_length(fresh), 0) + coalesce(json_array_length(changed), 0);
  item json;
BEGIN
  -- Whoever seals the ledger waits for those who are writing, and they for nobody else.
  PERFORM pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer);
  SELECT * INTO known FROM semel.meta WHERE one;
  IF known.moved_to IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = known.moved_to;
  ELSIF writer < known.min_writer THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = known.min_writer::text;
  END IF;

  IF beside IS NOT NULL THEN
    -- Two claims of one intent under several forms of its key come one after the other.
    PERFORM pg_advisory_xact_lock(hashtextextended(b.namespace || chr(1) || b.first, 0))
      FROM (SELECT DISTINCT x.namespace, x.first FROM json_to_recordset(beside) AS x (namespace text, first text)
            ORDER BY 1, 2) AS b;
    SELECT coalesce(array_agg(b.revision), '{}') INTO spoilt
      FROM json_to_recordset(beside) AS b (revision bigint, namespace text, key text, was bigint)
      LEFT JOIN semel.records r ON r.namespace = b.namespace AND r.key = b.key
      WHERE r.revision IS DISTINCT FROM b.was;
  END IF;

  IF expected > 0 THEN
    -- A pooler may have given us a session of somebody who does not care.
    IF current_setting('synchronous_commit') = 'off' THEN
      PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    BEGIN
      PERFORM set_config('lock_timeout', '50ms', true);
      swapped := semel.swap(fresh, changed, now_ms, known.floor, spoilt);
    EXCEPTION WHEN lock_not_available THEN
      -- Somebody's open transaction holds one of these records: the others do not wait for it.
      PERFORM set_config('lock_timeout', '10ms', true);
      FOR item IN SELECT json_array_elements(fresh) LOOP
        BEGIN
          swapped := swapped || semel.swap(json_build_array(item), NULL, now_ms, known.floor, spoilt);
        EXCEPTION WHEN lock_not_available THEN
          NULL;
        END;
      END LOOP;
      FOR item IN SELECT json_array_elements(changed) LOOP
        BEGIN
          swapped := swapped || semel.swap(NULL, json_build_array(item), now_ms, known.floor, spoilt);
        EXCEPTION WHEN lock_not_available THEN
          NULL;
        END;
      END LOOP;
    END;
    -- A fence that was removed while this waited for the one who removed it must not be given again.
    IF fresh IS NOT NULL AND EXISTS (SELECT FROM semel.meta m WHERE m.one AND m.floor > known.floor) THEN
      SELECT * INTO known FROM semel.meta WHERE one;
      IF EXISTS (SELECT FROM json_to_recordset(fresh) AS a (revision bigint, fence bigint)
                 WHERE a.fence <= known.floor AND a.revision = ANY (swapped)) THEN
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
  IF looked IS NOT NULL OR cardinality(swapped) < expected THEN
    SELECT json_agg(json_build_array(a.n, ${columns}))::text INTO seen
      FROM (
        SELECT * FROM json_to_recordset(looked) AS l (n integer, namespace text, key text, revision bigint)
        UNION ALL SELECT * FROM json_to_recordset(fresh) AS f (n integer, namespace text, key text, revision bigint)
        UNION ALL SELECT * FROM json_to_recordset(changed) AS c (n integer, namespace text, key text, revision bigint)
      ) AS a
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
  PERFORM pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer);
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  SELECT * INTO known FROM semel.meta;
  IF known.moved_to IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = known.moved_to;
  ELSIF writer < known.min_writer THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = known.min_writer::text;
  END IF;

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
