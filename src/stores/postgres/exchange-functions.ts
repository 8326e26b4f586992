// What a batch does in the database: it compares and writes, and never decides. `semel` stands for the schema.

import { admission, byKey, declarations, names, settings, standing, values, written } from './functions.ts';
import { packed, packedColumns } from './rows.ts';

/** A parameter, or a column of a batch that is sent as a list of its own: a database reads lists far faster than JSON. */
export type Named = readonly [name: string, type: string];

/** Of an ordinary first claim, which is running. */
export const claimLists: readonly Named[] = [
  ['namespace', 'text'],
  ['key', 'text'],
  ['revision', 'bigint'],
  ['fence', 'bigint'],
  ['created', 'bigint'],
  ['sum', 'integer'],
  ['flags', 'smallint'],
  ['token', 'bytea'],
  ['version', 'text'],
  ['owner', 'text'],
  ['args', 'text'],
  ['content', 'text'],
  ['asker', 'text'],
  ['more', 'text'],
];

/** Of a settlement or a renewal: everything else stays as the claim wrote it. */
export const settleLists: readonly Named[] = [
  ['namespace', 'text'],
  ['key', 'text'],
  ['old', 'bigint'],
  ['revision', 'bigint'],
  ['expires', 'bigint'],
  ['settled', 'bigint'],
  ['sum', 'integer'],
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

const listsOf = (prefix: string, lists: readonly Named[]) =>
  lists.map(([name, type]): Named => [`${prefix}_${name}`, `${type}[]`]);
const claims = listsOf('claim', claimLists);
const settlements = listsOf('settle', settleLists);

/** Of `write`. Of lists that are empty nothing is sent. */
const writeParameters: readonly Named[] = [
  ...claims,
  ...settlements,
  // The decisions count from here on by the store's clock, and before there.
  ['at_ms', 'bigint'],
  ['until_ms', 'bigint'],
  ...last,
];

const swapParameters: readonly Named[] = [['rest', 'json'], ['noted', 'json'], ['beside', 'json'], ...last];

const lookParameters: readonly Named[] = [
  ['namespaces', 'text[]'],
  ['keys', 'text[]'],
  ['writer', 'integer'],
];

/** The functions, and all that they can be given. */
export const functions = { write: writeParameters, swap: swapParameters, look: lookParameters } as const;

/** What is asked of them: each is a statement of its own. */
export const questions = {
  claim: { of: 'write', parameters: writeParameters.filter((one) => !settlements.includes(one)) },
  settle: { of: 'write', parameters: writeParameters.filter((one) => !claims.includes(one)) },
  both: { of: 'write', parameters: writeParameters },
  swap: { of: 'swap', parameters: swapParameters },
  look: { of: 'look', parameters: lookParameters },
} as const satisfies Record<string, { of: keyof typeof functions; parameters: readonly Named[] }>;
export type QuestionName = keyof typeof questions;

const declared = (parameters: readonly Named[]) =>
  parameters.map((parameter) => `${parameter.join(' ')} DEFAULT NULL`).join(', ');

/** In the list of a SELECT and not in its FROM: there each list would be written down once more before it is read. */
const listed = (prefix: string, columns: readonly string[]) =>
  `(SELECT ${columns.map((name) => `unnest(${prefix}_${name}) AS ${name}`).join(', ')}) AS a`;

/** Whatever is not ordinary. */
const rest = `json_to_recordset(rest) AS a (${written})`;
const inTime = 'a.at <= now AND now < a.until AND NOT a.revision = ANY (spoilt)';
const still = 't.namespace = a.namespace AND t.key = a.key AND t.revision = a.old';

/** What stands first in both functions that write. */
const begin = `${admission}
  now := semel.now_ms();
  floor := known_floor;
  -- A pooler may have given us a session of somebody who does not care.
  IF current_setting('synchronous_commit') = 'off' THEN
    was := set_config('synchronous_commit', 'on', true);
  END IF;`;

/** A claim that waited for a record to be removed finds the floor raised, and must not give its fence again. */
const sameFloor = `IF floor > known_floor THEN
      RAISE EXCEPTION 'floor' USING ERRCODE = 'SM001', DETAIL = floor::text;
    END IF;`;

/**
 * Ordinary first claims and settlements: one transaction. It tells the time, the floor, and the
 * revisions that were written, if not all were. Everybody writes
 * in one order, claims first and then by key, so that no two of these ever wait for each other in a circle. A row that
 * somebody's open transaction holds fails the batch after a moment, and the caller divides it.
 */
export function writeFunction(): string {
  const claimed = claimLists.map(([name]) => name);
  const settled = settleLists.map(([name]) => name);
  return `CREATE FUNCTION semel.write(${declared(writeParameters)}) RETURNS text LANGUAGE plpgsql ${byKey} AS $$
#variable_conflict use_column
DECLARE
  ${declarations}
  now bigint;
  floor bigint;
  was text;
  claimed integer;
  settled integer;
  done text;
BEGIN
  ${begin}
  was := set_config('lock_timeout', patience, true);
  IF NOT (at_ms <= now AND now < until_ms) THEN
    RETURN concat(now, ',', floor, ',[]');
  END IF;

  IF claim_key IS NOT NULL THEN
    INSERT INTO semel.records (${claimed.join(', ')}, status)
      SELECT ${claimed.map((name) => `a.${name}`).join(', ')}, 0 FROM ${listed('claim', claimed)}
      WHERE a.fence > known_floor ON CONFLICT (namespace, key) DO NOTHING;
    GET DIAGNOSTICS claimed = ROW_COUNT;
    -- This starts only when the INSERT has ended, and so sees what it waited for.
    SELECT m.floor INTO floor FROM semel.meta m;
    ${sameFloor}
  END IF;

  IF settle_key IS NOT NULL THEN
    UPDATE semel.records t SET ${settled
      .slice(3)
      .map((name) => `${name} = a.${name}`)
      .join(', ')}
    FROM ${listed('settle', settled)} WHERE ${still};
    GET DIAGNOSTICS settled = ROW_COUNT;
  END IF;

  IF claimed < cardinality(claim_key) OR settled < cardinality(settle_key) THEN
    SELECT coalesce(json_agg(r.revision)::text, '[]') INTO done FROM semel.records r
    WHERE r.namespace = ANY (claim_namespace || settle_namespace) AND r.key = ANY (claim_key || settle_key)
      AND r.revision = ANY (claim_revision || settle_revision);
  END IF;
  RETURN concat(now, ',', floor, ',' || done);
END $$`;
}

/** Everything else, in the same order: each record is written if it is still the one that was seen. It tells those that were. */
export function swapFunction(): string {
  return `CREATE FUNCTION semel.swap(${declared(swapParameters)}) RETURNS text LANGUAGE plpgsql ${byKey} AS $$
#variable_conflict use_column
DECLARE
  ${declarations}
  now bigint;
  floor bigint;
  was text;
  swapped bigint[];
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
      LEFT JOIN semel.records r ON r.namespace = a.namespace AND r.key = a.key
      WHERE r.revision IS DISTINCT FROM a.was;
  END IF;
  was := set_config('lock_timeout', patience, true);

  WITH written AS (
    INSERT INTO semel.records (${names}) SELECT ${values('a')} FROM ${rest}
    WHERE a.old IS NULL AND ${inTime} AND a.fence > known_floor ON CONFLICT (namespace, key) DO NOTHING RETURNING revision
  ) SELECT coalesce(array_agg(w.revision), '{}') INTO swapped FROM written w;
  IF cardinality(swapped) > 0 THEN
    SELECT m.floor INTO floor FROM semel.meta m;
    ${sameFloor}
  END IF;
  WITH written AS (
    UPDATE semel.records t SET ${settings('a')} FROM ${rest} WHERE ${still} AND ${inTime} RETURNING t.revision
  ) SELECT swapped || coalesce(array_agg(w.revision), '{}') INTO swapped FROM written w;

  IF noted IS NOT NULL THEN
    INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
    SELECT e.at, e.generation, e.fence, e.namespace, e.key, e.type, e.detail
    FROM json_to_recordset(noted) AS e (i integer, revision bigint, at bigint, generation bigint,
      fence bigint, namespace text, key text, type text, detail text)
    WHERE e.revision IS NULL OR e.revision = ANY (swapped) ORDER BY e.i;
  END IF;
  RETURN concat(now, ',', floor, ',', array_to_json(swapped));
END $$`;
}

/**
 * What is there under these keys, and nothing is written. The first row tells the time and the floor. Perhaps also the same
 * key in another namespace of this batch: the caller takes its own.
 */
export function lookFunction(): string {
  return `CREATE FUNCTION semel.look(${declared(lookParameters)})
RETURNS TABLE (${packedColumns}) LANGUAGE plpgsql ${byKey} AS $$
#variable_conflict use_column
DECLARE
  ${declarations}
BEGIN
  ${standing}
  head := concat(semel.now_ms(), ',', known_floor);
  RETURN NEXT;
  RETURN QUERY SELECT ${packed('namespaces[1]')} FROM semel.records r
    WHERE r.namespace = ANY (namespaces) AND r.key = ANY (keys);
END $$`;
}

/**
 * The same on a connection that is not ours alone. COMMIT is allowed only where no transaction is open around the call,
 * so a record is never written into a transaction that its owner may roll back (SQLSTATE 2D000).
 */
export function ownProcedure(name: keyof typeof functions): string {
  const given = functions[name].map(([parameter]) => parameter).join(', ');
  return `CREATE PROCEDURE semel.own_${name}(${declared(functions[name])}, INOUT answer text DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SELECT pg_catalog.json_agg(e)::text INTO answer FROM semel.${name}(${given}) AS e;
END $$`;
}
