// What a batch does in the database: it compares and writes, and never decides. `semel` stands for the schema.

import { admission, byKey, eitherTable, names, settings, standing, values, written } from './functions.ts';
import { packed, packedColumns } from './rows.ts';

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

/** What every write ends with. */
const last: readonly Named[] = [
  // How long a locked row is waited for.
  ['patience', 'text'],
  ['writer', 'integer'],
];

/** Of `write`. Lists are null where there is nothing in them. */
export const writeParameters: readonly Named[] = [
  ...claimLists.map(([name, type]): Named => [`claim_${name}`, `${type}[]`]),
  ...settleLists.map(([name, type]): Named => [`settle_${name}`, `${type}[]`]),
  // The decisions count from here on by the store's clock, and before there.
  ['at_ms', 'bigint'],
  ['until_ms', 'bigint'],
  ...last,
];

/** Of `swap`. */
export const swapParameters: readonly Named[] = [
  ['rest', 'json'],
  ['noted', 'json'],
  ['beside', 'json'],
  ...last,
];

export const lookParameters: readonly Named[] = [
  ['namespaces', 'text[]'],
  ['keys', 'text[]'],
  ['writer', 'integer'],
];

const declared = (parameters: readonly Named[]) =>
  parameters.map((parameter) => parameter.join(' ')).join(', ');

/** In the list of a SELECT and not in its FROM: there each list would be written down once more before it is read. */
const listed = (prefix: string, columns: readonly string[]) =>
  `(SELECT ${columns.map((name) => `unnest(${prefix}_${name}) AS ${name}`).join(', ')}) AS a`;

/** Whatever is not ordinary. */
const rest = `json_to_recordset(rest) AS a (kind smallint, ${written})`;
const inTime = 'a.at <= now AND now < a.until AND NOT a.revision = ANY (spoilt)';
const still = 't.namespace = a.namespace AND t.key = a.key AND t.revision = a.old';

/** What stands first in both functions that write. */
const begin = `${admission}
  now := semel.now_ms();
  floor := known.floor;
  -- A pooler may have given us a session of somebody who does not care.
  IF current_setting('synchronous_commit') = 'off' THEN
    was := set_config('synchronous_commit', 'on', true);
  END IF;`;

/** A claim that waited for a record to be removed finds the floor raised, and must not give its fence again. */
const sameFloor = `IF floor > known.floor THEN
      RAISE EXCEPTION 'floor' USING ERRCODE = 'SM001', DETAIL = floor::text;
    END IF;`;

/**
 * Ordinary first claims and settlements: one transaction. `done`: the revisions that were written; null: all. Everybody writes
 * in one order, by kind and then by key, so that no two of these ever wait for each other in a circle. A row that
 * somebody's open transaction holds fails the batch after a moment, and the caller divides it.
 */
export function writeFunction(): string {
  const claimed = claimLists.map(([name]) => name);
  const settled = settleLists.map(([name]) => name);
  const changed = settled.slice(3);
  const kept = names.split(/,\s*/).filter((name) => !changed.includes(name));
  const doneIn = (table: string, prefix: string) => `SELECT r.revision FROM semel.${table} r
      WHERE r.namespace = ANY (${prefix}_namespace) AND r.key = ANY (${prefix}_key) AND r.revision = ANY (${prefix}_revision)`;
  return `CREATE FUNCTION semel.write(${declared(writeParameters)},
  OUT now bigint, OUT floor bigint, OUT done text) LANGUAGE plpgsql ${byKey} AS $$
#variable_conflict use_column
DECLARE
  known semel.meta;
  entered boolean;
  was text;
  claimed integer;
  settled integer;
  is_late boolean;
BEGIN
  ${begin}
  was := set_config('lock_timeout', patience, true);
  IF NOT (at_ms <= now AND now < until_ms) THEN
    done := '[]';
    RETURN;
  END IF;

  IF claim_key IS NOT NULL THEN
    INSERT INTO semel.open (${claimed.join(', ')}, status)
      SELECT ${claimed.map((name) => `a.${name}`).join(', ')}, 0 FROM ${listed('claim', claimed)}
      WHERE a.fence > known.floor ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS claimed = ROW_COUNT;
    -- This starts only when the INSERT has ended: a claim that waited for a record to leave the one table finds it in the other.
    SELECT m.floor, EXISTS (SELECT FROM semel.closed c
        WHERE c.namespace = ANY (claim_namespace) AND c.key = ANY (claim_key))
      INTO floor, is_late FROM semel.meta m WHERE m.one;
    ${sameFloor}
    IF is_late THEN
      DELETE FROM semel.open t USING semel.closed c
      WHERE t.namespace = ANY (claim_namespace) AND t.key = ANY (claim_key) AND t.revision = ANY (claim_revision)
        AND c.namespace = t.namespace AND c.key = t.key;
      claimed := -1;
    END IF;
  END IF;

  IF settle_key IS NOT NULL THEN
    WITH gone AS (
      DELETE FROM semel.open t USING ${listed('settle', settled)} WHERE ${still}
      RETURNING ${[...kept.map((name) => `t.${name}`), ...changed.map((name) => `a.${name}`)].join(', ')}
    )
    INSERT INTO semel.closed (${[...kept, ...changed].join(', ')}) SELECT * FROM gone;
    GET DIAGNOSTICS settled = ROW_COUNT;
  END IF;

  IF claimed < cardinality(claim_key) OR settled < cardinality(settle_key) THEN
    SELECT coalesce(json_agg(t.revision)::text, '[]') INTO done FROM (
      ${doneIn('open', 'claim')} UNION ALL ${doneIn('closed', 'settle')}) AS t;
  END IF;
END $$`;
}

