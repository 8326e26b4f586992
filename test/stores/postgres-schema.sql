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
) WITH (autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX open_records ON semel.records (namespace, key) WHERE status IN (0, 4);

CREATE INDEX record_expiry ON semel.records (expires) WHERE expires IS NOT NULL;

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

CREATE VIEW semel.operations AS SELECT
  namespace,
  key,
  (ARRAY['running', 'succeeded', 'failed', 'released', 'unknown'])[pg_catalog.int4pl(status::integer, 1)] AS status,
  coalesce(pg_catalog.json_extract_path_text(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(more, pg_catalog.repeat(pg_catalog.chr(92), 2), pg_catalog.chr(1)),
    pg_catalog.concat(pg_catalog.chr(92), 'u'), pg_catalog.concat(pg_catalog.chr(1), 'u')), pg_catalog.chr(1), pg_catalog.repeat(pg_catalog.chr(92), 2))::pg_catalog.json, 'attempts')::integer, 1) AS attempts,
  CASE WHEN pg_catalog.int2eq(status, 0::smallint) THEN pg_catalog.to_timestamp(pg_catalog.float8div(
    pg_catalog.json_extract_path_text(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(more, pg_catalog.repeat(pg_catalog.chr(92), 2), pg_catalog.chr(1)),
    pg_catalog.concat(pg_catalog.chr(92), 'u'), pg_catalog.concat(pg_catalog.chr(1), 'u')), pg_catalog.chr(1), pg_catalog.repeat(pg_catalog.chr(92), 2))::pg_catalog.json, 'lease', '1')::double precision, 1000)) END AS locked_until,
  owner,
  args,
  result,
  pg_catalog.json_extract_path_text(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(more, pg_catalog.repeat(pg_catalog.chr(92), 2), pg_catalog.chr(1)),
    pg_catalog.concat(pg_catalog.chr(92), 'u'), pg_catalog.concat(pg_catalog.chr(1), 'u')), pg_catalog.chr(1), pg_catalog.repeat(pg_catalog.chr(92), 2))::pg_catalog.json, 'error', 'message') AS error,
  pg_catalog.to_timestamp(pg_catalog.float8div(created::double precision, 1000)) AS created_at,
  pg_catalog.to_timestamp(pg_catalog.float8div(pg_catalog.int8pl(created, settled)::double precision, 1000)) AS settled_at,
  pg_catalog.to_timestamp(pg_catalog.float8div(expires::double precision, 1000)) AS expires_at
FROM semel.records;

CREATE FUNCTION semel.now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT pg_catalog.floor(extract(epoch FROM pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000)::bigint $$;

CREATE FUNCTION semel.write(claim_namespace text[] DEFAULT NULL, claim_key text[] DEFAULT NULL, claim_revision bigint[] DEFAULT NULL, claim_fence bigint[] DEFAULT NULL, claim_created bigint[] DEFAULT NULL, claim_sum integer[] DEFAULT NULL, claim_flags smallint[] DEFAULT NULL, claim_token bytea[] DEFAULT NULL, claim_version text[] DEFAULT NULL, claim_owner text[] DEFAULT NULL, claim_args text[] DEFAULT NULL, claim_content text[] DEFAULT NULL, claim_asker text[] DEFAULT NULL, claim_more text[] DEFAULT NULL, settle_namespace text[] DEFAULT NULL, settle_key text[] DEFAULT NULL, settle_old bigint[] DEFAULT NULL, settle_revision bigint[] DEFAULT NULL, settle_expires bigint[] DEFAULT NULL, settle_settled bigint[] DEFAULT NULL, settle_sum integer[] DEFAULT NULL, settle_status smallint[] DEFAULT NULL, settle_flags smallint[] DEFAULT NULL, settle_result text[] DEFAULT NULL, settle_more text[] DEFAULT NULL, at_ms bigint DEFAULT NULL, until_ms bigint DEFAULT NULL, patience text DEFAULT NULL, writer integer DEFAULT NULL) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
  known_floor bigint;
  moved text;
  is_filling boolean;
  oldest integer;
  entered boolean;
  now bigint;
  floor bigint;
  was text;
  claimed integer;
  settled integer;
  done text;
  
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  entered := pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer) IS NULL;
  SELECT m.floor, m.moved_to, m.filling, m.min_writer
    INTO known_floor, moved, is_filling, oldest FROM semel.meta m;
  IF known_floor IS NULL OR known_floor NOT BETWEEN 0 AND 9000000000000000 THEN
    RAISE EXCEPTION 'no such fence' USING ERRCODE = 'SM009';
  ELSIF moved IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = moved;
  ELSIF is_filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < oldest THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = oldest::text;
  END IF;
  now := semel.now_ms();
  floor := known_floor;
  -- A pooler may have given us a session of somebody who does not care.
  IF current_setting('synchronous_commit') = 'off' THEN
    was := set_config('synchronous_commit', 'on', true);
  END IF;
  was := set_config('lock_timeout', patience, true);
  IF NOT (at_ms <= now AND now < until_ms) THEN
    RETURN concat(now, ',', floor, ',[]');
  END IF;

  IF claim_key IS NOT NULL THEN
    INSERT INTO semel.records (namespace, key, revision, fence, created, sum, flags, token, version, owner, args, content, asker, more, status)
      SELECT a.namespace, a.key, a.revision, a.fence, a.created, a.sum, a.flags, a.token, a.version, a.owner, a.args, a.content, a.asker, a.more, 0 FROM (SELECT unnest(claim_namespace) AS namespace, unnest(claim_key) AS key, unnest(claim_revision) AS revision, unnest(claim_fence) AS fence, unnest(claim_created) AS created, unnest(claim_sum) AS sum, unnest(claim_flags) AS flags, unnest(claim_token) AS token, unnest(claim_version) AS version, unnest(claim_owner) AS owner, unnest(claim_args) AS args, unnest(claim_content) AS content, unnest(claim_asker) AS asker, unnest(claim_more) AS more) AS a
      WHERE a.fence > known_floor ON CONFLICT (namespace, key) DO NOTHING;
    GET DIAGNOSTICS claimed = ROW_COUNT;
    -- This starts only when the INSERT has ended, and so sees what it waited for.
    SELECT m.floor INTO floor FROM semel.meta m;
    IF floor > known_floor THEN
      RAISE EXCEPTION 'floor' USING ERRCODE = 'SM001', DETAIL = floor::text;
    END IF;
  END IF;

  IF settle_key IS NOT NULL THEN
    UPDATE semel.records t SET revision = a.revision, expires = a.expires, settled = a.settled, sum = a.sum, status = a.status, flags = a.flags, result = a.result, more = a.more
    FROM (SELECT unnest(settle_namespace) AS namespace, unnest(settle_key) AS key, unnest(settle_old) AS old, unnest(settle_revision) AS revision, unnest(settle_expires) AS expires, unnest(settle_settled) AS settled, unnest(settle_sum) AS sum, unnest(settle_status) AS status, unnest(settle_flags) AS flags, unnest(settle_result) AS result, unnest(settle_more) AS more) AS a WHERE t.namespace = a.namespace AND t.key = a.key AND t.revision = a.old;
    GET DIAGNOSTICS settled = ROW_COUNT;
  END IF;

  IF claimed < cardinality(claim_key) OR settled < cardinality(settle_key) THEN
    SELECT coalesce(json_agg(r.revision)::text, '[]') INTO done FROM semel.records r
    WHERE r.namespace = ANY (claim_namespace || settle_namespace) AND r.key = ANY (claim_key || settle_key)
      AND r.revision = ANY (claim_revision || settle_revision);
  END IF;
  RETURN concat(now, ',', floor, ',' || done);
