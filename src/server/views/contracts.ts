// The tools and jobs of a namespace, from one contract to the next: a few reads, however many records each has.

import type { Page, StoredRecord } from '../../store/store.ts';
import type { Space } from '../space.ts';

/** One more than the limit shows that there are more. */
export async function listContracts(
  { engine }: Space,
  prefix: string,
  max: number,
): Promise<readonly string[]> {
  const { store, namespace } = engine;
  const found: string[] = [];
  for (let after: string | undefined; found.length <= max; ) {
    const page: Page<StoredRecord> = await store.list({
      ...{ namespace, limit: 1 },
      ...(prefix === '' ? {} : { prefix }),
      ...(after === undefined ? {} : { after }),
    });
    const [first] = page.items;
    if (first === undefined || found.includes(first.contract)) return found;
    found.push(first.contract);
    // Sorts behind every key of this contract.
    after = `${first.contract}/\u{10ffff}`;
  }
  return found;
}
