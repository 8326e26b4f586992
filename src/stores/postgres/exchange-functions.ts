// The SQL functions that run a batch. They compare and write, and never decide. `semel` stands for the schema.

import { keptFlag, statusCode } from '../../store/columns.ts';
import { failedReason, givenUpReason, strictPrint } from '../../store/outbox.ts';
import {
  admission,
  byKey,
  declarations,
  dropOldEvents,
  eachHalf,
  isGivenUp,
  isOnce,
  mayAnswerRows,
  names,
  probe,
  settings,
  standing,
  values,
  written,
} from './functions.ts';
import { packed, packedColumns } from './rows.ts';

/** A parameter, or a column of a batch. Columns are sent as arrays, which Postgres reads far faster than JSON. */
type Parameter = readonly [name: string, type: string];

function parseParameters(list: string): readonly Parameter[] {
  return list.split(',').map((parameter) => parameter.trim().split(' ') as unknown as Parameter);
}

/** Columns of an ordinary first claim, whose status is running. */
export const claimLists: readonly Parameter[] = parseParameters(`
  namespace text, key text, revision bigint, fence bigint, created bigint, sum integer,
  flags smallint, token bytea, version text, owner text, args text, content text, asker text,
  more text`);

/** Columns of a settlement or a renewal: the others stay as the claim wrote them. */
export const settleLists: readonly Parameter[] = parseParameters(`
  namespace text, key text, old bigint, revision bigint, expires bigint, settled bigint,
  sum integer, status smallint, flags smallint, result text, more text`);

/** The last parameters of every write. */
const last: readonly Parameter[] = [
  // How long to wait for a locked row.
  ['patience', 'text'],
  ['writer', 'integer'],
];

const prefixLists = (prefix: string, lists: readonly Parameter[]) =>
  lists.map(([name, type]): Parameter => [`${prefix}_${name}`, `${type}[]`]);
const claims = prefixLists('claim', claimLists);
const settlements = prefixLists('settle', settleLists);

/** Parameters of `write`. Empty lists are not sent. */
const writeParameters: readonly Parameter[] = [
  ...claims,
  ...settlements,
  // The decisions hold from at_ms until before until_ms, by the store's clock.
  ['at_ms', 'bigint'],
  ['until_ms', 'bigint'],
  ...last,
];

const swapParameters: readonly Parameter[] = [
  ['rest', 'json'],
  ['noted', 'json'],
  ['beside', 'json'],
  ...last,
];

const lookParameters: readonly Parameter[] = [
  ['namespaces', 'text[]'],
  ['keys', 'text[]'],
  ['writer', 'integer'],
];

/** The functions and their parameters. */
const functions = { write: writeParameters, swap: swapParameters, look: lookParameters } as const;

/** The statements that call them: `write` with claims, with settlements, or with both. */
export const questions = {
  claim: { of: 'write', parameters: writeParameters.filter((one) => !settlements.includes(one)) },
  settle: { of: 'write', parameters: writeParameters.filter((one) => !claims.includes(one)) },
  both: { of: 'write', parameters: writeParameters },
  swap: { of: 'swap', parameters: swapParameters },
  look: { of: 'look', parameters: lookParameters },
} as const satisfies Record<string, { of: keyof typeof functions; parameters: readonly Parameter[] }>;
export type QuestionName = keyof typeof questions;

const declareParameters = (parameters: readonly Parameter[]) =>
  parameters.map((parameter) => `${parameter.join(' ')} DEFAULT NULL`).join(', ');

/** unnest() in the SELECT list: in FROM, Postgres would materialise each list first. */
const unnestLists = (prefix: string, columns: readonly string[]) =>
  `(SELECT ${columns.map((name) => `unnest(${prefix}_${name}) AS ${name}`).join(', ')}) AS a`;

/** Writes that are not ordinary. */
const rest = `json_to_recordset(rest) AS a (${written})`;
const inTime = 'a.at <= now AND now < a.until AND NOT a.revision = ANY (spoilt)';
/** Compare-and-set: the record is still the revision that the decision was made on. */
const still = 't.namespace = a.namespace AND t.key = a.key AND t.revision = a.old';