END $$;

CREATE FUNCTION semel.swap(rest json DEFAULT NULL, noted json DEFAULT NULL, beside json DEFAULT NULL, patience text DEFAULT NULL, writer integer DEFAULT NULL) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
  known_floor bigint;
  moved text;
  is_filling boolean;
  oldest integer;
  entered boolean;
  now bigint;
  floor bigint;
  was text;
  swapped bigint[];
  spoilt bigint[] := '{}';
  
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  entered := pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer) IS NULL;
  SELECT m.floor, m.moved_to, m.filling, m.min_writer
    INTO known_floor, moved, is_filling, oldest FROM semel.meta m;
  IF known_floor IS NULL OR known_floor NOT BETWEEN 0 AND 9000000000000000 THEN
    RAISE EXCEPTION 'no such fence' USING ERRCODE = 'SM009';
  ELSIF moved IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = moved;
  ELSIF is_filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < oldest THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = oldest::text;
  END IF;
  now := semel.now_ms();
  floor := known_floor;
  -- A pooler may have given us a session of somebody who does not care.
  IF current_setting('synchronous_commit') = 'off' THEN
    was := set_config('synchronous_commit', 'on', true);
  END IF;

  IF beside IS NOT NULL THEN
    -- Two claims of one intent under several forms of its key come one after the other. A transaction that never ends
    -- fails the one that waits for it, and is not waited for by everybody in this batch.
    PERFORM set_config('lock_timeout', '250ms', true);
    BEGIN
      PERFORM pg_advisory_xact_lock(hashtextextended(b.namespace || chr(1) || b.first, 0))
        FROM (SELECT DISTINCT x.namespace, x.first FROM json_to_recordset(beside) AS x (namespace text, first text)
              ORDER BY 1, 2) AS b;
    EXCEPTION WHEN lock_not_available THEN
      RAISE EXCEPTION 'another form of its key is locked' USING ERRCODE = 'SM008';
    END;
    SELECT coalesce(array_agg(a.revision), '{}') INTO spoilt
      FROM json_to_recordset(beside) AS a (revision bigint, namespace text, key text, was bigint)
      LEFT JOIN semel.records r ON r.namespace = a.namespace AND r.key = a.key
      WHERE r.revision IS DISTINCT FROM a.was;
  END IF;
  was := set_config('lock_timeout', patience, true);

  WITH written AS (
    INSERT INTO semel.records (namespace, key, revision, fence, created, expires, settled, sum, status, flags, token, version, owner, args,
      content, result, asker, more) SELECT a.namespace, a.key, a.revision, a.fence, a.created, a.expires, a.settled, a.sum, a.status, a.flags, a.token, a.version, a.owner, a.args, a.content, a.result, a.asker, a.more FROM json_to_recordset(rest) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint)
    WHERE a.old IS NULL AND a.at <= now AND now < a.until AND NOT a.revision = ANY (spoilt) AND a.fence > known_floor ON CONFLICT (namespace, key) DO NOTHING RETURNING revision
  ) SELECT coalesce(array_agg(w.revision), '{}') INTO swapped FROM written w;
  IF cardinality(swapped) > 0 THEN
    SELECT m.floor INTO floor FROM semel.meta m;
    IF floor > known_floor THEN
      RAISE EXCEPTION 'floor' USING ERRCODE = 'SM001', DETAIL = floor::text;
    END IF;
  END IF;
  WITH written AS (
    UPDATE semel.records t SET revision = a.revision, fence = a.fence, created = a.created, expires = a.expires, settled = a.settled, sum = a.sum, status = a.status, flags = a.flags, token = a.token, version = a.version, owner = a.owner, args = a.args, content = a.content, result = a.result, asker = a.asker, more = a.more FROM json_to_recordset(rest) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint) WHERE t.namespace = a.namespace AND t.key = a.key AND t.revision = a.old AND a.at <= now AND now < a.until AND NOT a.revision = ANY (spoilt) RETURNING t.revision
  ) SELECT swapped || coalesce(array_agg(w.revision), '{}') INTO swapped FROM written w;
  
  IF noted IS NOT NULL THEN
    INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
    SELECT e.at, e.generation, e.fence, e.namespace, e.key, e.type, e.detail
    FROM json_to_recordset(noted) AS e (i integer, revision bigint, at bigint, generation bigint,
      fence bigint, namespace text, key text, type text, detail text)
    WHERE e.revision IS NULL OR e.revision = ANY (swapped) ORDER BY e.i;
  DELETE FROM semel.events old
  USING (SELECT DISTINCT e.namespace, e.key FROM json_to_recordset(noted) AS e (namespace text, key text)) e
  WHERE old.namespace = e.namespace AND old.key = e.key AND old.type IN ('replayed', 'conflict', 'observed', 'noted') AND old.n <= (
    SELECT o.n FROM semel.events o WHERE o.namespace = e.namespace AND o.key = e.key AND o.type IN ('replayed', 'conflict', 'observed', 'noted')
    ORDER BY o.n DESC LIMIT 1 OFFSET 200);
  DELETE FROM semel.events old
  USING (SELECT DISTINCT e.namespace, e.key FROM json_to_recordset(noted) AS e (namespace text, key text)) e
  WHERE old.namespace = e.namespace AND old.key = e.key AND old.type IN ('fenced', 'lateNews', 'duplicate', 'contradiction') AND old.n <= (
    SELECT o.n FROM semel.events o WHERE o.namespace = e.namespace AND o.key = e.key AND o.type IN ('fenced', 'lateNews', 'duplicate', 'contradiction')
    ORDER BY o.n DESC LIMIT 1 OFFSET 200);
  END IF;
  RETURN concat(now, ',', floor, ',', array_to_json(swapped));
END $$;

CREATE FUNCTION semel.look(namespaces text[] DEFAULT NULL, keys text[] DEFAULT NULL, writer integer DEFAULT NULL)
RETURNS TABLE (head text, key text, namespace text, token text, version text, owner text, args text, content text, result text, asker text, more text) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
  known_floor bigint;
  moved text;
  is_filling boolean;
  oldest integer;
  entered boolean;
