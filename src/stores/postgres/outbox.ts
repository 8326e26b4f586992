// The outbox of a Postgres ledger: rows in its own schema, written by the functions in outbox-functions.ts.

import { batcher } from '../../store/batcher.ts';
import {
  countingSql,
  type Intent,
  type Outbox,
  type OutboxRow,
  outboxStates,
  type PutBack,
  parseDrift,
} from '../../store/outbox.ts';
import { encodeArray } from './array.ts';
import type { Connection } from './client.ts';
import { judge } from './failure.ts';
import { outboxJson } from './outbox-functions.ts';
import { qualify, schemaVersion } from './schema.ts';
import { nameStatement } from './statements.ts';

interface OutboxOptions {
  open(): Promise<unknown>;
  readonly query: Connection['query'];
  readonly schema: string;
  readonly where: string;
}

type Mark = Parameters<Outbox['mark']>[0];

export function postgresOutbox({ open, query, schema, where }: OutboxOptions): Outbox {
  const sql = (text: string) => qualify(schema, text);
  const texts = {
    take: sql(
      'SELECT * FROM semel.take($1::text, $2::text, $3::integer, $4::bigint, $5::boolean, $6::integer)',
    ),
    mark: sql('SELECT semel.mark($1::text::json, $2::integer) AS answer'),
    keep: sql('SELECT semel.keep($1::text::json, $2::bigint, $3::integer) AS answer'),
    finish: sql('SELECT semel.finish($1::text::json, $2::text::json, $3::integer)::text AS answer'),
    list: sql(`SELECT ${outboxJson}::text AS answer, (SELECT pg_catalog.min(e.n) FROM semel.outbox e WHERE e.namespace = o.namespace
      AND e.group_name = o.group_name AND e.n < o.n AND e.state > 0)::text AS behind FROM semel.outbox o WHERE ($1::text IS NULL OR o.namespace = $1::text)
      AND o.n > $2::bigint AND ($3::smallint IS NULL OR o.state = $3::smallint) ORDER BY o.n LIMIT $4::integer`),
    count: sql(
      countingSql(
        'semel.outbox',
        'semel.now_ms()',
        'WHERE $1::text[] IS NULL OR namespace = ANY ($1::text[])',
      ),
    ),
    find: sql(
      `SELECT ${outboxJson}::text AS answer FROM semel.outbox o WHERE o.namespace = $1 AND o.key = $2`,
    ),
    retry: sql(`UPDATE semel.outbox SET state = 0, due = 0, ready = 0, tries = 0, generation = NULL,
      reason = 'a person said to deliver it again' WHERE n = $1::bigint RETURNING n::text AS answer`),
    drop: sql('DELETE FROM semel.outbox WHERE n = $1::bigint RETURNING n::text AS answer'),
  };
  const takeName = nameStatement('take', schema);
  const marks = batcher<Mark, boolean>({ flush: flushMarks, judge: judgeHere });
  const ends = batcher<number | PutBack, undefined>({ flush: flushEnds, judge: judgeHere });

  return {
    removesLanded: true,
    async take({ namespace, contracts, limit, holdMs, skipBlocked }) {
      const names = JSON.stringify(contracts);
      const values = [namespace, names, limit, holdMs, skipBlocked, schemaVersion];
      const rows = (await ask(texts.take, values, takeName)) as unknown as readonly LentColumns[];
      return rows.map((row) => toLent(namespace, row)).sort((one, other) => one.n - other.n);
    },
    mark: (row) => marks.add('settling', row),
    async keep(rows, holdMs) {
      const asked = rows.map(({ n, dueAt }) => ({ n, due: dueAt }));
      const [row] = await ask(texts.keep, [JSON.stringify(asked), holdMs, schemaVersion]);
      const { due, kept } = JSON.parse(row?.answer as string) as { due: number; kept: number[] | null };
      return { dueAt: due, kept: kept ?? [] };
    },
    remove: (n) => ends.add('settling', n),
    putBack: (row) => ends.add('settling', row),
    async list({ namespace, state, after = 0, limit }) {
      const number = state === undefined ? null : outboxStates.indexOf(state);
      const rows = await ask(texts.list, [namespace ?? null, after, number, limit]);
      return rows.map(({ answer, behind }) => ({
        ...toRow(JSON.parse(answer as string) as PackedRow),
        behind: behind === null ? null : Number(behind),
      }));
    },
    async count(namespaces) {
      const rows = await ask(texts.count, [namespaces === undefined ? null : encodeArray(namespaces)]);
      return rows.map(({ namespace, waiting, behind, in_doubt, dead, oldest, now }) => ({
        namespace: String(namespace),
        waiting: Number(waiting),
        behind: Number(behind),
        inDoubt: Number(in_doubt),
        dead: Number(dead),
        oldestAt: oldest === null ? null : Number(oldest),
        now: Number(now),
      }));
    },
    async find(namespace, key) {
      const [row] = await ask(texts.find, [namespace, key]);
      return row && toRow(JSON.parse(row.answer as string) as PackedRow);
    },
    retry: async (n) => (await ask(texts.retry, [n])).length > 0,
    drop: async (n) => (await ask(texts.drop, [n])).length > 0,
  };

  async function flushMarks(take: () => readonly Mark[]): Promise<readonly boolean[]> {
    const asked = take();
    const [row] = await ask(texts.mark, [JSON.stringify(asked), schemaVersion]);
    const marked = new Set(JSON.parse((row?.answer as string | null) ?? '[]') as number[]);
    return asked.map(({ n }) => marked.has(n));
  }

  async function flushEnds(take: () => readonly (number | PutBack)[]): Promise<readonly undefined[]> {
    const asked = take();
    const delivered = asked.filter((one) => typeof one === 'number');
    const others = asked.flatMap((one) =>
      typeof one === 'number'
        ? []
        : [
            {
              n: one.n,
              due: one.dueAt,
              state: outboxStates.indexOf(one.state),
              wait: Math.ceil(one.waitMs),
              reason: one.reason,
              spent: one.isSpent ? 1 : 0,
            },
          ],
    );
    await ask(texts.finish, [JSON.stringify(delivered), JSON.stringify(others), schemaVersion]);
    return asked.map(() => undefined);
  }

  function judgeHere(error: unknown) {
    return judge(error, where);
  }

  async function ask(text: string, values: readonly unknown[], name?: string) {
    await open();
    try {
      return await query(text, values, name);
    } catch (error) {
      throw judge(error, where).error;
    }
  }
}

