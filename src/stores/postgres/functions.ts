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

/** What is done to a record, in the order in which it is done. */
export const kinds = { fresh: 0, held: 1, ended: 2, taken: 3, told: 4 } as const;
type Kind = keyof typeof kinds;

/** A parameter, or a column of a batch that is sent as a list of its own: a database reads lists far faster than JSON. */
type Named = readonly [name: string, type: string];

/** Of an ordinary first claim, which is running. */
export const claimLists: readonly Named[] = [
  ['namespace', 'text'],
  ['key', 'text'],
  ['revision', 'bigint'],
  ['fence', 'bigint'],
  ['created', 'bigint'],
  ['flags', 'smallint'],
  ['token', 'text'],
  ['version', 'text'],
  ['owner', 'text'],
  ['args', 'text'],
  ['content', 'text'],
  ['asker', 'text'],
  ['more', 'text'],
];

/** Of an ordinary settlement: everything else stays as the claim wrote it. */
export const settleLists: readonly Named[] = [
  ['namespace', 'text'],
  ['key', 'text'],
  ['old', 'bigint'],
  ['revision', 'bigint'],
  ['expires', 'bigint'],
  ['settled', 'bigint'],
  ['status', 'smallint'],
  ['flags', 'smallint'],
  ['result', 'text'],
  ['more', 'text'],
];

const lookLists: readonly Named[] = [
  ['namespace', 'text'],
  ['key', 'text'],
];

/** Of `exchange`, in their order. Lists are null where there is nothing in them. */
export const exchangeParameters: readonly Named[] = [
  ...claimLists.map(([name, type]): Named => [`claim_${name}`, `${type}[]`]),
  ...settleLists.map(([name, type]): Named => [`settle_${name}`, `${type}[]`]),
  ...lookLists.map(([name, type]): Named => [`look_${name}`, `${type}[]`]),
  // The decisions in the lists count from here on by the store's clock, and before there.
  ['at_ms', 'bigint'],
  ['until_ms', 'bigint'],
  ['rest', 'json'],
  ['noted', 'json'],
  ['beside', 'json'],
  // How long a locked row is waited for.
  ['patience', 'text'],
  ['writer', 'integer'],
];
const parameters = exchangeParameters.map((parameter) => parameter.join(' ')).join(', ');

/** In the list of a SELECT and not in its FROM: there each list would be written down once more before it is read. */
const listed = (prefix: string, columns: readonly string[]) =>
  `(SELECT ${columns.map((name) => `unnest(${prefix}_${name}) AS ${name}`).join(', ')}) AS a`;

/** Whatever is not ordinary. */
const rest = `json_to_recordset(rest) AS a (kind smallint, ${written})`;
const inTime = 'a.at <= now AND now < a.until AND NOT a.revision = ANY (spoilt)';
const still = 't.namespace = a.namespace AND t.key = a.key AND t.revision = a.old';

/**
 * First claims: nothing may be there, in either table. What follows the INSERT starts only when it has ended: a claim
 * that waited for a record to leave the one table finds it in the other; one that waited for a record to be removed
 * finds the floor raised, and must not give its fence again.
 */
const claims = (
  columns: string,
  values: string,
  source: string,
  where: string,
) => `INSERT INTO semel.open (${columns})
      SELECT ${values} FROM ${source} WHERE ${where} AND a.fence > known.floor
      ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS made = ROW_COUNT;
    SELECT m.floor, (SELECT array_agg(a.revision) FROM ${source}
        JOIN semel.closed c ON c.namespace = a.namespace AND c.key = a.key WHERE ${where})
      INTO floor, late FROM semel.meta m WHERE m.one;
    IF floor > known.floor THEN
      RAISE EXCEPTION 'floor' USING ERRCODE = 'SM001', DETAIL = floor::text;
    END IF;
    IF late IS NOT NULL THEN
      DELETE FROM semel.open t USING ${source}
      WHERE t.namespace = a.namespace AND t.key = a.key AND t.revision = a.revision AND a.revision = ANY (late);
      made := -1;
    END IF;`;

/** Those of the lists that were done, where not all were. */
const found = (
  table: string,
  prefix: string,
) => `SELECT swapped || coalesce(array_agg(t.revision), '{}') INTO swapped
      FROM ${listed(prefix, ['namespace', 'key', 'revision'])}
      JOIN semel.${table} t ON t.namespace = a.namespace AND t.key = a.key AND t.revision = a.revision;`;

/**
 * One transaction. Each record is written if it is still the one that was seen; what was not done is read by a
 * statement that follows, and so sees what the write has lost to. Everybody writes in one order, by kind and then by
 * key, so that no two of these ever wait for each other in a circle. A row that somebody's open transaction holds fails
 * the batch after a moment, and the caller divides it.
 */