BEGIN
  SELECT m.floor, m.moved_to, m.filling, m.min_writer
    INTO known_floor, moved, is_filling, oldest FROM semel.meta m;
  IF known_floor IS NULL OR known_floor NOT BETWEEN 0 AND 9000000000000000 THEN
    RAISE EXCEPTION 'no such fence' USING ERRCODE = 'SM009';
  ELSIF moved IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = moved;
  ELSIF is_filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < oldest THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = oldest::text;
  END IF;
  head := concat(semel.now_ms(), ',', known_floor);
  RETURN NEXT;
  RETURN QUERY SELECT pg_catalog.concat(r.revision, ',', r.status, ',', r.flags, ',', r.fence, ',', r.created, ',', r.settled, ',', r.expires, ',', r.sum), r.key, nullif(r.namespace, namespaces[1]), pg_catalog.encode(r.token, 'hex'), r.version, r.owner, r.args, r.content, r.result, r.asker, r.more FROM semel.records r
    WHERE r.namespace = ANY (namespaces) AND r.key = ANY (keys);
END $$;

CREATE PROCEDURE semel.own_write(claim_namespace text[] DEFAULT NULL, claim_key text[] DEFAULT NULL, claim_revision bigint[] DEFAULT NULL, claim_fence bigint[] DEFAULT NULL, claim_created bigint[] DEFAULT NULL, claim_sum integer[] DEFAULT NULL, claim_flags smallint[] DEFAULT NULL, claim_token bytea[] DEFAULT NULL, claim_version text[] DEFAULT NULL, claim_owner text[] DEFAULT NULL, claim_args text[] DEFAULT NULL, claim_content text[] DEFAULT NULL, claim_asker text[] DEFAULT NULL, claim_more text[] DEFAULT NULL, settle_namespace text[] DEFAULT NULL, settle_key text[] DEFAULT NULL, settle_old bigint[] DEFAULT NULL, settle_revision bigint[] DEFAULT NULL, settle_expires bigint[] DEFAULT NULL, settle_settled bigint[] DEFAULT NULL, settle_sum integer[] DEFAULT NULL, settle_status smallint[] DEFAULT NULL, settle_flags smallint[] DEFAULT NULL, settle_result text[] DEFAULT NULL, settle_more text[] DEFAULT NULL, at_ms bigint DEFAULT NULL, until_ms bigint DEFAULT NULL, patience text DEFAULT NULL, writer integer DEFAULT NULL, INOUT answer text DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SELECT pg_catalog.json_agg(e)::text INTO answer FROM semel.write(claim_namespace, claim_key, claim_revision, claim_fence, claim_created, claim_sum, claim_flags, claim_token, claim_version, claim_owner, claim_args, claim_content, claim_asker, claim_more, settle_namespace, settle_key, settle_old, settle_revision, settle_expires, settle_settled, settle_sum, settle_status, settle_flags, settle_result, settle_more, at_ms, until_ms, patience, writer) AS e;
END $$;

CREATE PROCEDURE semel.own_swap(rest json DEFAULT NULL, noted json DEFAULT NULL, beside json DEFAULT NULL, patience text DEFAULT NULL, writer integer DEFAULT NULL, INOUT answer text DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SELECT pg_catalog.json_agg(e)::text INTO answer FROM semel.swap(rest, noted, beside, patience, writer) AS e;
END $$;

CREATE PROCEDURE semel.own_look(namespaces text[] DEFAULT NULL, keys text[] DEFAULT NULL, writer integer DEFAULT NULL, INOUT answer text DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SELECT pg_catalog.json_agg(e)::text INTO answer FROM semel.look(namespaces, keys, writer) AS e;
END $$;

CREATE FUNCTION semel.remove(asked json, writer integer) RETURNS integer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  known_floor bigint;
  moved text;
  is_filling boolean;
  oldest integer;
  entered boolean;
  highest bigint;
  taken integer;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  entered := pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer) IS NULL;
  SELECT m.floor, m.moved_to, m.filling, m.min_writer
    INTO known_floor, moved, is_filling, oldest FROM semel.meta m;
  IF known_floor IS NULL OR known_floor NOT BETWEEN 0 AND 9000000000000000 THEN
    RAISE EXCEPTION 'no such fence' USING ERRCODE = 'SM009';
  ELSIF moved IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = moved;
  ELSIF is_filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < oldest THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = oldest::text;
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM set_config('lock_timeout', '50ms', true);

  WITH gone AS (
    DELETE FROM semel.records r USING json_to_recordset(asked) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint, types text)
    WHERE a.status IS NULL AND r.namespace = a.namespace AND r.key = a.key AND r.revision = a.old
    RETURNING r.fence, r.namespace, r.key, a.types
  ), buried AS (
    UPDATE semel.records r SET revision = a.revision, fence = a.fence, created = a.created, expires = a.expires, settled = a.settled, sum = a.sum, status = a.status, flags = a.flags, token = a.token, version = a.version, owner = a.owner, args = a.args, content = a.content, result = a.result, asker = a.asker, more = a.more FROM json_to_recordset(asked) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint, types text)
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
END $$;

CREATE FUNCTION semel.append(noted json, writer integer) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  known_floor bigint;
  moved text;
  is_filling boolean;
  oldest integer;
  entered boolean;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  entered := pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer) IS NULL;
  SELECT m.floor, m.moved_to, m.filling, m.min_writer
    INTO known_floor, moved, is_filling, oldest FROM semel.meta m;
  IF known_floor IS NULL OR known_floor NOT BETWEEN 0 AND 9000000000000000 THEN
    RAISE EXCEPTION 'no such fence' USING ERRCODE = 'SM009';
  ELSIF moved IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = moved;
  ELSIF is_filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < oldest THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = oldest::text;
  END IF;
  INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
  SELECT semel.now_ms(), e.generation, e.fence, e.namespace, e.key, e.type, e.detail
  FROM json_to_recordset(noted) AS e (i integer, generation bigint, fence bigint, namespace text, key text,
    type text, detail text)
  WHERE EXISTS (SELECT FROM semel.records r WHERE r.namespace = e.namespace AND r.key = e.key) ORDER BY e.i;
  DELETE FROM semel.events old
  USING (SELECT DISTINCT e.namespace, e.key FROM json_to_recordset(noted) AS e (namespace text, key text)) e
  WHERE old.namespace = e.namespace AND old.key = e.key AND old.type IN ('replayed', 'conflict', 'observed', 'noted') AND old.n <= (
    SELECT o.n FROM semel.events o WHERE o.namespace = e.namespace AND o.key = e.key AND o.type IN ('replayed', 'conflict', 'observed', 'noted')
    ORDER BY o.n DESC LIMIT 1 OFFSET 200);
  DELETE FROM semel.events old
  USING (SELECT DISTINCT e.namespace, e.key FROM json_to_recordset(noted) AS e (namespace text, key text)) e
  WHERE old.namespace = e.namespace AND old.key = e.key AND old.type IN ('fenced', 'lateNews', 'duplicate', 'contradiction') AND old.n <= (
    SELECT o.n FROM semel.events o WHERE o.namespace = e.namespace AND o.key = e.key AND o.type IN ('fenced', 'lateNews', 'duplicate', 'contradiction')
    ORDER BY o.n DESC LIMIT 1 OFFSET 200);
