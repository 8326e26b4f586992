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

CREATE TABLE semel.open (
  revision bigint NOT NULL,
  fence bigint NOT NULL,
  created bigint NOT NULL,
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
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0);

CREATE TABLE semel.closed (
  revision bigint NOT NULL,
  fence bigint NOT NULL,
  created bigint NOT NULL,
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
);

CREATE INDEX closed_expires ON semel.closed (expires) WHERE expires IS NOT NULL;

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

CREATE FUNCTION semel.swap(kind_list smallint[], namespace_list text[], key_list text[], revision_list bigint[], old_list bigint[], at_list bigint[], until_list bigint[], fence_list bigint[], created_list bigint[], expires_list bigint[], settled_list bigint[], status_list smallint[], flags_list smallint[], token_list text[], version_list text[], owner_list text[], args_list text[], content_list text[], result_list text[], asker_list text[], more_list text[],
  now_ms bigint, floor bigint, spoilt bigint[])
RETURNS bigint[] LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  swapped bigint[] := '{}';
  late bigint[];
BEGIN
  -- New: nothing may be there, in either table.
  IF 0 = ANY (kind_list) THEN
    WITH made AS (
      INSERT INTO semel.open (namespace, key, revision, fence, created, expires, settled, status, flags, token, version, owner, args,
      content, result, asker, more)
      SELECT a.namespace, a.key, a.revision, a.fence, a.created, a.expires, a.settled, a.status, a.flags, a.token, a.version, a.owner, a.args, a.content, a.result, a.asker, a.more FROM (SELECT unnest(kind_list) AS kind, unnest(namespace_list) AS namespace, unnest(key_list) AS key, unnest(revision_list) AS revision, unnest(old_list) AS old, unnest(at_list) AS at, unnest(until_list) AS until, unnest(fence_list) AS fence, unnest(created_list) AS created, unnest(expires_list) AS expires, unnest(settled_list) AS settled, unnest(status_list) AS status, unnest(flags_list) AS flags, unnest(token_list) AS token, unnest(version_list) AS version, unnest(owner_list) AS owner, unnest(args_list) AS args, unnest(content_list) AS content, unnest(result_list) AS result, unnest(asker_list) AS asker, unnest(more_list) AS more) AS a
      WHERE a.kind = 0 AND a.at <= now_ms AND now_ms < a.until AND NOT a.revision = ANY (spoilt) AND a.fence > swap.floor
      ON CONFLICT DO NOTHING RETURNING revision
    )
    SELECT coalesce(array_agg(m.revision), '{}') INTO swapped FROM made m;
    -- Whoever waited for a record to leave the one table finds it in the other, by a statement that starts only now.
    SELECT array_agg(a.revision) INTO late
    FROM (SELECT unnest(kind_list) AS kind, unnest(namespace_list) AS namespace, unnest(key_list) AS key, unnest(revision_list) AS revision) AS a
    JOIN semel.closed c ON c.namespace = a.namespace AND c.key = a.key
    WHERE a.kind = 0;
    IF late IS NOT NULL THEN
      DELETE FROM semel.open o USING (SELECT unnest(namespace_list) AS namespace, unnest(key_list) AS key, unnest(revision_list) AS revision) AS a
      WHERE o.namespace = a.namespace AND o.key = a.key AND o.revision = a.revision AND a.revision = ANY (late);
      SELECT coalesce(array_agg(m), '{}') INTO swapped FROM unnest(swapped) AS m WHERE NOT m = ANY (late);
    END IF;
  END IF;
  -- In open, and stays there: held.
  IF 1 = ANY (kind_list) THEN
    WITH written AS (
      UPDATE semel.open t SET revision = a.revision, fence = a.fence, created = a.created, expires = a.expires, settled = a.settled, status = a.status, flags = a.flags, token = a.token, version = a.version, owner = a.owner, args = a.args, content = a.content, result = a.result, asker = a.asker, more = a.more
      FROM (SELECT unnest(kind_list) AS kind, unnest(namespace_list) AS namespace, unnest(key_list) AS key, unnest(revision_list) AS revision, unnest(old_list) AS old, unnest(at_list) AS at, unnest(until_list) AS until, unnest(fence_list) AS fence, unnest(created_list) AS created, unnest(expires_list) AS expires, unnest(settled_list) AS settled, unnest(status_list) AS status, unnest(flags_list) AS flags, unnest(token_list) AS token, unnest(version_list) AS version, unnest(owner_list) AS owner, unnest(args_list) AS args, unnest(content_list) AS content, unnest(result_list) AS result, unnest(asker_list) AS asker, unnest(more_list) AS more) AS a WHERE a.kind = 1 AND t.namespace = a.namespace AND t.key = a.key AND t.revision = a.old AND a.at <= now_ms AND now_ms < a.until AND NOT a.revision = ANY (spoilt) RETURNING t.revision
    ) SELECT swapped || coalesce(array_agg(w.revision), '{}') INTO swapped FROM written w;
  END IF;
  -- From open to closed: ended.
  IF 2 = ANY (kind_list) THEN
    WITH gone AS (
      DELETE FROM semel.open t USING (SELECT unnest(kind_list) AS kind, unnest(namespace_list) AS namespace, unnest(key_list) AS key, unnest(revision_list) AS revision, unnest(old_list) AS old, unnest(at_list) AS at, unnest(until_list) AS until, unnest(fence_list) AS fence, unnest(created_list) AS created, unnest(expires_list) AS expires, unnest(settled_list) AS settled, unnest(status_list) AS status, unnest(flags_list) AS flags, unnest(token_list) AS token, unnest(version_list) AS version, unnest(owner_list) AS owner, unnest(args_list) AS args, unnest(content_list) AS content, unnest(result_list) AS result, unnest(asker_list) AS asker, unnest(more_list) AS more) AS a
      WHERE a.kind = 2 AND t.namespace = a.namespace AND t.key = a.key AND t.revision = a.old AND a.at <= now_ms AND now_ms < a.until AND NOT a.revision = ANY (spoilt) RETURNING a.*
    ), written AS (
      INSERT INTO semel.closed (namespace, key, revision, fence, created, expires, settled, status, flags, token, version, owner, args,
      content, result, asker, more) SELECT g.namespace, g.key, g.revision, g.fence, g.created, g.expires, g.settled, g.status, g.flags, g.token, g.version, g.owner, g.args, g.content, g.result, g.asker, g.more FROM gone g RETURNING revision
    ) SELECT swapped || coalesce(array_agg(w.revision), '{}') INTO swapped FROM written w;
  END IF;
  -- From closed to open: taken.
  IF 3 = ANY (kind_list) THEN
    WITH gone AS (
      DELETE FROM semel.closed t USING (SELECT unnest(kind_list) AS kind, unnest(namespace_list) AS namespace, unnest(key_list) AS key, unnest(revision_list) AS revision, unnest(old_list) AS old, unnest(at_list) AS at, unnest(until_list) AS until, unnest(fence_list) AS fence, unnest(created_list) AS created, unnest(expires_list) AS expires, unnest(settled_list) AS settled, unnest(status_list) AS status, unnest(flags_list) AS flags, unnest(token_list) AS token, unnest(version_list) AS version, unnest(owner_list) AS owner, unnest(args_list) AS args, unnest(content_list) AS content, unnest(result_list) AS result, unnest(asker_list) AS asker, unnest(more_list) AS more) AS a
      WHERE a.kind = 3 AND t.namespace = a.namespace AND t.key = a.key AND t.revision = a.old AND a.at <= now_ms AND now_ms < a.until AND NOT a.revision = ANY (spoilt) RETURNING a.*
    ), written AS (
      INSERT INTO semel.open (namespace, key, revision, fence, created, expires, settled, status, flags, token, version, owner, args,
      content, result, asker, more) SELECT g.namespace, g.key, g.revision, g.fence, g.created, g.expires, g.settled, g.status, g.flags, g.token, g.version, g.owner, g.args, g.content, g.result, g.asker, g.more FROM gone g RETURNING revision
    ) SELECT swapped || coalesce(array_agg(w.revision), '{}') INTO swapped FROM written w;
  END IF;
  -- In closed, and stays there: told.
  IF 4 = ANY (kind_list) THEN
    WITH written AS (
      UPDATE semel.closed t SET revision = a.revision, fence = a.fence, created = a.created, expires = a.expires, settled = a.settled, status = a.status, flags = a.flags, token = a.token, version = a.version, owner = a.owner, args = a.args, content = a.content, result = a.result, asker = a.asker, more = a.more
      FROM (SELECT unnest(kind_list) AS kind, unnest(namespace_list) AS namespace, unnest(key_list) AS key, unnest(revision_list) AS revision, unnest(old_list) AS old, unnest(at_list) AS at, unnest(until_list) AS until, unnest(fence_list) AS fence, unnest(created_list) AS created, unnest(expires_list) AS expires, unnest(settled_list) AS settled, unnest(status_list) AS status, unnest(flags_list) AS flags, unnest(token_list) AS token, unnest(version_list) AS version, unnest(owner_list) AS owner, unnest(args_list) AS args, unnest(content_list) AS content, unnest(result_list) AS result, unnest(asker_list) AS asker, unnest(more_list) AS more) AS a WHERE a.kind = 4 AND t.namespace = a.namespace AND t.key = a.key AND t.revision = a.old AND a.at <= now_ms AND now_ms < a.until AND NOT a.revision = ANY (spoilt) RETURNING t.revision
    ) SELECT swapped || coalesce(array_agg(w.revision), '{}') INTO swapped FROM written w;
  END IF;
  RETURN swapped;