/** How both functions that write begin. */
const begin = `${admission}
  now := semel.now_ms();
  floor := known_floor;
  -- A pooler may have given us a session of somebody who does not care.
  IF current_setting('synchronous_commit') = 'off' THEN
    was := set_config('synchronous_commit', 'on', true);
  END IF;`;

/**
 * Another intent under the same key, or another caller's, is left to a relay, which reports its outcome. Never reads JSON
 * as text: Postgres refuses some escapes. Within a JSON text, no value looks like a field. `asker`: see packAsker.
 */
const isIntentOf = (record: string) =>
  `(o.fingerprint IS NULL OR strpos(${record}.more, concat('"fingerprint":"', o.fingerprint, '"')) > 0)
      AND (o.caller IS NULL) = (coalesce(json_array_length(${record}.asker::json), 0) < 6)
      AND (o.caller IS NULL OR right(${record}.asker, length(o.caller) + 3) = concat('"', o.caller, '"]'))`;

/** What a record says that is over, or that a person has just forgotten, is not about what was staged since. */
const isLive = (record: string) =>
  `(${record}.expires IS NULL OR ${record}.expires > now OR ${record}.flags & ${keptFlag}::smallint > 0)`;

const lifeOf = (record: string) =>
  `coalesce(substring(${record}.more FROM '"generation":([0-9]+)')::bigint, ${record}.fence)`;

/**
 * `landed` are rows of the outbox that go, `failed` those that are dead. Relays lock rows for an instant; nobody waits longer
 * for a caller's transaction, and what it has locked a relay finds later, with its record.
 *
 * What was given up may have landed: its row keeps the life of the record, which may be gone before somebody delivers it
 * again, and a new `due` ends the loan of a relay that does not know yet. So may what started in another life of the record,
 * whatever became of this one. (No value of a JSON text looks like a field; see packMore for what is left out.)
 */
const buryFailed = `
      UPDATE semel.outbox o SET state = 2,
        due = CASE WHEN f.given_up THEN 0 ELSE o.due END,
        reason = CASE WHEN f.given_up THEN '${givenUpReason}' ELSE '${failedReason}' END,
        generation = CASE WHEN f.given_up THEN f.life ELSE nullif(o.generation, f.life) END
      FROM (SELECT r.namespace, r.key, ${isGivenUp('r')} AS given_up, ${lifeOf('r')} AS life FROM semel.records r) AS f
      WHERE o.n = ANY (failed) AND f.namespace = o.namespace AND f.key = o.key;`;

const follow = (condition: string, also: string) => `IF ${condition} THEN
    BEGIN
      DELETE FROM semel.outbox o WHERE o.n = ANY (landed);${also}
    EXCEPTION WHEN lock_not_available THEN
      DELETE FROM semel.outbox o WHERE o.n IN (SELECT l.n FROM semel.outbox l WHERE l.n = ANY (landed) FOR UPDATE SKIP LOCKED);
    END;
  END IF;`;
/** A new life replaces a record that may answer for a row of the outbox. */
const leaves = `${still} AND a.status = ${statusCode('running')} AND ${mayAnswerRows('t')}`;
/** Some of these, and the rows that were staged in time. */
const left = `${leaves} AND a.revision = ANY (part) AND o.namespace = t.namespace AND o.key = t.key AND o.staged < t.expires`;

/**
 * Before an expired record makes room for a new life. A row may still wait that it did not take along: it was not committed yet,
 * or locked. What landed takes it along now; what may have landed, or only a relay could compare, marks it with the former life.
 * A record whose row another transaction holds is not written, and its call tries again later.
 */
