// Pages of records in key order. Redis keeps no order, and an index would take as much memory as the records, so keys are
// scanned and sorted here.

import type { Clock } from '../../core/clock.ts';
import { isInDoubt } from '../../rules/state.ts';
import { isDamaged } from '../../store/damage.ts';
import type { RowPage } from '../../store/remote/backend.ts';
import type { DamagedRecord, ListQuery, Row } from '../../store/store.ts';
import type { Node } from './client.ts';
import { joinName, type Names, scan, splitName } from './names.ts';

export interface ListContext {
  nodes(): Promise<readonly Node[]>;
  names(): Names;
  /** Undefined for a record that is gone meanwhile. */
  rows(
    namespace: string,
    keys: readonly string[],
  ): Promise<{ rows: readonly (Row | DamagedRecord | undefined)[]; now: number }>;
  readonly clock: Clock;
}

type ListRows = (filter: ListQuery) => Promise<RowPage>;

interface Snapshot {
  readonly about: string;
  readonly keys: readonly string[];
  readonly until: number;
}

/** Rows per query where only some of them may match. */
const chunk = 200;
/** A scan longer than this is reused for the next pages, for `worth` times as long as it took. */
const longScanMs = 50;
const worth = 20;

export function createList(ledger: ListContext): ListRows {
  let last: Snapshot | undefined;

  return async (filter) => {
    const keys = await readKeys(filter);
    // One more than the limit shows whether there is a next page.
    const step = Math.max(chunk, filter.limit + 1);
    const rows: Row[] = [];
    const damaged: DamagedRecord[] = [];
    /** Damaged records after the last row; they belong to the next page, if there is one. */
    const behind: DamagedRecord[] = [];
    let now: number | undefined;
    for (let start = 0; start < keys.length || now === undefined; start += step) {
      const part = await ledger.rows(filter.namespace, keys.slice(start, start + step));
      now = part.now;
      const time = { wall: now, mono: now, boot: 'store', steady: true };
      for (const row of part.rows) {
        if (row === undefined) continue;
        if (isDamaged(row)) {
          behind.push(row);
          continue;
        }
        if (filter.status !== undefined && row.status !== filter.status) continue;
        if (filter.conversation !== undefined && row.conversation !== filter.conversation) continue;
        if (filter.inDoubt !== undefined && isInDoubt(row, time) !== filter.inDoubt) continue;
        if (rows.length === filter.limit) return { rows, next: rows.at(-1)?.key, damaged, now };
        rows.push(row);
        damaged.push(...behind.splice(0));
      }
    }
    return { rows, next: undefined, damaged: [...damaged, ...behind], now: now as number };
  };

  /** All keys of this page and the later ones, in order. */
  async function readKeys({
    namespace,
    prefix = '',
    contract,
    after,
  }: ListQuery): Promise<readonly string[]> {
    const starts = [prefix, contract === undefined ? '' : `${contract}/`];
    const start = starts.reduce((longest, one) => (one.length > longest.length ? one : longest));
    const about = joinName(namespace, start);
    const isKnown = after !== undefined && last?.about === about && ledger.clock.mono() < last.until;
    const keys = isKnown && last !== undefined ? last.keys : await scanKeys(about);
    return keys.filter(
      (key) => (after === undefined || key > after) && starts.every((one) => key.startsWith(one)),
    );
  }

  async function scanKeys(about: string): Promise<readonly string[]> {
    const startedAt = ledger.clock.mono();
    const found = new Set<string>();
    for await (const names of scan(await ledger.nodes(), ledger.names(), about))
      for (const name of names) found.add(splitName(name)[1]);
    const keys = [...found].sort();
    const tookMs = ledger.clock.mono() - startedAt;
    last = tookMs < longScanMs ? undefined : { about, keys, until: ledger.clock.mono() + worth * tookMs };
    return keys;
  }
}