/** Everything else, in the same order: each record is written if it is still the one that was seen. `done`: those that were. */
export function swapFunction(): string {
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
  return `CREATE FUNCTION semel.swap(${declared(swapParameters)},
  OUT now bigint, OUT floor bigint, OUT done text) LANGUAGE plpgsql ${byKey} AS $$
#variable_conflict use_column
DECLARE
  known semel.meta;
  entered boolean;
  was text;
  swapped bigint[] := '{}';
  spoilt bigint[] := '{}';
BEGIN
  ${begin}

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

  -- Nothing may be there, in either table: fresh.
  INSERT INTO semel.open (${names}) SELECT ${values('a')} FROM ${rest}
    WHERE ${is('fresh')} AND ${inTime} AND a.fence > known.floor ON CONFLICT DO NOTHING;
  DELETE FROM semel.open t USING ${rest} JOIN semel.closed c ON c.namespace = a.namespace AND c.key = a.key
    WHERE ${is('fresh')} AND t.namespace = a.namespace AND t.key = a.key AND t.revision = a.revision;
  SELECT coalesce(array_agg(t.revision), '{}') INTO swapped FROM ${rest}
    JOIN semel.open t ON t.namespace = a.namespace AND t.key = a.key AND t.revision = a.revision WHERE ${is('fresh')};
  IF cardinality(swapped) > 0 THEN
    SELECT m.floor INTO floor FROM semel.meta m WHERE m.one;
    ${sameFloor}
  END IF;
  ${stays('open', 'held')}
  ${moves('open', 'closed', 'ended')}
  ${moves('closed', 'open', 'taken')}
  ${stays('closed', 'told')}

  IF noted IS NOT NULL THEN
    INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
    SELECT e.at, e.generation, e.fence, e.namespace, e.key, e.type, e.detail
    FROM json_to_recordset(noted) AS e (i integer, revision bigint, at bigint, generation bigint,
      fence bigint, namespace text, key text, type text, detail text)
    WHERE e.revision IS NULL OR e.revision = ANY (swapped) ORDER BY e.i;
  END IF;
  done := array_to_json(swapped)::text;
END $$`;
}

/**
 * What is there under these keys, and nothing is written. The first row tells the time and the floor. Nearly always all
 * of them have ended. Perhaps also the same key in another namespace of this batch: whoever asked takes its own.
 */
export function lookFunction(): string {
  const from = (table: string) => `SELECT ${packed('namespaces[1]')} FROM semel.${table} r
    WHERE r.namespace = ANY (namespaces) AND r.key = ANY (keys)`;
  return `CREATE FUNCTION semel.look(${declared(lookParameters)})
RETURNS TABLE (${packedColumns}) LANGUAGE plpgsql ${byKey} AS $$
#variable_conflict use_column
DECLARE
  known semel.meta;
  ended integer;
BEGIN
  SELECT * INTO known FROM semel.meta WHERE one;
  ${standing}
  head := concat(semel.now_ms(), ',', known.floor);
  RETURN NEXT;
  RETURN QUERY ${from('closed')};
  GET DIAGNOSTICS ended = ROW_COUNT;
  -- One statement: a record that moves meanwhile is in one of the tables.
  IF ended < cardinality(keys) OR cardinality(namespaces) > 1 THEN
    RETURN QUERY ${from('closed')} UNION ALL ${from('open')};
  END IF;
END $$`;
}

/**
 * The same on a connection that is not ours alone. COMMIT is allowed only where no transaction is open around the call,
 * so a record is never written into a transaction that its owner may roll back (SQLSTATE 2D000).
 */
export function ownProcedure(name: string, parameters: readonly Named[]): string {
  return `CREATE PROCEDURE semel.own_${name}(${declared(parameters)}, INOUT answer text DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SELECT json_agg(e)::text INTO answer FROM semel.${name}(${parameters.map(([parameter]) => parameter).join(', ')}) AS e;
END $$`;
}
