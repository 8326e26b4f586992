// What a person types after `semel resolve <ref> <verdict>` to reach a ledger.

import { shownAddress } from '../store/address.ts';
import type { StoreFacts } from '../store/store.ts';

/** Undefined where no command can reach it. */
export function commandOptions(namespace: string, { address }: StoreFacts): string | undefined {
  if (address === undefined) return undefined;
  return `--namespace ${shellWord(namespace)}${address === '' ? '' : ` --store ${shellWord(shownAddress(address))}`}`;
}

/** As one word of a shell. */
export function shellWord(value: string): string {
  return /^[\w./:@-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}