END $$;

CREATE FUNCTION semel.exchange(kind_list smallint[], namespace_list text[], key_list text[], revision_list bigint[], old_list bigint[], at_list bigint[], until_list bigint[], fence_list bigint[], created_list bigint[], expires_list bigint[], settled_list bigint[], status_list smallint[], flags_list smallint[], token_list text[], version_list text[], owner_list text[], args_list text[], content_list text[], result_list text[], asker_list text[], more_list text[], writes integer, one_by_one boolean,
  noted json, beside json, writer integer)
RETURNS TABLE (now bigint, floor bigint, done text, seen text) LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  now_ms bigint := semel.now_ms();
  known semel.meta;
  swapped bigint[] := '{}';
  spoilt bigint[] := '{}';
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  PERFORM pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer);
  SELECT * INTO known FROM semel.meta WHERE one;
  IF known.moved_to IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = known.moved_to;
  ELSIF known.filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < known.min_writer THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = known.min_writer::text;
  END IF;

  IF beside IS NOT NULL THEN
    -- Two claims of one intent under several forms of its key come one after the other. A transaction that never ends
    -- fails the one that waits for it, and is not waited for by everybody in this batch.
    PERFORM set_config('lock_timeout', '250ms', true);
    PERFORM pg_advisory_xact_lock(hashtextextended(b.namespace || chr(1) || b.first, 0))
      FROM (SELECT DISTINCT x.namespace, x.first FROM json_to_recordset(beside) AS x (namespace text, first text)
            ORDER BY 1, 2) AS b;
    SELECT coalesce(array_agg(a.revision), '{}') INTO spoilt
      FROM json_to_recordset(beside) AS a (revision bigint, namespace text, key text, was bigint)
      LEFT JOIN LATERAL (
        SELECT o.namespace, o.key, o.revision, o.fence, o.created, o.expires, o.settled, o.status, o.flags, o.token, o.version, o.owner, o.args, o.content, o.result, o.asker, o.more FROM semel.open o WHERE o.namespace = a.namespace AND o.key = a.key
        UNION ALL SELECT c.namespace, c.key, c.revision, c.fence, c.created, c.expires, c.settled, c.status, c.flags, c.token, c.version, c.owner, c.args, c.content, c.result, c.asker, c.more FROM semel.closed c WHERE c.namespace = a.namespace AND c.key = a.key
      ) AS r ON true
      WHERE r.revision IS DISTINCT FROM a.was;
  END IF;

  IF writes > 0 THEN
    -- A pooler may have given us a session of somebody who does not care.
    IF current_setting('synchronous_commit') = 'off' THEN
      PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF NOT one_by_one THEN
      PERFORM set_config('lock_timeout', '50ms', true);
      swapped := semel.swap(kind_list, namespace_list, key_list, revision_list, old_list, at_list, until_list, fence_list, created_list, expires_list, settled_list, status_list, flags_list, token_list, version_list, owner_list, args_list, content_list, result_list, asker_list, more_list,
        now_ms, known.floor, spoilt);
    ELSE
      -- Somebody's open transaction holds one of these records: the others do not wait for it.
      PERFORM set_config('lock_timeout', '10ms', true);
      FOR i IN 1..cardinality(kind_list) LOOP
        BEGIN
          swapped := swapped || semel.swap(kind_list[i:i], namespace_list[i:i], key_list[i:i], revision_list[i:i], old_list[i:i], at_list[i:i], until_list[i:i], fence_list[i:i], created_list[i:i], expires_list[i:i], settled_list[i:i], status_list[i:i], flags_list[i:i], token_list[i:i], version_list[i:i], owner_list[i:i], args_list[i:i], content_list[i:i], result_list[i:i], asker_list[i:i], more_list[i:i],
            now_ms, known.floor, spoilt);
        EXCEPTION WHEN lock_not_available THEN
          NULL;
        END;
      END LOOP;
    END IF;
    -- A fence that was removed while this waited for the one who removed it must not be given again.
    IF 0 = ANY (kind_list) AND EXISTS (SELECT FROM semel.meta m WHERE m.one AND m.floor > known.floor) THEN
      SELECT * INTO known FROM semel.meta WHERE one;
      IF EXISTS (SELECT FROM (SELECT unnest(kind_list) AS kind, unnest(revision_list) AS revision, unnest(fence_list) AS fence) AS a
                 WHERE a.kind = 0 AND a.fence <= known.floor AND a.revision = ANY (swapped)) THEN
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
    SELECT json_agg(json_build_array(a.n, r.revision, r.status, r.flags, r.fence, r.token, r.version, r.owner, r.created,
  r.settled, r.expires, r.args, r.content, r.result, r.asker, r.more))::text INTO seen
      FROM (SELECT row_number() OVER () AS n, * FROM (SELECT unnest(kind_list) AS kind, unnest(namespace_list) AS namespace, unnest(key_list) AS key, unnest(revision_list) AS revision) AS a) AS a,
      LATERAL (
        SELECT o.namespace, o.key, o.revision, o.fence, o.created, o.expires, o.settled, o.status, o.flags, o.token, o.version, o.owner, o.args, o.content, o.result, o.asker, o.more FROM semel.open o WHERE o.namespace = a.namespace AND o.key = a.key
        UNION ALL SELECT c.namespace, c.key, c.revision, c.fence, c.created, c.expires, c.settled, c.status, c.flags, c.token, c.version, c.owner, c.args, c.content, c.result, c.asker, c.more FROM semel.closed c WHERE c.namespace = a.namespace AND c.key = a.key
      ) AS r WHERE a.kind = 5 OR NOT a.revision = ANY (swapped);
  END IF;
  RETURN NEXT;