END $$;

CREATE FUNCTION semel.stand(was json, becomes json, must_be_empty boolean) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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

CREATE FUNCTION semel.refill(came text, put json, gone json, noted json, lowest bigint)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  known semel.meta;
  entered boolean;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  entered := pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer) IS NULL;
  SELECT * INTO known FROM semel.meta;
  PERFORM set_config('synchronous_commit', 'on', true);
  IF NOT known.filling OR known.came_from IS DISTINCT FROM came THEN
    RAISE EXCEPTION 'not filling' USING ERRCODE = 'SM005';
  END IF;

  WITH x AS MATERIALIZED (
    SELECT * FROM json_to_recordset(put) AS y (namespace text, key text)
    UNION ALL SELECT * FROM json_to_recordset(gone) AS y (namespace text, key text)
  ), cleared AS (
    DELETE FROM semel.records r USING x WHERE r.namespace = x.namespace AND r.key = x.key
  )
  DELETE FROM semel.events e USING x WHERE e.namespace = x.namespace AND e.key = x.key;

  INSERT INTO semel.records (namespace, key, revision, fence, created, expires, settled, sum, status, flags, token, version, owner, args,
      content, result, asker, more) SELECT a.namespace, a.key, a.revision, a.fence, a.created, a.expires, a.settled, a.sum, a.status, a.flags, a.token, a.version, a.owner, a.args, a.content, a.result, a.asker, a.more FROM json_to_recordset(put) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint);
  INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
  SELECT e.at, e.generation, e.fence, e.namespace, e.key, e.type, e.detail
  FROM json_to_recordset(noted) AS e (i integer, at bigint, generation bigint, fence bigint, namespace text, key text,
    type text, detail text) ORDER BY e.i;
  UPDATE semel.meta SET floor = lowest WHERE floor < lowest;
END $$;

CREATE TABLE semel.outbox (
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
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500);

CREATE INDEX outbox_due ON semel.outbox (namespace, ready, n) WHERE state < 2::smallint;

CREATE INDEX outbox_groups ON semel.outbox (namespace, group_name, n) WHERE group_name IS NOT NULL;

CREATE FUNCTION semel.stage(space text, key_list text, tool text, form text, in_group text, strict text, not_before text, print text, called_by text, encoded text, anyway boolean, writer integer) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  known_floor bigint;
  moved text;
  is_filling boolean;
  oldest integer;
  entered boolean;
  keys text[] := key_list;
  place text;
  now bigint;
  records json;
  row_n bigint;
  existing json;
BEGIN
  entered := pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer) IS NULL;
  SELECT m.floor, m.moved_to, m.filling, m.min_writer, pg_catalog.concat_ws(' ', m.incarnation, 'semel.meta'::regclass::oid,
    extract(epoch FROM pg_catalog.pg_postmaster_start_time()), pg_catalog.current_database()), semel.now_ms()
    INTO known_floor, moved, is_filling, oldest, place, now FROM semel.meta m;
  IF known_floor IS NULL OR known_floor NOT BETWEEN 0 AND 9000000000000000 THEN
    RAISE EXCEPTION 'no such fence' USING ERRCODE = 'SM009';
  ELSIF moved IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = moved;
  ELSIF is_filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < oldest THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = oldest::text;
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF strict = 'true' THEN
    PERFORM pg_advisory_xact_lock(hashtextextended(space || chr(1) || chr(2) || in_group, 0));
    now := semel.now_ms();
  END IF;
  FOR tries IN 1..10 LOOP
    INSERT INTO semel.outbox (due, ready, staged, namespace, key, contract, version, group_name, fingerprint, caller, call)
      SELECT coalesce(not_before::bigint, now), coalesce(not_before::bigint, now), now, space, keys[1], tool, form, in_group, print, called_by, encoded
      WHERE (anyway AND tries = 1) OR NOT EXISTS (SELECT FROM semel.records r WHERE r.namespace = space AND r.key = ANY (keys))
      ON CONFLICT (namespace, key) DO NOTHING RETURNING n INTO row_n;
    EXIT WHEN row_n IS NOT NULL;
    -- It may have been delivered while the INSERT waited for a lock.
    IF NOT anyway OR tries > 1 THEN
      SELECT json_agg(json_build_array(pg_catalog.concat(r.revision, ',', r.status, ',', r.flags, ',', r.fence, ',', r.created, ',', r.settled, ',', r.expires, ',', r.sum), r.key, nullif(r.namespace, NULL), pg_catalog.encode(r.token, 'hex'), r.version, r.owner, r.args, r.content, r.result, r.asker, r.more)) INTO records FROM semel.records r WHERE r.namespace = space AND r.key = ANY (keys);
      IF records IS NOT NULL THEN
        RETURN json_build_object('place', place, 'now', now, 'records', records);
      END IF;
    END IF;
    SELECT pg_catalog.json_build_object('n', o.n, 'state', o.state, 'stagedAt', o.staged, 'dueAt', o.due, 'tries', o.tries,
    'generation', o.generation, 'namespace', o.namespace, 'key', o.key, 'contract', o.contract,
    'version', o.version, 'group', o.group_name, 'fingerprint', o.fingerprint, 'caller', o.caller, 'call', o.call, 'reason', o.reason, 'drift', o.drift) INTO existing FROM semel.outbox o WHERE o.namespace = space AND o.key = keys[1];
    EXIT WHEN existing IS NOT NULL;
    -- It was removed in between.
  END LOOP;
  RETURN json_build_object('place', place, 'now', now, 'n', row_n, 'existing', existing);
END $$;

