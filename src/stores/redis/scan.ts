// Redis keeps no list of its keys: whoever wants all of a ledger's records goes through the whole database.

import type { Node, Reply } from './client.ts';
import type { Names } from './names.ts';

const count = '2000';

/** The names of all records that start so, in any order; one may come twice. */
export async function* scan(
  nodes: readonly Node[],
  names: Names,
  start = '',
): AsyncGenerator<readonly string[], void> {
  const pattern = names.pattern(start);
  for (const node of nodes) {
    for (let cursor = '0'; ; ) {
      const reply = await node('scan', cursor, 'match', pattern, 'count', count);
      const [next, keys] = reply as [Reply, readonly string[]];
      yield keys.map((key) => names.nameIn(key)).filter((name) => name?.startsWith(start)) as string[];
      cursor = String(next);
      if (cursor === '0') break;
    }
  }
}