END $$;

CREATE PROCEDURE semel.own_exchange(kind_list smallint[], namespace_list text[], key_list text[], revision_list bigint[], old_list bigint[], at_list bigint[], until_list bigint[], fence_list bigint[], created_list bigint[], expires_list bigint[], settled_list bigint[], status_list smallint[], flags_list smallint[], token_list text[], version_list text[], owner_list text[], args_list text[], content_list text[], result_list text[], asker_list text[], more_list text[], writes integer, one_by_one boolean,
  noted json, beside json, writer integer,
  INOUT now bigint DEFAULT NULL, INOUT floor bigint DEFAULT NULL, INOUT done text DEFAULT NULL,
  INOUT seen text DEFAULT NULL) LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SELECT e.now, e.floor, e.done, e.seen INTO now, floor, done, seen
  FROM semel.exchange(kind_list, namespace_list, key_list, revision_list, old_list, at_list, until_list, fence_list, created_list, expires_list, settled_list, status_list, flags_list, token_list, version_list, owner_list, args_list, content_list, result_list, asker_list, more_list, writes, one_by_one, noted, beside, writer) AS e;
END $$;

CREATE FUNCTION semel.remove(asked json, writer integer) RETURNS integer LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  known semel.meta;
  highest bigint;
  taken integer;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  PERFORM pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer);
  SELECT * INTO known FROM semel.meta WHERE one;
  IF known.moved_to IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = known.moved_to;
  ELSIF known.filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < known.min_writer THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = known.min_writer::text;
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  PERFORM set_config('lock_timeout', '50ms', true);

  WITH gone AS (
    DELETE FROM semel.closed c USING json_to_recordset(asked) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, status smallint, flags smallint, token text, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint, types text)
    WHERE a.status IS NULL AND c.namespace = a.namespace AND c.key = a.key AND c.revision = a.old
    RETURNING c.fence, c.namespace, c.key, a.types
  ), lapsed AS (
    DELETE FROM semel.open o USING json_to_recordset(asked) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, status smallint, flags smallint, token text, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint, types text)
    WHERE a.status IS NULL AND o.namespace = a.namespace AND o.key = a.key AND o.revision = a.old
    RETURNING o.fence, o.namespace, o.key, a.types
  ), buried AS (
    UPDATE semel.closed c SET revision = a.revision, fence = a.fence, created = a.created, expires = a.expires, settled = a.settled, status = a.status, flags = a.flags, token = a.token, version = a.version, owner = a.owner, args = a.args, content = a.content, result = a.result, asker = a.asker, more = a.more FROM json_to_recordset(asked) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, status smallint, flags smallint, token text, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint, types text)
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
END $$;