CREATE FUNCTION semel.stage_new(space text, only_key text, tool text, form text, in_group text, not_before text, print text, called_by text, encoded text, here text, writer integer) RETURNS text LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  entered boolean := pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtext('semel'::text), 'semel.meta'::regclass::oid::integer) IS NULL;
  now bigint := pg_catalog.floor(extract(epoch FROM pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000::numeric)::bigint;
  answer text;
BEGIN
  INSERT INTO semel.outbox (due, ready, staged, namespace, key, contract, version, group_name, fingerprint, caller, call)
    SELECT coalesce(not_before::bigint, now), coalesce(not_before::bigint, now), now, space, only_key, tool, form, in_group, print,
      called_by, encoded FROM semel.meta m
    WHERE m.one AND m.moved_to IS NULL AND NOT m.filling AND m.min_writer OPERATOR(pg_catalog.<=) writer
      AND m.floor OPERATOR(pg_catalog.>=) 0::bigint AND m.floor OPERATOR(pg_catalog.<=) 9000000000000000::bigint
      AND pg_catalog.concat_ws(' ', m.incarnation, 'semel.meta'::regclass::oid,
    extract(epoch FROM pg_catalog.pg_postmaster_start_time()), pg_catalog.current_database()) OPERATOR(pg_catalog.=) here
      AND NOT EXISTS (SELECT FROM semel.records r WHERE r.namespace OPERATOR(pg_catalog.=) space AND r.key OPERATOR(pg_catalog.=) only_key)
    ON CONFLICT (namespace, key) DO NOTHING RETURNING n::text INTO answer;
  IF answer IS NULL THEN
    RETURN semel.stage(space, ARRAY[only_key]::text, tool, form, in_group, 'false'::text, not_before, print, called_by, encoded,
      false, writer);
  END IF;
  IF pg_catalog.current_setting('synchronous_commit'::text) OPERATOR(pg_catalog.=) 'off'::text THEN
    PERFORM pg_catalog.set_config('synchronous_commit'::text, 'on'::text, true);
  END IF;
  RETURN answer;
END $$;

CREATE FUNCTION semel.note_drift(row_n bigint, fields text) RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
AS $$ UPDATE semel.outbox o SET drift = fields WHERE o.n = row_n $$;

CREATE FUNCTION semel.take(space text, contracts text, most integer, hold bigint, skip boolean, writer integer)
RETURNS TABLE (n bigint, state smallint, staged bigint, due bigint, tries integer, generation bigint, key text, contract text,
  version text, group_name text, fingerprint text, caller text, call text, reason text, drift text) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off SET enable_sort = off AS $$
#variable_conflict use_column
DECLARE
  known_floor bigint;
  moved text;
  is_filling boolean;
  oldest integer;
  entered boolean;
  now bigint;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  entered := pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer) IS NULL;
  SELECT m.floor, m.moved_to, m.filling, m.min_writer
    INTO known_floor, moved, is_filling, oldest FROM semel.meta m;
  IF known_floor IS NULL OR known_floor NOT BETWEEN 0 AND 9000000000000000 THEN
    RAISE EXCEPTION 'no such fence' USING ERRCODE = 'SM009';
  ELSIF moved IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = moved;
  ELSIF is_filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < oldest THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = oldest::text;
  END IF;
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
  RETURNING o.n, o.state, o.staged, o.due, o.tries, o.generation, o.key, o.contract, o.version, o.group_name, o.fingerprint, o.caller, o.call, o.reason, o.drift;
END $$;

CREATE FUNCTION semel.mark(asked json, writer integer) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  known_floor bigint;
  moved text;
  is_filling boolean;
  oldest integer;
  entered boolean;
  marked json;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  entered := pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer) IS NULL;
  SELECT m.floor, m.moved_to, m.filling, m.min_writer
    INTO known_floor, moved, is_filling, oldest FROM semel.meta m;
  IF known_floor IS NULL OR known_floor NOT BETWEEN 0 AND 9000000000000000 THEN
    RAISE EXCEPTION 'no such fence' USING ERRCODE = 'SM009';
  ELSIF moved IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = moved;
  ELSIF is_filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < oldest THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = oldest::text;
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  WITH written AS (
    UPDATE semel.outbox o SET generation = a.generation
    FROM json_to_recordset(asked) AS a (n bigint, generation bigint)
    WHERE o.n = a.n AND (o.generation IS NULL OR o.generation = a.generation) RETURNING o.n
  )
  SELECT json_agg(w.n) INTO marked FROM written w;
  RETURN marked;
END $$;

CREATE FUNCTION semel.keep(asked json, hold bigint, writer integer) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  known_floor bigint;
  moved text;
  is_filling boolean;
  oldest integer;
  entered boolean;
  until bigint;
  kept json;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  entered := pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer) IS NULL;
  SELECT m.floor, m.moved_to, m.filling, m.min_writer
    INTO known_floor, moved, is_filling, oldest FROM semel.meta m;
  IF known_floor IS NULL OR known_floor NOT BETWEEN 0 AND 9000000000000000 THEN
    RAISE EXCEPTION 'no such fence' USING ERRCODE = 'SM009';
  ELSIF moved IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = moved;
  ELSIF is_filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < oldest THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = oldest::text;
  END IF;
  until := semel.now_ms() + hold;
  WITH held AS (
    SELECT o.n FROM json_to_recordset(asked) AS a (n bigint, due bigint) JOIN semel.outbox o ON o.n = a.n AND o.due = a.due
    FOR UPDATE OF o SKIP LOCKED
  ), written AS (
    UPDATE semel.outbox o SET due = until FROM held h WHERE o.n = h.n RETURNING o.n
  )
  SELECT json_agg(w.n) INTO kept FROM written w;
  RETURN json_build_object('due', until, 'kept', kept);
END $$;

CREATE FUNCTION semel.finish(delivered json, others json, writer integer) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  known_floor bigint;
  moved text;
  is_filling boolean;
  oldest integer;
  entered boolean;
  now bigint;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  entered := pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer) IS NULL;
  SELECT m.floor, m.moved_to, m.filling, m.min_writer
    INTO known_floor, moved, is_filling, oldest FROM semel.meta m;
  IF known_floor IS NULL OR known_floor NOT BETWEEN 0 AND 9000000000000000 THEN
    RAISE EXCEPTION 'no such fence' USING ERRCODE = 'SM009';
  ELSIF moved IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = moved;
  ELSIF is_filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < oldest THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = oldest::text;
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
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
END $$;

