// Counts what is open in a ledger: in doubt, or in flight. From the ledger and not from events, so that what a crash left counts too.

import { items } from '../../core/paging.ts';
import type { Ledger } from '../../ledger/index.ts';
import type { StoredRecord } from '../../store/store.ts';
import type { Scope, Scopes } from './labels.ts';

export interface OpenRecords {
  readonly inDoubt: ReadonlyMap<Scope, number>;
  readonly inFlight: ReadonlyMap<Scope, number>;
  /** By namespace, in seconds. */
  readonly oldestDoubt: ReadonlyMap<string, number>;
}

/** A scrape must stay cheap: a ledger with more open records than this needs no exact figure. */
const maxRecords = 20_000;
/** A record may have a megabyte. */
const recordsAtOnce = 50;

export async function countOpen(
  ledger: Ledger,
  namespaces: readonly string[],
  scopes: Scopes,
): Promise<OpenRecords> {
  const inDoubt = new Map<Scope, number>();
  const inFlight = new Map<Scope, number>();
  const oldestDoubt = new Map<string, number>();
  let left = maxRecords;
  for (const namespace of namespaces) {
    for (const status of ['unknown', 'running'] as const) {
      const list = (from: { readonly after?: string }) =>
        ledger.list({ namespace, status, limit: recordsAtOnce, ...from });
      for await (const record of items(list)) {
        if (left-- <= 0) return { inDoubt, inFlight, oldestDoubt };
        const scope = scopes.of(namespace, record.contract);
        if (record.inDoubt) {
          count(inDoubt, scope);
          oldestDoubt.set(
            scope.namespace,
            Math.max(oldestDoubt.get(scope.namespace) ?? 0, ageSeconds(record)),
          );
        } else if (!record.lapsed) count(inFlight, scope);
      }
    }
  }
  return { inDoubt, inFlight, oldestDoubt };
}

function count(counts: Map<Scope, number>, scope: Scope): void {
  counts.set(scope, (counts.get(scope) ?? 0) + 1);
}

function ageSeconds({ lastDispatchedAt, updatedAt, readAt }: StoredRecord): number {
  return Math.max(0, (readAt || Date.now()) - (lastDispatchedAt ?? updatedAt)) / 1_000;
}