CREATE FUNCTION semel.append(noted json, writer integer) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  known semel.meta;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  PERFORM pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer);
  SELECT * INTO known FROM semel.meta WHERE one;
  IF known.moved_to IS NOT NULL THEN
    RAISE EXCEPTION 'moved' USING ERRCODE = 'SM002', DETAIL = known.moved_to;
  ELSIF known.filling THEN
    RAISE EXCEPTION 'filling' USING ERRCODE = 'SM006';
  ELSIF writer < known.min_writer THEN
    RAISE EXCEPTION 'too old' USING ERRCODE = 'SM003', DETAIL = known.min_writer::text;
  END IF;
  INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
  SELECT semel.now_ms(), e.generation, e.fence, e.namespace, e.key, e.type, e.detail
  FROM json_to_recordset(noted) AS e (i integer, generation bigint, fence bigint, namespace text, key text,
    type text, detail text)
  WHERE EXISTS (SELECT FROM semel.open o WHERE o.namespace = e.namespace AND o.key = e.key)
    OR EXISTS (SELECT FROM semel.closed c WHERE c.namespace = e.namespace AND c.key = e.key) ORDER BY e.i;
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
  IF must_be_empty AND (EXISTS (SELECT FROM semel.open) OR EXISTS (SELECT FROM semel.closed)) THEN
    RETURN false;
  END IF;
  UPDATE semel.meta SET moved_to = becomes ->> 'movedTo', came_from = becomes ->> 'cameFrom',
    filling = (becomes ->> 'filling')::boolean;
  RETURN true;