CREATE OR REPLACE FUNCTION semel.stand(was json, becomes json, must_be_empty boolean) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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
  IF becomes ->> 'movedTo' IS NOT NULL AND EXISTS (SELECT FROM semel.outbox) THEN
    RAISE EXCEPTION 'outbox' USING ERRCODE = 'SM010';
  END IF;
  UPDATE semel.meta SET moved_to = becomes ->> 'movedTo', came_from = becomes ->> 'cameFrom',
    filling = (becomes ->> 'filling')::boolean;
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION semel.remove(asked json, writer integer) RETURNS integer LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  known_floor bigint;
  moved text;
  is_filling boolean;
  oldest integer;
  entered boolean;
  highest bigint;
  taken integer;
  probes bigint[];
  answering bigint[];
  part bigint[];
  size integer;
  held bigint[] := '{}';
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  entered := pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer) IS NULL;
  SELECT m.floor, m.moved_to, m.filling, m.min_writer
    INTO known_floor, moved, is_filling, oldest FROM semel.meta m;
  IF known_floor IS NULL OR known_floor NOT BETWEEN 0 AND 9000000000000000 THEN
    RAISE EXCEPTION 'no such fence' USING ERRCODE = 'SM009';
  ELSIF moved IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = moved;
  ELSIF is_filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < oldest THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = oldest::text;
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM set_config('lock_timeout', '50ms', true);

  IF EXISTS (SELECT FROM pg_locks l WHERE l.relation = 'semel.outbox'::regclass AND l.mode = 'RowExclusiveLock'
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND l.pid IS DISTINCT FROM pg_backend_pid()) THEN
    SELECT coalesce(array_agg(r.revision ORDER BY r.namespace, r.key), '{}') INTO answering FROM json_to_recordset(asked) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint)
        JOIN semel.records r ON r.namespace = a.namespace AND r.key = a.key AND r.revision = a.old
        WHERE a.status IS NULL AND r.flags & 3::smallint > 1
      AND (r.status = 1 OR r.status = 2 AND strpos(r.more, '"doubtFence":') > 0);
    size := cardinality(answering);
  WHILE cardinality(answering) > 0 LOOP
    part := answering[1:size];
    BEGIN
      -- Waits for a transaction that has staged the intent and is still open.
      WITH probed AS (
        INSERT INTO semel.outbox (due, ready, staged, namespace, key, contract, version, call)
          SELECT 0, 0, 0, r.namespace, r.key, '', '', '' FROM json_to_recordset(asked) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint)
        JOIN semel.records r ON r.namespace = a.namespace AND r.key = a.key AND r.revision = a.old
        WHERE a.status IS NULL AND r.flags & 3::smallint > 1
      AND (r.status = 1 OR r.status = 2 AND strpos(r.more, '"doubtFence":') > 0) AND r.revision = ANY (part)
          ORDER BY 4, 5 ON CONFLICT (namespace, key) DO NOTHING RETURNING n
      ) SELECT array_agg(p.n) INTO probes FROM probed p;
      DELETE FROM semel.outbox o WHERE o.n = ANY (probes);
      answering := answering[cardinality(part) + 1:];
      size := size * 2;
    EXCEPTION WHEN lock_not_available THEN
      IF cardinality(part) = 1 THEN
        held := held || part;
        answering := answering[2:];
      END IF;
      size := greatest(cardinality(part) / 2, 1);
      -- The first step has waited for those that end soon.
      PERFORM set_config('lock_timeout', '1ms', true);
    END;
  END LOOP;
  IF size > 0 THEN
    PERFORM set_config('lock_timeout', '50ms', true);
  END IF;
  END IF;
  WITH gone AS (
    DELETE FROM semel.records r USING json_to_recordset(asked) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint, types text)
    WHERE a.status IS NULL AND r.namespace = a.namespace AND r.key = a.key AND r.revision = a.old
      AND NOT EXISTS (SELECT FROM semel.outbox w WHERE w.namespace = r.namespace AND w.key = r.key AND w.staged < r.expires) AND r.revision <> ALL (held)
    RETURNING r.fence, r.namespace, r.key, a.types
  ), buried AS (
    UPDATE semel.records r SET revision = a.revision, fence = a.fence, created = a.created, expires = a.expires, settled = a.settled, sum = a.sum, status = a.status, flags = a.flags, token = a.token, version = a.version, owner = a.owner, args = a.args, content = a.content, result = a.result, asker = a.asker, more = a.more FROM json_to_recordset(asked) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint, types text)
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
END $$;

CREATE OR REPLACE FUNCTION semel.write(claim_namespace text[] DEFAULT NULL, claim_key text[] DEFAULT NULL, claim_revision bigint[] DEFAULT NULL, claim_fence bigint[] DEFAULT NULL, claim_created bigint[] DEFAULT NULL, claim_sum integer[] DEFAULT NULL, claim_flags smallint[] DEFAULT NULL, claim_token bytea[] DEFAULT NULL, claim_version text[] DEFAULT NULL, claim_owner text[] DEFAULT NULL, claim_args text[] DEFAULT NULL, claim_content text[] DEFAULT NULL, claim_asker text[] DEFAULT NULL, claim_more text[] DEFAULT NULL, settle_namespace text[] DEFAULT NULL, settle_key text[] DEFAULT NULL, settle_old bigint[] DEFAULT NULL, settle_revision bigint[] DEFAULT NULL, settle_expires bigint[] DEFAULT NULL, settle_settled bigint[] DEFAULT NULL, settle_sum integer[] DEFAULT NULL, settle_status smallint[] DEFAULT NULL, settle_flags smallint[] DEFAULT NULL, settle_result text[] DEFAULT NULL, settle_more text[] DEFAULT NULL, at_ms bigint DEFAULT NULL, until_ms bigint DEFAULT NULL, patience text DEFAULT NULL, writer integer DEFAULT NULL) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
  known_floor bigint;
  moved text;
  is_filling boolean;
  oldest integer;
  entered boolean;
  now bigint;
  floor bigint;
  was text;
  claimed integer;
  settled integer;
  done text;
  landed bigint[];
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  entered := pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer) IS NULL;
  SELECT m.floor, m.moved_to, m.filling, m.min_writer
    INTO known_floor, moved, is_filling, oldest FROM semel.meta m;
  IF known_floor IS NULL OR known_floor NOT BETWEEN 0 AND 9000000000000000 THEN
    RAISE EXCEPTION 'no such fence' USING ERRCODE = 'SM009';
  ELSIF moved IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = moved;
  ELSIF is_filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < oldest THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = oldest::text;
  END IF;
  now := semel.now_ms();
  floor := known_floor;
  -- A pooler may have given us a session of somebody who does not care.
  IF current_setting('synchronous_commit') = 'off' THEN
    was := set_config('synchronous_commit', 'on', true);
  END IF;
  was := set_config('lock_timeout', patience, true);
  IF NOT (at_ms <= now AND now < until_ms) THEN
    RETURN concat(now, ',', floor, ',[]');
  END IF;

  IF claim_key IS NOT NULL THEN
    INSERT INTO semel.records (namespace, key, revision, fence, created, sum, flags, token, version, owner, args, content, asker, more, status)
      SELECT a.namespace, a.key, a.revision, a.fence, a.created, a.sum, a.flags, a.token, a.version, a.owner, a.args, a.content, a.asker, a.more, 0 FROM (SELECT unnest(claim_namespace) AS namespace, unnest(claim_key) AS key, unnest(claim_revision) AS revision, unnest(claim_fence) AS fence, unnest(claim_created) AS created, unnest(claim_sum) AS sum, unnest(claim_flags) AS flags, unnest(claim_token) AS token, unnest(claim_version) AS version, unnest(claim_owner) AS owner, unnest(claim_args) AS args, unnest(claim_content) AS content, unnest(claim_asker) AS asker, unnest(claim_more) AS more) AS a
      WHERE a.fence > known_floor ON CONFLICT (namespace, key) DO NOTHING;
    GET DIAGNOSTICS claimed = ROW_COUNT;
    -- This starts only when the INSERT has ended, and so sees what it waited for.
    SELECT m.floor INTO floor FROM semel.meta m;
    IF floor > known_floor THEN
      RAISE EXCEPTION 'floor' USING ERRCODE = 'SM001', DETAIL = floor::text;
    END IF;
  END IF;

  IF settle_key IS NOT NULL THEN
    WITH written AS (
      UPDATE semel.records t SET revision = a.revision, expires = a.expires, settled = a.settled, sum = a.sum, status = a.status, flags = a.flags, result = a.result, more = a.more
    FROM (SELECT unnest(settle_namespace) AS namespace, unnest(settle_key) AS key, unnest(settle_old) AS old, unnest(settle_revision) AS revision, unnest(settle_expires) AS expires, unnest(settle_settled) AS settled, unnest(settle_sum) AS sum, unnest(settle_status) AS status, unnest(settle_flags) AS flags, unnest(settle_result) AS result, unnest(settle_more) AS more) AS a WHERE t.namespace = a.namespace AND t.key = a.key AND t.revision = a.old RETURNING t.namespace, t.key, t.status, t.flags, t.asker, t.more
    )
    SELECT count(*), array_agg(o.n) FILTER (WHERE o.n IS NOT NULL) INTO settled, landed
    FROM written w LEFT JOIN semel.outbox o ON w.status = 1 AND w.flags & 3::smallint > 1
      AND o.namespace = w.namespace AND o.key = w.key AND (o.fingerprint IS NULL OR strpos(w.more, concat('"fingerprint":"', o.fingerprint, '"')) > 0)
      AND (o.caller IS NULL) = (coalesce(json_array_length(w.asker::json), 0) < 6)
      AND (o.caller IS NULL OR right(w.asker, length(o.caller) + 3) = concat('"', o.caller, '"]'));
    IF landed IS NOT NULL THEN
    BEGIN
      DELETE FROM semel.outbox o WHERE o.n = ANY (landed);
    EXCEPTION WHEN lock_not_available THEN
      DELETE FROM semel.outbox o WHERE o.n IN (SELECT l.n FROM semel.outbox l WHERE l.n = ANY (landed) FOR UPDATE SKIP LOCKED);
    END;
  END IF;
  END IF;

  IF claimed < cardinality(claim_key) OR settled < cardinality(settle_key) THEN
    SELECT coalesce(json_agg(r.revision)::text, '[]') INTO done FROM semel.records r
    WHERE r.namespace = ANY (claim_namespace || settle_namespace) AND r.key = ANY (claim_key || settle_key)
      AND r.revision = ANY (claim_revision || settle_revision);
  END IF;
  RETURN concat(now, ',', floor, ',' || done);