type PackedRow = Omit<OutboxRow, 'state' | 'drift'> & {
  readonly state: number;
  readonly drift: string | null;
};

export function toRow({ state, drift, ...row }: PackedRow): OutboxRow {
  return {
    ...row,
    state: outboxStates[state] ?? 'dead',
    drift: drift === null ? [] : parseDrift(drift),
  };
}

/** What `semel.take` returns. Drivers differ in which numbers they return as text. */
interface LentColumns
  extends Pick<PackedRow, 'key' | 'contract' | 'version' | 'fingerprint' | 'caller' | 'call'> {
  readonly n: unknown;
  readonly state: unknown;
  readonly staged: unknown;
  readonly due: unknown;
  readonly tries: unknown;
  readonly generation: unknown;
  readonly group_name: string | null;
  readonly reason: string | null;
  readonly drift: string | null;
}

function toLent(namespace: string, row: LentColumns): OutboxRow {
  const { key, contract, version, fingerprint, caller, call, reason, drift, generation } = row;
  return toRow({
    n: Number(row.n),
    state: Number(row.state),
    stagedAt: Number(row.staged),
    dueAt: Number(row.due),
    tries: Number(row.tries),
    generation: generation === null ? null : Number(generation),
    namespace,
    key,
    contract,
    version,
    group: row.group_name,
    fingerprint,
    caller,
    call,
    reason,
    drift,
  });
}

/** What `semel.stage` gets, in the order of `stageParameters`. */
export function encodeIntent(intent: Intent): readonly (string | null)[] {
  const { namespace, key, olderKeys, contract, version, group, strict, notBefore } = intent;
  const keys = encodeArray([key, ...olderKeys]);
  const due = notBefore === null ? null : String(notBefore);
  const { fingerprint, caller, call } = intent;
  return [namespace, keys, contract, version, group, String(strict), due, fingerprint, caller, call];
}

/** What `semel.stage_new` gets, in the order of `stageNewParameters`; undefined if the intent is not for it. */
export function encodeNewIntent(intent: Intent, here: string): readonly (string | null)[] | undefined {
  const { namespace, key, olderKeys, contract, version, group, strict, notBefore } = intent;
  if (strict || olderKeys.length > 0) return undefined;
  const due = notBefore === null ? null : String(notBefore);
  const { fingerprint, caller, call } = intent;
  return [namespace, key, contract, version, group, due, fingerprint, caller, call, here];
}

/** What `semel.stage` answers. */
export interface StageAnswer {
  readonly place: string;
  readonly now: number;
  readonly records?: readonly unknown[];
  readonly n?: number | null;
  readonly existing?: PackedRow | null;
}
