// What a batch does in the database: it compares and writes, and never decides. `semel` stands for the schema.

import { admission, byKey, eitherTable, names, settings, standing, values, written } from './functions.ts';
import { columns } from './rows.ts';

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

const named = ['namespace', 'key', 'revision'];

/** Whatever is not ordinary. */
const rest = `json_to_recordset(rest) AS a (kind smallint, ${written})`;
const inTime = 'a.at <= now AND now < a.until AND NOT a.revision = ANY (spoilt)';
const still = 't.namespace = a.namespace AND t.key = a.key AND t.revision = a.old';

/**
 * First claims: nothing may be there, in either table. What follows the INSERT starts only when it has ended: a claim
 * that waited for a record to leave the one table finds it in the other; one that waited for a record to be removed
 * finds the floor raised, and must not give its fence again. `narrow`: only what names them.
 */
const claims = (
  columns: string,
  values: string,
  source: string,
  narrow: string,
  where: string,
) => `INSERT INTO semel.open (${columns})
      SELECT ${values} FROM ${source} WHERE ${where} AND a.fence > known.floor
      ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS made = ROW_COUNT;
    SELECT m.floor, (SELECT array_agg(a.revision) FROM ${narrow}
        JOIN semel.closed c ON c.namespace = a.namespace AND c.key = a.key WHERE ${where})
      INTO floor, late FROM semel.meta m WHERE m.one;
    IF floor > known.floor THEN
      RAISE EXCEPTION 'floor' USING ERRCODE = 'SM001', DETAIL = floor::text;
    END IF;
    IF late IS NOT NULL THEN
      DELETE FROM semel.open t USING ${narrow}
      WHERE t.namespace = a.namespace AND t.key = a.key AND t.revision = a.revision AND a.revision = ANY (late);
      made := -1;
    END IF;`;

/** Those of the lists that were done, where not all were. */
const found = (
  table: string,
  prefix: string,
) => `SELECT swapped || coalesce(array_agg(t.revision), '{}') INTO swapped
      FROM ${listed(prefix, named)}
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
  entered boolean;
  was text;
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
      LEFT JOIN LATERAL ${eitherTable} AS r ON true
      WHERE r.revision IS DISTINCT FROM a.was;
  END IF;
  was := set_config('lock_timeout', patience, true);

  IF claim_key IS NOT NULL AND at_ms <= now AND now < until_ms THEN
    ${claims(`${claimed.join(', ')}, status`, `${claimedValues}, 0`, listed('claim', claimed), listed('claim', named), 'true')}
  END IF;
  IF made IS DISTINCT FROM cardinality(claim_key) THEN
    is_short := true;
    ${found('open', 'claim')}
  END IF;

  IF rest IS NOT NULL THEN
    ${claims(names, values('a'), rest, rest, `${is('fresh')} AND ${inTime}`)}
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

/** What is there under these keys, and nothing is written: a replay. */
export function lookFunction(): string {
  return `CREATE FUNCTION semel.look(namespaces text[], keys text[], writer integer,
  OUT now bigint, OUT floor bigint, OUT done text, OUT seen text) LANGUAGE plpgsql ${byKey} AS $$
#variable_conflict use_column
DECLARE
  known semel.meta;
BEGIN
  SELECT * INTO known FROM semel.meta WHERE one;
  ${standing}
  now := semel.now_ms();
  floor := known.floor;
  done := '[]';
  -- Perhaps also the same key in another namespace of this batch: whoever asked takes its own.
  SELECT json_agg(json_build_array(r.namespace, r.key, ${columns}))::text INTO seen
    FROM (${['open', 'closed'].map((table) => `SELECT * FROM semel.${table} WHERE namespace = ANY (namespaces) AND key = ANY (keys)`).join('\n      UNION ALL ')}) AS r;
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