END $$;

CREATE OR REPLACE FUNCTION semel.swap(rest json DEFAULT NULL, noted json DEFAULT NULL, beside json DEFAULT NULL, patience text DEFAULT NULL, writer integer DEFAULT NULL) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
  known_floor bigint;
  moved text;
  is_filling boolean;
  oldest integer;
  entered boolean;
  now bigint;
  floor bigint;
  was text;
  swapped bigint[];
  spoilt bigint[] := '{}';
  landed bigint[];
  failed bigint[];
  former bigint[];
  part bigint[];
  size integer;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  entered := pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer) IS NULL;
  SELECT m.floor, m.moved_to, m.filling, m.min_writer
    INTO known_floor, moved, is_filling, oldest FROM semel.meta m;
  IF known_floor IS NULL OR known_floor NOT BETWEEN 0 AND 9000000000000000 THEN
    RAISE EXCEPTION 'no such fence' USING ERRCODE = 'SM009';
  ELSIF moved IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = moved;
  ELSIF is_filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < oldest THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = oldest::text;
  END IF;
  now := semel.now_ms();
  floor := known_floor;
  -- A pooler may have given us a session of somebody who does not care.
  IF current_setting('synchronous_commit') = 'off' THEN
    was := set_config('synchronous_commit', 'on', true);
  END IF;

  IF beside IS NOT NULL THEN
    -- Two claims of one intent under several forms of its key come one after the other. A transaction that never ends
    -- fails the one that waits for it, and is not waited for by everybody in this batch.
    PERFORM set_config('lock_timeout', '250ms', true);
    BEGIN
      PERFORM pg_advisory_xact_lock(hashtextextended(b.namespace || chr(1) || b.first, 0))
        FROM (SELECT DISTINCT x.namespace, x.first FROM json_to_recordset(beside) AS x (namespace text, first text)
              ORDER BY 1, 2) AS b;
    EXCEPTION WHEN lock_not_available THEN
      RAISE EXCEPTION 'another form of its key is locked' USING ERRCODE = 'SM008';
    END;
    SELECT coalesce(array_agg(a.revision), '{}') INTO spoilt
      FROM json_to_recordset(beside) AS a (revision bigint, namespace text, key text, was bigint)
      LEFT JOIN semel.records r ON r.namespace = a.namespace AND r.key = a.key
      WHERE r.revision IS DISTINCT FROM a.was;
  END IF;
  was := set_config('lock_timeout', patience, true);

  WITH written AS (
    INSERT INTO semel.records (namespace, key, revision, fence, created, expires, settled, sum, status, flags, token, version, owner, args,
      content, result, asker, more) SELECT a.namespace, a.key, a.revision, a.fence, a.created, a.expires, a.settled, a.sum, a.status, a.flags, a.token, a.version, a.owner, a.args, a.content, a.result, a.asker, a.more FROM json_to_recordset(rest) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint)
    WHERE a.old IS NULL AND a.at <= now AND now < a.until AND NOT a.revision = ANY (spoilt) AND a.fence > known_floor ON CONFLICT (namespace, key) DO NOTHING RETURNING revision
  ) SELECT coalesce(array_agg(w.revision), '{}') INTO swapped FROM written w;
  IF cardinality(swapped) > 0 THEN
    SELECT m.floor INTO floor FROM semel.meta m;
    IF floor > known_floor THEN
      RAISE EXCEPTION 'floor' USING ERRCODE = 'SM001', DETAIL = floor::text;
    END IF;
  END IF;
  
  SELECT coalesce(array_agg(a.revision ORDER BY t.namespace, t.key), '{}') INTO former
    FROM json_to_recordset(rest) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint) JOIN semel.records t ON t.namespace = a.namespace AND t.key = a.key AND t.revision = a.old AND a.status = 0 AND t.flags & 3::smallint > 1
      AND (t.status = 1 OR t.status = 2 AND strpos(t.more, '"doubtFence":') > 0);
  size := cardinality(former);
  WHILE cardinality(former) > 0 LOOP
    part := former[1:size];
    BEGIN
      -- Waits for a transaction that has staged the intent and is still open.
      WITH probed AS (
        INSERT INTO semel.outbox (due, ready, staged, namespace, key, contract, version, call)
          SELECT 0, 0, 0, t.namespace, t.key, '', '', '' FROM json_to_recordset(rest) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint) JOIN semel.records t ON t.namespace = a.namespace AND t.key = a.key AND t.revision = a.old AND a.status = 0 AND t.flags & 3::smallint > 1
      AND (t.status = 1 OR t.status = 2 AND strpos(t.more, '"doubtFence":') > 0) WHERE a.revision = ANY (part)
          ORDER BY 4, 5 ON CONFLICT (namespace, key) DO NOTHING RETURNING n
      ) SELECT array_agg(p.n) INTO landed FROM probed p;
      DELETE FROM semel.outbox o WHERE o.n = ANY (landed);
      DELETE FROM semel.outbox o USING json_to_recordset(rest) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint), semel.records t
        WHERE t.namespace = a.namespace AND t.key = a.key AND t.revision = a.old AND a.status = 0 AND t.flags & 3::smallint > 1
      AND (t.status = 1 OR t.status = 2 AND strpos(t.more, '"doubtFence":') > 0) AND a.revision = ANY (part) AND o.namespace = t.namespace AND o.key = t.key AND o.staged < t.expires AND t.status = 1 AND (o.fingerprint IS NULL OR strpos(t.more, concat('"fingerprint":"', o.fingerprint, '"')) > 0)
      AND (o.caller IS NULL) = (coalesce(json_array_length(t.asker::json), 0) < 6)
      AND (o.caller IS NULL OR right(t.asker, length(o.caller) + 3) = concat('"', o.caller, '"]'));
      UPDATE semel.outbox o SET generation = coalesce(substring(t.more FROM '"generation":([0-9]+)')::bigint, t.fence) FROM json_to_recordset(rest) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint), semel.records t
        WHERE t.namespace = a.namespace AND t.key = a.key AND t.revision = a.old AND a.status = 0 AND t.flags & 3::smallint > 1
      AND (t.status = 1 OR t.status = 2 AND strpos(t.more, '"doubtFence":') > 0) AND a.revision = ANY (part) AND o.namespace = t.namespace AND o.key = t.key AND o.staged < t.expires AND o.generation IS NULL AND (o.fingerprint = 'strict' OR (o.fingerprint IS NULL OR strpos(t.more, concat('"fingerprint":"', o.fingerprint, '"')) > 0)
      AND (o.caller IS NULL) = (coalesce(json_array_length(t.asker::json), 0) < 6)
      AND (o.caller IS NULL OR right(t.asker, length(o.caller) + 3) = concat('"', o.caller, '"]')));
      former := former[cardinality(part) + 1:];
      size := size * 2;
    EXCEPTION WHEN lock_not_available THEN
      IF cardinality(part) = 1 THEN
        spoilt := spoilt || part;
        former := former[2:];
      END IF;
      size := greatest(cardinality(part) / 2, 1);
      -- The first step has waited for those that end soon.
      PERFORM set_config('lock_timeout', '1ms', true);
    END;
  END LOOP;
  IF size > 0 THEN
    PERFORM set_config('lock_timeout', patience, true);
  END IF;
