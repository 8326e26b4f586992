// Whether a tool uses the key that its provider honours. A try that was given no key cannot have sent it, so the provider
// would not know its repeat: such a try is in doubt, and once a tool was seen to make one, its claims do not count on the key.

import type { Contract } from '../core/contract/contract.ts';

/** What this process has seen. Of a tool, since two processes may run different code under one contract. */
export interface KeyUse {
  /** A try was given a key. */
  isRead: boolean;
  /** `maybe`: a try without a key failed, perhaps before it sent anything. `surely`: one succeeded. */
  unread: 'no' | 'maybe' | 'surely';
}

export const newKeyUse = (): KeyUse => ({ isRead: false, unread: 'no' });

interface Keyed {
  readonly contract: Contract;
  readonly keyUse?: KeyUse | undefined;
}

/** A re-run relies on a key that the tool has to send. Steps have keys of their own. */
export function reliesOnKey({ provider, rerunWithinMs, via }: Contract): boolean {
  return provider !== undefined && rerunWithinMs !== null && via !== 'steps';
}

/** How long re-runs may rely on the provider's key; null: not at all. */
export function trustedWindow({ contract, keyUse }: Keyed): number | null {
  return keyUse !== undefined && ignoresKey(keyUse) ? null : contract.rerunWithinMs;
}

function ignoresKey({ isRead, unread }: KeyUse): boolean {
  return unread === 'surely' || (unread === 'maybe' && !isRead);
}

export function learnKeyUse(keyUse: KeyUse | undefined, seen: 'read' | 'unknown' | 'succeeded'): void {
  if (keyUse === undefined) return;
  if (seen === 'read') keyUse.isRead = true;
  else if (seen === 'succeeded') keyUse.unread = 'surely';
  else if (keyUse.unread === 'no') keyUse.unread = 'maybe';
}

export function describeUnreadKey(name: string, provider: string): string {
  return (
    `${name}: \`run\` ended without reading a key, so what it sent does not carry semel's, and ${provider} would not know it again: ` +
    'a lost reply is left in doubt. Pass `ctx.key` to the client or send by `ctx.fetch`; where nothing was sent, read `ctx.key` ' +
    'first. If there is no way to send it, leave out `provider`.'
  );
}
