// Pages of records in key order.

import { isInDoubt } from '../../rules/state.ts';
import { isOpen, statusCode } from '../../store/columns.ts';
import { isDamaged, readOrDamage } from '../../store/damage.ts';
import type { RowPage } from '../../store/remote/backend.ts';
import type { DamagedRecord, ListQuery, Row } from '../../store/store.ts';
import type { Connection } from './client.ts';
import { openRows } from './functions.ts';
import { decode, type Packed, packed } from './rows.ts';
import { qualify } from './schema.ts';

/** Rows per query where only some of them may match. */
const chunk = 200;

export async function listRows(
  query: Connection['query'],
  schema: string,
  filter: ListQuery,
): Promise<RowPage> {
  // One more than the limit shows whether there is a next page.
  const limit = filter.inDoubt === undefined ? filter.limit + 1 : Math.max(filter.limit + 1, chunk);
  const rows: Row[] = [];
  const damaged: DamagedRecord[] = [];
  /** Damaged records after the last row; they belong to the next page, if there is one. */
  const behind: DamagedRecord[] = [];
  const isOpenOnly = filter.inDoubt === true || (filter.status !== undefined && isOpen(filter.status));
  for (let after = filter.after ?? null; ; ) {
    const [answer] = await query(qualify(schema, page(isOpenOnly ? openRows : 'true')), [
      filter.namespace,
      after,
      filter.prefix ?? '',
      filter.contract === undefined ? '' : `${filter.contract}/`,
      encodeStatuses(filter),
      filter.conversation === undefined ? null : JSON.stringify(filter.conversation),
      limit,
    ]);
    const now = Number(answer?.now);
    const found = JSON.parse((answer?.found as string | null) ?? '[]') as Packed[];
    const time = { wall: now, mono: now, boot: 'store', steady: true };
    for (const values of found) {
      const row = readOrDamage(() => decode(values));
      [, after] = values;
      if (isDamaged(row)) behind.push(row);
      else if (filter.inDoubt === undefined || isInDoubt(row, time) === filter.inDoubt) {
        if (rows.length === filter.limit) return { rows, next: rows.at(-1)?.key, damaged, now };
        rows.push(row);
        damaged.push(...behind.splice(0));
      }
    }
    if (found.length < limit) return { rows, next: undefined, damaged: [...damaged, ...behind], now };
  }
}

/** JSON list of status codes; null for any status. */
function encodeStatuses({ status, inDoubt }: ListQuery): string | null {
  const statuses = (['running', 'succeeded', 'failed', 'released', 'unknown'] as const).filter(
    (one) => (status === undefined || one === status) && (inDoubt !== true || isOpen(one)),
  );
  return status === undefined && inDoubt !== true ? null : JSON.stringify(statuses.map(statusCode));
}

const page = (which: string) => `SELECT semel.now_ms() AS now, (
  SELECT pg_catalog.json_agg(pg_catalog.json_build_array(${packed()}) ORDER BY r.key)::text FROM (
    SELECT * FROM semel.records t
    WHERE t.namespace = $1 AND ${which} AND ($2::text IS NULL OR t.key > $2::text)
      AND t.key >= $3::text AND pg_catalog.starts_with(t.key, $3::text)
      AND t.key >= $4::text AND pg_catalog.starts_with(t.key, $4::text)
      AND ($5::text IS NULL OR t.status IN (SELECT pg_catalog.json_array_elements_text($5::text::json)::smallint))
      AND ($6::text IS NULL OR pg_catalog.left(t.asker, pg_catalog.length($6::text) + 2) IN ('[' || $6::text || ',', '[' || $6::text || ']'))
    ORDER BY t.key LIMIT $7) AS r) AS found`;