const leaveFormer = `
  SELECT coalesce(array_agg(a.revision ORDER BY t.namespace, t.key), '{}') INTO former
    FROM ${rest} JOIN semel.records t ON ${leaves};
  ${eachHalf({
    of: 'former',
    held: 'spoilt',
    patience: 'patience',
    run: `${probe('t', `${rest} JOIN semel.records t ON ${leaves} WHERE a.revision = ANY (part)`, 'landed')}
      DELETE FROM semel.outbox o USING ${rest}, semel.records t
        WHERE ${left} AND t.status = ${statusCode('succeeded')} AND ${isIntentOf('t')};
      UPDATE semel.outbox o SET generation = ${lifeOf('t')} FROM ${rest}, semel.records t
        WHERE ${left} AND o.generation IS NULL AND (o.fingerprint = '${strictPrint}' OR ${isIntentOf('t')});`,
  })}
`;

/** Ends of `write`. A row that failed there is put back by the relay that has it. */
const followLanded = follow('landed IS NOT NULL', '');
const followEnded = follow('landed IS NOT NULL OR failed IS NOT NULL', buryFailed);
const landedList = 'landed bigint[];';

/** A claim that waited while a record was removed finds the floor raised, and must not reuse a fence below it. */
const sameFloor = `IF floor > known_floor THEN
      RAISE EXCEPTION 'floor' USING ERRCODE = 'SM001', DETAIL = floor::text;
    END IF;`;

/**
 * Ordinary first claims and settlements, in one transaction. Returns the time, the floor, and the written revisions
 * unless all were written. Every batch writes in the same order, claims first and then by key, so that two batches never
 * deadlock. If another transaction holds a row, the batch fails after a moment and the caller bisects it.
 */
export function writeFunction(): string {
  return defineWrite('CREATE', {
    declared: '',
    settle: (update) => `${update};
    GET DIAGNOSTICS settled = ROW_COUNT;`,
  });
}

/** The same, and a staged intent that has landed leaves the outbox in the same commit. */
export function writeWithOutboxFunction(): string {
  return defineWrite('CREATE OR REPLACE', {
    declared: landedList,
    settle: (update) => `WITH written AS (
      ${update} RETURNING t.namespace, t.key, t.status, t.flags, t.asker, t.more
    )
    SELECT count(*), array_agg(o.n) FILTER (WHERE o.n IS NOT NULL) INTO settled, landed
    FROM written w LEFT JOIN semel.outbox o ON w.status = ${statusCode('succeeded')} AND ${isOnce('w')}
      AND o.namespace = w.namespace AND o.key = w.key AND ${isIntentOf('w')};
    ${followLanded}`,
  });
}

interface WriteParts {
  readonly declared: string;
  settle(update: string): string;
}

function defineWrite(create: string, { declared, settle }: WriteParts): string {
  const claimed = claimLists.map(([name]) => name);
  const settled = settleLists.map(([name]) => name);
  const update = `UPDATE semel.records t SET ${settled
    .slice(3)
    .map((name) => `${name} = a.${name}`)
    .join(', ')}
    FROM ${unnestLists('settle', settled)} WHERE ${still}`;
  return `${create} FUNCTION semel.write(${declareParameters(writeParameters)}) RETURNS text LANGUAGE plpgsql ${byKey} AS $$
#variable_conflict use_column
DECLARE
  ${declarations}
  now bigint;
  floor bigint;
  was text;
  claimed integer;
  settled integer;
  done text;
  ${declared}
BEGIN
  ${begin}
  was := set_config('lock_timeout', patience, true);
  IF NOT (at_ms <= now AND now < until_ms) THEN
    RETURN concat(now, ',', floor, ',[]');
  END IF;

  IF claim_key IS NOT NULL THEN
    INSERT INTO semel.records (${claimed.join(', ')}, status)
      SELECT ${claimed.map((name) => `a.${name}`).join(', ')}, 0 FROM ${unnestLists('claim', claimed)}
      WHERE a.fence > known_floor ON CONFLICT (namespace, key) DO NOTHING;
    GET DIAGNOSTICS claimed = ROW_COUNT;
    -- This starts only when the INSERT has ended, and so sees what it waited for.
    SELECT m.floor INTO floor FROM semel.meta m;
    ${sameFloor}
  END IF;

  IF settle_key IS NOT NULL THEN
    ${settle(update)}
  END IF;

  IF claimed < cardinality(claim_key) OR settled < cardinality(settle_key) THEN
    SELECT coalesce(json_agg(r.revision)::text, '[]') INTO done FROM semel.records r
    WHERE r.namespace = ANY (claim_namespace || settle_namespace) AND r.key = ANY (claim_key || settle_key)
      AND r.revision = ANY (claim_revision || settle_revision);
  END IF;
  RETURN concat(now, ',', floor, ',' || done);
END $$`;
}

