// The contracts that have records in a namespace, without reading all of these.

import type { Semel } from '../../semel/index.ts';

/** A contract's keys start with its name and a slash: behind the last of them the next contract begins. */
export async function contractsIn(semel: Semel): Promise<readonly string[]> {
  const contracts: string[] = [];
  for (let after = ''; ; after = `${contracts.at(-1)}/\u{10ffff}`) {
    const { items } = await semel.records.list({ limit: 1, ...(after === '' ? {} : { after }) });
    const [first] = items;
    if (first === undefined) return contracts;
    contracts.push(first.contract);
  }
}
