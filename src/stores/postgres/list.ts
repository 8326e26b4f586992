// Pages of records in the order of their keys.

import { isInDoubt } from '../../rules/state.ts';
import { isOpen, statusCode } from '../../store/columns.ts';
import type { ListQuery, Row } from '../../store/store.ts';
import type { Connection } from './client.ts';
import { decode, type Packed, packed } from './rows.ts';
import { within } from './schema.ts';

/** Read at once where only some of the rows may match. */
const chunk = 200;

export async function listRows(
  query: Connection['query'],
  schema: string,
  asked: ListQuery,
): Promise<{ rows: readonly Row[]; next: string | undefined; now: number }> {
  // One more than asked for tells whether there is a next page.
  const wanted = asked.limit + 1;
  const limit = asked.inDoubt === undefined ? wanted : Math.max(wanted, chunk);
  const rows: Row[] = [];
  const isOpenOnly = asked.inDoubt === true || (asked.status !== undefined && isOpen(asked.status));
  for (let after = asked.after ?? null; ; ) {
    const [answer] = await query(within(schema, isOpenOnly ? openPage : page), [
      asked.namespace,
      after,
      asked.prefix ?? '',
      asked.contract === undefined ? '' : `${asked.contract}/`,
      statusesOf(asked),
      asked.conversation === undefined ? null : JSON.stringify(asked.conversation),
      limit,
    ]);
    const now = Number(answer?.now);
    const found = JSON.parse((answer?.found as string | null) ?? '[]') as Packed[];
    const decoded = found.map((values) => decode(values));
    const time = { wall: now, mono: now, boot: 'store', steady: true };
    rows.push(
      ...decoded.filter((row) => asked.inDoubt === undefined || isInDoubt(row, time) === asked.inDoubt),
    );
    if (rows.length >= wanted)
      return { rows: rows.slice(0, asked.limit), next: rows[asked.limit - 1]?.key, now };
    if (found.length < limit) return { rows, next: undefined, now };
    after = decoded.at(-1)?.key ?? null;
  }
}

/** As JSON; null: any. */
function statusesOf({ status, inDoubt }: ListQuery): string | null {
  const statuses = (['running', 'succeeded', 'failed', 'released', 'unknown'] as const).filter(
    (one) => (status === undefined || one === status) && (inDoubt !== true || isOpen(one)),
  );
  return status === undefined && inDoubt !== true ? null : JSON.stringify(statuses.map(statusCode));
}

const matching = (table: string) => `SELECT * FROM semel.${table} t
    WHERE t.namespace = $1 AND ($2::text IS NULL OR t.key > $2::text)
      AND t.key >= $3::text AND starts_with(t.key, $3::text)
      AND t.key >= $4::text AND starts_with(t.key, $4::text)
      AND ($5::text IS NULL OR t.status IN (SELECT json_array_elements_text($5::text::json)::smallint))
      AND ($6::text IS NULL OR (t.asker::json -> 0)::text = $6::text)
    ORDER BY t.key LIMIT $7`;

const selecting = (rows: string) => `SELECT semel.now_ms() AS now, (
  SELECT json_agg(json_build_array(${packed()}) ORDER BY r.key)::text FROM (${rows}) AS r) AS found`;

const openPage = selecting(matching('open'));
const page = selecting(`(${matching('open')}) UNION ALL (${matching('closed')}) ORDER BY key LIMIT $7`);