export function exchangeFunction(): string {
  const is = (kind: Kind) => `a.kind = ${kinds[kind]}`;
  const noted = "SELECT swapped || coalesce(array_agg(w.revision), '{}') INTO swapped FROM written w";
  const stays = (table: string, kind: Kind) => `-- In ${table}, and stays there: ${kind}.
    WITH written AS (
      UPDATE semel.${table} t SET ${settings('a')}
      FROM ${rest} WHERE ${is(kind)} AND ${still} AND ${inTime} RETURNING t.revision
    ) ${noted};`;
  const moves = (from: string, to: string, kind: Kind) => `-- From ${from} to ${to}: ${kind}.
    WITH gone AS (
      DELETE FROM semel.${from} t USING ${rest}
      WHERE ${is(kind)} AND ${still} AND ${inTime} RETURNING a.*
    ), written AS (
      INSERT INTO semel.${to} (${names}) SELECT ${values('g')} FROM gone g RETURNING revision
    ) ${noted};`;
  const claimed = claimLists.map(([name]) => name);
  const settled = settleLists.map(([name]) => name);
  const changed = settled.slice(3);
  const kept = names.split(/,\s*/).filter((name) => !changed.includes(name));
  const claimedValues = claimed.map((name) => `a.${name}`).join(', ');
  return `CREATE FUNCTION semel.exchange(${parameters},
  OUT now bigint, OUT floor bigint, OUT done text, OUT seen text) LANGUAGE plpgsql ${byKey} AS $$
#variable_conflict use_column
DECLARE
  known semel.meta;
  made integer;
  late bigint[];
  swapped bigint[] := '{}';
  spoilt bigint[] := '{}';
  is_short boolean := look_key IS NOT NULL OR rest IS NOT NULL;
BEGIN
  ${admission}
  now := semel.now_ms();
  floor := known.floor;
  -- A pooler may have given us a session of somebody who does not care.
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
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
      LEFT JOIN LATERAL ${eitherTable} AS r ON true
      WHERE r.revision IS DISTINCT FROM a.was;
  END IF;
  PERFORM set_config('lock_timeout', patience, true);

  IF claim_key IS NOT NULL AND at_ms <= now AND now < until_ms THEN
    ${claims(`${claimed.join(', ')}, status`, `${claimedValues}, 0`, listed('claim', claimed), 'true')}
  END IF;
  IF made IS DISTINCT FROM cardinality(claim_key) THEN
    is_short := true;
    ${found('open', 'claim')}
  END IF;

  IF rest IS NOT NULL THEN
    ${claims(names, values('a'), rest, `${is('fresh')} AND ${inTime}`)}
    SELECT swapped || coalesce(array_agg(t.revision), '{}') INTO swapped FROM ${rest}
      JOIN semel.open t ON t.namespace = a.namespace AND t.key = a.key AND t.revision = a.revision
      WHERE ${is('fresh')};
    ${stays('open', 'held')}
    ${moves('open', 'closed', 'ended')}
  END IF;

  made := NULL;
  IF settle_key IS NOT NULL AND at_ms <= now AND now < until_ms THEN
    WITH gone AS (
      DELETE FROM semel.open t USING ${listed('settle', settled)} WHERE ${still}
      RETURNING ${[...kept.map((name) => `t.${name}`), ...changed.map((name) => `a.${name}`)].join(', ')}
    )
    INSERT INTO semel.closed (${[...kept, ...changed].join(', ')}) SELECT * FROM gone;
    GET DIAGNOSTICS made = ROW_COUNT;
  END IF;
  IF made IS DISTINCT FROM cardinality(settle_key) THEN
    is_short := true;
    ${found('closed', 'settle')}
  END IF;

  IF rest IS NOT NULL THEN
    ${moves('closed', 'open', 'taken')}
    ${stays('closed', 'told')}
  END IF;

  IF noted IS NOT NULL THEN
    INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
    SELECT e.at, e.generation, e.fence, e.namespace, e.key, e.type, e.detail
    FROM json_to_recordset(noted) AS e (i integer, revision bigint, at bigint, generation bigint,
      fence bigint, namespace text, key text, type text, detail text)
    WHERE e.revision IS NULL OR e.revision = ANY (swapped) ORDER BY e.i;
  END IF;

  IF is_short THEN
    done := array_to_json(swapped)::text;
    SELECT json_agg(json_build_array(r.namespace, r.key, ${columns}))::text INTO seen
      FROM (
        SELECT unnest(look_namespace) AS namespace, unnest(look_key) AS key, NULL::bigint AS revision
        UNION ALL SELECT unnest(claim_namespace), unnest(claim_key), unnest(claim_revision)
        UNION ALL SELECT unnest(settle_namespace), unnest(settle_key), unnest(settle_revision)
        UNION ALL SELECT a.namespace, a.key, a.revision FROM ${rest}
      ) AS a, LATERAL ${eitherTable} AS r WHERE a.revision IS NULL OR NOT a.revision = ANY (swapped);
  END IF;
END $$`;
}

/**
 * The same on a connection that is not ours alone. COMMIT is allowed only where no transaction is open around the call,
 * so a record is never written into a transaction that its owner may roll back (SQLSTATE 2D000).
 */
export function ownExchangeProcedure(): string {
  return `CREATE PROCEDURE semel.own_exchange(${parameters},
  INOUT now bigint DEFAULT NULL, INOUT floor bigint DEFAULT NULL, INOUT done text DEFAULT NULL,
  INOUT seen text DEFAULT NULL) LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SELECT e.now, e.floor, e.done, e.seen INTO now, floor, done, seen
  FROM semel.exchange(${exchangeParameters.map(([name]) => name).join(', ')}) AS e;
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
