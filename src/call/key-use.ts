// Whether a tool uses the key that its provider honours. A try that was given no key cannot have sent it, so the provider
// would not know its repeat: such a try is in doubt. The claims of a tool that made one and was never seen to read a key do
// not count on it. One that reads keys is trusted: a try of it without a key may have had nothing to send.

import type { Contract } from '../core/contract/contract.ts';

/** What this process has seen. Of a tool, since two processes may run different code under one contract. */
export interface KeyUse {
  /** A try was given a key. */
  isRead: boolean;
  /** A try without a key may have sent something. */
  isUnread: boolean;
}

export const newKeyUse = (): KeyUse => ({ isRead: false, isUnread: false });

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

function ignoresKey({ isRead, isUnread }: KeyUse): boolean {
  return isUnread && !isRead;
}

export function describeUnreadKey(name: string, provider: string): string {
  return (
    `${name}: \`run\` ended without reading a key, so what it sent does not carry semel's, and ${provider} would not know it again: ` +
    'a lost reply is left in doubt. Pass `ctx.key` to the client or send by `ctx.fetch`; where nothing was sent, read `ctx.key` ' +
    'first. If there is no way to send it, leave out `provider`.'
  );
}
