// A user who looks at a namespace without records probably means another one: names the others and their doubts.

import type { Namespaces } from '../args/namespaces.ts';
import { complain } from './print.ts';

interface Neighbour {
  readonly namespace: string;
  /** At most `maxDoubts`. */
  readonly doubts: number;
}

const maxNamespaces = 20;
const maxDoubts = 100;

/** Answers whether it warned. */
export async function warnIfEmpty(ledger: Namespaces): Promise<boolean> {
  for await (const semel of ledger.each()) {
    const { items } = await semel.records.list({ limit: 1 });
    if (items.length > 0) return false;
  }
  const chosen = ledger.chosen ?? 'default';
  const all = await ledger.in(chosen).records.namespaces();
  const others = all.filter((name) => name !== chosen);
  if (ledger.chosen === undefined || others.length === 0) {
    complain(`this ledger has no records (${(await ledger.open()).location}).`);
    return true;
  }
  const found: Neighbour[] = [];
  for (const namespace of others.slice(0, maxNamespaces)) {
    const { items } = await ledger.in(namespace).doubts.list({ limit: maxDoubts });
    found.push({ namespace, doubts: items.filter((item) => item.inDoubt).length });
  }
  complain(sentence(chosen, found, others.length - found.length));
  return true;
}

function sentence(namespace: string, found: readonly Neighbour[], more: number): string {
  const named = found.map(({ namespace: name, doubts }) =>
    doubts === 0 ? name : `${name} (${doubts}${doubts === maxDoubts ? ' or more' : ''} in doubt)`,
  );
  const rest = more === 0 ? '' : `, and ${more} more`;
  return `there are no records in the namespace ${namespace}. This ledger has some in: ${named.join(', ')}${rest}. Choose one with --namespace, or leave it out to see all.`;
}
