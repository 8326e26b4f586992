// Whoever looks into a namespace without records probably means another one: which there are, and what waits there.

import { createSemel, type Semel } from '../semel/index.ts';
import { complain } from './print.ts';

interface Neighbour {
  readonly namespace: string;
  /** Up to `most`. */
  readonly doubts: number;
}

/** More are named by none: a ledger with so many has its own list of them. */
const mostNamespaces = 20;
const most = 100;

/** True where there was something to warn about. */
export async function warnOfEmptyNamespace(semel: Semel): Promise<boolean> {
  const { items } = await semel.records.list({ limit: 1 });
  if (items.length > 0) return false;
  const others = (await semel.records.namespaces()).filter((name) => name !== semel.namespace);
  if (others.length === 0) {
    complain(`this ledger has no records (${(await semel.open()).location}).`);
    return true;
  }
  const found = await neighbours(semel, others.slice(0, mostNamespaces));
  complain(sentence(semel.namespace, found, others.length - found.length));
  return true;
}

async function neighbours(semel: Semel, names: readonly string[]): Promise<readonly Neighbour[]> {
  const { address } = await semel.open();
  const found: Neighbour[] = [];
  for (const namespace of names) {
    await using other = createSemel({
      store: address || 'sqlite:',
      namespace,
      prune: false,
      onWarning: () => undefined,
    });
    const { items } = await other.doubts.list({ limit: most });
    found.push({ namespace, doubts: items.filter((item) => item.inDoubt).length });
  }
  return found;
}

function sentence(namespace: string, found: readonly Neighbour[], more: number): string {
  const named = found.map(({ namespace: name, doubts }) =>
    doubts === 0 ? name : `${name} (${doubts}${doubts === most ? ' or more' : ''} in doubt)`,
  );
  const rest = more === 0 ? '' : `, and ${more} more`;
  return `there are no records in the namespace ${namespace}. This ledger has some in: ${named.join(', ')}${rest}. Name one by --namespace or SEMEL_NAMESPACE.`;
}