WITH written AS (
    UPDATE semel.records t SET revision = a.revision, fence = a.fence, created = a.created, expires = a.expires, settled = a.settled, sum = a.sum, status = a.status, flags = a.flags, token = a.token, version = a.version, owner = a.owner, args = a.args, content = a.content, result = a.result, asker = a.asker, more = a.more FROM json_to_recordset(rest) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint) WHERE t.namespace = a.namespace AND t.key = a.key AND t.revision = a.old AND a.at <= now AND now < a.until AND NOT a.revision = ANY (spoilt) RETURNING t.revision
  ) SELECT swapped || coalesce(array_agg(w.revision), '{}') INTO swapped FROM written w;
  SELECT array_agg(o.n) FILTER (WHERE r.status = 1), array_agg(o.n) FILTER (WHERE r.status = 2) INTO landed, failed
    FROM json_to_recordset(rest) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, sum integer, status smallint, flags smallint, token bytea, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint) JOIN semel.records r ON r.namespace = a.namespace AND r.key = a.key AND r.revision = a.revision
    JOIN semel.outbox o ON o.namespace = r.namespace AND o.key = r.key
    WHERE r.status IN (1, 2) AND r.flags & 3::smallint > 1 AND (r.expires IS NULL OR r.expires > now OR r.flags & 64::smallint > 0) AND (o.fingerprint IS NULL OR strpos(r.more, concat('"fingerprint":"', o.fingerprint, '"')) > 0)
      AND (o.caller IS NULL) = (coalesce(json_array_length(r.asker::json), 0) < 6)
      AND (o.caller IS NULL OR right(r.asker, length(o.caller) + 3) = concat('"', o.caller, '"]'));
  IF landed IS NOT NULL OR failed IS NOT NULL THEN
    BEGIN
      DELETE FROM semel.outbox o WHERE o.n = ANY (landed);
      UPDATE semel.outbox o SET state = 2,
        due = CASE WHEN f.given_up THEN 0 ELSE o.due END,
        reason = CASE WHEN f.given_up THEN 'a person gave up its record, and it may have landed: semel show says more' ELSE 'its record is failed: semel show says why' END,
        generation = CASE WHEN f.given_up THEN f.life ELSE nullif(o.generation, f.life) END
      FROM (SELECT r.namespace, r.key, strpos(r.more, '"doubtFence":') > 0 AS given_up, coalesce(substring(r.more FROM '"generation":([0-9]+)')::bigint, r.fence) AS life FROM semel.records r) AS f
      WHERE o.n = ANY (failed) AND f.namespace = o.namespace AND f.key = o.key;
    EXCEPTION WHEN lock_not_available THEN
      DELETE FROM semel.outbox o WHERE o.n IN (SELECT l.n FROM semel.outbox l WHERE l.n = ANY (landed) FOR UPDATE SKIP LOCKED);
    END;
  END IF;

  IF noted IS NOT NULL THEN
    INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
    SELECT e.at, e.generation, e.fence, e.namespace, e.key, e.type, e.detail
    FROM json_to_recordset(noted) AS e (i integer, revision bigint, at bigint, generation bigint,
      fence bigint, namespace text, key text, type text, detail text)
    WHERE e.revision IS NULL OR e.revision = ANY (swapped) ORDER BY e.i;
  DELETE FROM semel.events old
  USING (SELECT DISTINCT e.namespace, e.key FROM json_to_recordset(noted) AS e (namespace text, key text)) e
  WHERE old.namespace = e.namespace AND old.key = e.key AND old.type IN ('replayed', 'conflict', 'observed', 'noted') AND old.n <= (
    SELECT o.n FROM semel.events o WHERE o.namespace = e.namespace AND o.key = e.key AND o.type IN ('replayed', 'conflict', 'observed', 'noted')
    ORDER BY o.n DESC LIMIT 1 OFFSET 200);
  DELETE FROM semel.events old
  USING (SELECT DISTINCT e.namespace, e.key FROM json_to_recordset(noted) AS e (namespace text, key text)) e
  WHERE old.namespace = e.namespace AND old.key = e.key AND old.type IN ('fenced', 'lateNews', 'duplicate', 'contradiction') AND old.n <= (
    SELECT o.n FROM semel.events o WHERE o.namespace = e.namespace AND o.key = e.key AND o.type IN ('fenced', 'lateNews', 'duplicate', 'contradiction')
    ORDER BY o.n DESC LIMIT 1 OFFSET 200);
  END IF;
  RETURN concat(now, ',', floor, ',', array_to_json(swapped));
END $$;