/** All other writes, in the same order: writes each record that is unchanged since it was read, and returns which. */
export function swapFunction(): string {
  return defineSwap('CREATE', { declared: '', before: '', follow: '' });
}

/** The same, and the outbox follows in the same commit: what landed leaves it, and what was given up is dead. */
export function swapWithOutboxFunction(): string {
  const ended = [statusCode('succeeded'), statusCode('failed')];
  return defineSwap('CREATE OR REPLACE', {
    declared: `${landedList}
  failed bigint[];
  former bigint[];
  part bigint[];
  size integer;`,
    before: leaveFormer,
    follow: `SELECT ${ended.map((status) => `array_agg(o.n) FILTER (WHERE r.status = ${status})`).join(', ')} INTO landed, failed
    FROM ${rest} JOIN semel.records r ON r.namespace = a.namespace AND r.key = a.key AND r.revision = a.revision
    JOIN semel.outbox o ON o.namespace = r.namespace AND o.key = r.key
    WHERE r.status IN (${ended.join(', ')}) AND ${isOnce('r')} AND ${isLive('r')} AND ${isIntentOf('r')};
  ${followEnded}
`,
  });
}

interface SwapParts {
  readonly declared: string;
  readonly before: string;
  readonly follow: string;
}

function defineSwap(create: string, { declared, before, follow }: SwapParts): string {
  return `${create} FUNCTION semel.swap(${declareParameters(swapParameters)}) RETURNS text LANGUAGE plpgsql ${byKey} AS $$
#variable_conflict use_column
DECLARE
  ${declarations}
  now bigint;
  floor bigint;
  was text;
  swapped bigint[];
  spoilt bigint[] := '{}';
  ${declared}
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
  ${before}WITH written AS (
    UPDATE semel.records t SET ${settings('a')} FROM ${rest} WHERE ${still} AND ${inTime} RETURNING t.revision
  ) SELECT swapped || coalesce(array_agg(w.revision), '{}') INTO swapped FROM written w;
  ${follow}
  IF noted IS NOT NULL THEN
    INSERT INTO semel.events (at, generation, fence, namespace, key, type, detail)
    SELECT e.at, e.generation, e.fence, e.namespace, e.key, e.type, e.detail
    FROM json_to_recordset(noted) AS e (i integer, revision bigint, at bigint, generation bigint,
      fence bigint, namespace text, key text, type text, detail text)
    WHERE e.revision IS NULL OR e.revision = ANY (swapped) ORDER BY e.i;
  ${dropOldEvents}
  END IF;
  RETURN concat(now, ',', floor, ',', array_to_json(swapped));
END $$`;
}

/**
 * Reads these keys; the first row holds the time and the floor. May also return a key from another namespace of the batch,
 * which the caller ignores.
 */
export function lookFunction(): string {
  return `CREATE FUNCTION semel.look(${declareParameters(lookParameters)})
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
 * The same for the user's own connection. COMMIT fails (SQLSTATE 2D000) inside a transaction, so a record is never written
 * into one that the user may roll back.
 */
export function ownProcedure(name: keyof typeof functions): string {
  const given = functions[name].map(([parameter]) => parameter).join(', ');
  return `CREATE PROCEDURE semel.own_${name}(${declareParameters(functions[name])}, INOUT answer text DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
  COMMIT;
  SELECT pg_catalog.json_agg(e)::text INTO answer FROM semel.${name}(${given}) AS e;
END $$`;
}
