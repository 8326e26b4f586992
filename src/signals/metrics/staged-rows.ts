// Counts what is staged in an outbox and not delivered. Nobody else says that a group has stopped.

import type { Outbox, OutboxCount } from '../../store/outbox.ts';
import type { Sample } from './exposition.ts';
import type { Scopes } from './labels.ts';

export interface StagedRows {
  readonly counts: readonly Sample[];
  /** In seconds. */
  readonly ages: readonly Sample[];
}

const states = {
  waiting: 'waiting',
  behind: 'behind',
  inDoubt: 'in_doubt',
  dead: 'dead',
} as const satisfies Partial<Record<keyof OutboxCount, string>>;

export async function countStaged(
  outbox: Outbox,
  namespaces: readonly string[] | undefined,
  scopes: Scopes,
): Promise<StagedRows> {
  const totals = new Map<string, number>();
  const oldest = new Map<string, number>();
  for (const found of await outbox.count(namespaces)) {
    const namespace = scopes.nameOf(found.namespace);
    for (const [name, state] of Object.entries(states)) {
      const id = JSON.stringify({ namespace, state });
      totals.set(id, (totals.get(id) ?? 0) + found[name as keyof typeof states]);
    }
    if (found.oldestAt === null) continue;
    const age = Math.max(0, found.now - found.oldestAt) / 1_000;
    oldest.set(namespace, Math.max(oldest.get(namespace) ?? 0, age));
  }
  return {
    counts: [...totals].map(([id, value]) => ({ labels: JSON.parse(id) as Sample['labels'], value })),
    ages: [...oldest].map(([namespace, value]) => ({ labels: { namespace }, value })),
  };
}
