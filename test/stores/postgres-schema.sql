CREATE TABLE semel.meta (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  min_writer integer NOT NULL,
  incarnation text NOT NULL,
  floor bigint NOT NULL DEFAULT 0,
  moved_to text,
  came_from text,
  filling boolean NOT NULL DEFAULT false
);

CREATE TABLE semel.records (
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
) WITH (fillfactor = 80);

CREATE INDEX records_due ON semel.records (due) WHERE due IS NOT NULL;

CREATE TABLE semel.results (id bigint PRIMARY KEY, result text NOT NULL);

CREATE TABLE semel.events (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  generation bigint NOT NULL,
  fence bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  type text NOT NULL,
  detail text NOT NULL
);

CREATE INDEX events_of ON semel.events (namespace, key, n);

CREATE FUNCTION semel.now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

CREATE FUNCTION semel.swap(asked json, now_ms bigint, floor bigint, spoilt bigint[])
RETURNS bigint[] LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  swapped bigint[];
BEGIN
  WITH a AS MATERIALIZED (
    SELECT * FROM json_to_recordset(asked) AS a (
      n integer, namespace text, key text, old bigint, revision bigint, at bigint, until bigint,
      fence bigint, created bigint, due bigint, expires bigint, settled bigint, status smallint, flags smallint,
      token text, version text, owner text, args text, content text, result text, asker text, more text,
      long text, shorter boolean)
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
END $$;

CREATE FUNCTION semel.exchange(asked json, noted json, beside json, writer integer)
RETURNS TABLE (now bigint, floor bigint, done text, seen text) LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  now_ms bigint := semel.now_ms();
  known semel.meta;
  swapped bigint[] := '{}';
  spoilt bigint[] := '{}';
  count integer := json_array_length(asked);
  item json;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer);
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
  END IF;

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
    IF EXISTS (SELECT FROM json_to_recordset(asked) AS a (
      n integer, namespace text, key text, old bigint, revision bigint, at bigint, until bigint,
      fence bigint, created bigint, due bigint, expires bigint, settled bigint, status smallint, flags smallint,
      token text, version text, owner text, args text, content text, result text, asker text, more text,
      long text, shorter boolean) WHERE a.old IS NULL AND a.fence <= known.floor
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
END $$;

CREATE FUNCTION semel.remove(asked json, writer integer) RETURNS integer LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  known semel.meta;
  highest bigint;
  taken integer;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer);
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
END $$;

CREATE FUNCTION semel.append(noted json, writer integer) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  known semel.meta;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer);
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
  END IF;
  INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
  SELECT semel.now_ms(), e.generation, e.fence, e.namespace, e.key, e.type, e.detail
  FROM json_to_recordset(noted) AS e (i integer, generation bigint, fence bigint, namespace text, key text,
    type text, detail text)
  WHERE EXISTS (SELECT FROM semel.records r WHERE r.namespace = e.namespace AND r.key = e.key) ORDER BY e.i;
END $$;

CREATE FUNCTION semel.stand(was json, becomes json, must_be_empty boolean) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  known semel.meta;
BEGIN
  PERFORM set_config('lock_timeout', '1s', true);
  PERFORM pg_advisory_xact_lock(hashtext('semel'), 'semel.meta'::regclass::oid::integer);
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
END $$;

CREATE FUNCTION semel.refill(came text, asked json, gone json, noted json, lowest bigint)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
  known semel.meta;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer);
  PERFORM set_config('synchronous_commit', 'on', true);
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    PERFORM FROM semel.meta FOR SHARE;
  END IF;
  SELECT * INTO known FROM semel.meta;
  IF NOT known.filling OR known.came_from IS DISTINCT FROM came THEN
    RAISE EXCEPTION 'not filling' USING ERRCODE = 'SM005';
  END IF;

  WITH x AS MATERIALIZED (
    SELECT * FROM json_to_recordset(asked) AS x (namespace text, key text) UNION ALL SELECT * FROM json_to_recordset(gone) AS x (namespace text, key text)
  ), removed AS (
    DELETE FROM semel.records r USING x WHERE r.namespace = x.namespace AND r.key = x.key RETURNING r.id
  ), emptied AS (
    DELETE FROM semel.results l USING removed d WHERE l.id = d.id
  )
  DELETE FROM semel.events e USING x WHERE e.namespace = x.namespace AND e.key = x.key;

  WITH a AS MATERIALIZED (
    SELECT * FROM json_to_recordset(asked) AS a (
      n integer, namespace text, key text, old bigint, revision bigint, at bigint, until bigint,
      fence bigint, created bigint, due bigint, expires bigint, settled bigint, status smallint, flags smallint,
      token text, version text, owner text, args text, content text, result text, asker text, more text,
      long text, shorter boolean)
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
END $$;