END $$;

CREATE FUNCTION semel.refill(came text, opened json, ended json, gone json, noted json, lowest bigint)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  known semel.meta;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'isolation' USING ERRCODE = 'SM004', DETAIL = current_setting('transaction_isolation');
  END IF;
  PERFORM pg_advisory_xact_lock_shared(hashtext('semel'), 'semel.meta'::regclass::oid::integer);
  SELECT * INTO known FROM semel.meta WHERE one;
  PERFORM set_config('synchronous_commit', 'on', true);
  IF NOT known.filling OR known.came_from IS DISTINCT FROM came THEN
    RAISE EXCEPTION 'not filling' USING ERRCODE = 'SM005';
  END IF;

  WITH x AS MATERIALIZED (
    SELECT * FROM json_to_recordset(opened) AS y (namespace text, key text)
    UNION ALL SELECT * FROM json_to_recordset(ended) AS y (namespace text, key text)
    UNION ALL SELECT * FROM json_to_recordset(gone) AS y (namespace text, key text)
  ), opened AS (
    DELETE FROM semel.open o USING x WHERE o.namespace = x.namespace AND o.key = x.key
  ), closed AS (
    DELETE FROM semel.closed c USING x WHERE c.namespace = x.namespace AND c.key = x.key
  )
  DELETE FROM semel.events e USING x WHERE e.namespace = x.namespace AND e.key = x.key;

  INSERT INTO semel.open (namespace, key, revision, fence, created, expires, settled, status, flags, token, version, owner, args,
      content, result, asker, more) SELECT a.namespace, a.key, a.revision, a.fence, a.created, a.expires, a.settled, a.status, a.flags, a.token, a.version, a.owner, a.args, a.content, a.result, a.asker, a.more FROM json_to_recordset(opened) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, status smallint, flags smallint, token text, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint);
  INSERT INTO semel.closed (namespace, key, revision, fence, created, expires, settled, status, flags, token, version, owner, args,
      content, result, asker, more) SELECT a.namespace, a.key, a.revision, a.fence, a.created, a.expires, a.settled, a.status, a.flags, a.token, a.version, a.owner, a.args, a.content, a.result, a.asker, a.more FROM json_to_recordset(ended) AS a (namespace text, key text, revision bigint, at bigint, until bigint, fence bigint, created bigint,
      expires bigint, settled bigint, status smallint, flags smallint, token text, version text, owner text,
      args text, content text, result text, asker text, more text, old bigint);
  INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
  SELECT e.at, e.generation, e.fence, e.namespace, e.key, e.type, e.detail
  FROM json_to_recordset(noted) AS e (i integer, at bigint, generation bigint, fence bigint, namespace text, key text,
    type text, detail text) ORDER BY e.i;
  UPDATE semel.meta SET floor = lowest WHERE floor < lowest;
END $$;
