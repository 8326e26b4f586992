// What a person types after `semel resolve <ref> <verdict>` to reach a ledger.

import { shellWord } from '../../core/visible.ts';
import { redactAddress } from '../../store/address.ts';
import type { StoreFacts } from '../../store/store.ts';

/** Undefined where no command can reach it. Without a namespace the operator's commands look into all of them. */
export function commandOptions(
  namespace: string | undefined,
  { address }: Pick<StoreFacts, 'address'>,
): string | undefined {
  if (address === undefined) return undefined;
  return [
    ...(namespace === undefined ? [] : [`--namespace ${shellWord(namespace)}`]),
    ...(address === '' ? [] : [`--store ${shellWord(redactAddress(address))}`]),
  ].join(' ');
}
