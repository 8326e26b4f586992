// What the target may have been sent: the key that `ctx.key` and SEMEL_KEY_UUID hold, and the mark of `ctx.mark()`.

import { markText, providerKey } from '../../../core/key/key.ts';
import type { RecordInfo } from '../../../semel/index.ts';
import type { StoredRecord } from '../../../store/store.ts';

export interface Sent {
  /** Before a provider's own format. */
  readonly key: string;
  readonly mark: string;
}

/** Undefined if nothing was dispatched, or the next attempt may get another key. */
export function sentBy({ fence, status }: RecordInfo, stored: StoredRecord | undefined): Sent | undefined {
  if (stored === undefined || stored.fence !== fence || status === 'released') return undefined;
  const { namespace, key, providerKeyFence, lastDispatchedAt, dispatched } = stored;
  if (lastDispatchedAt === null || providerKeyFence === 0) return undefined;
  if (status === 'running' && !dispatched) return undefined;
  return {
    key: providerKey(namespace, key, providerKeyFence),
    mark: markText(namespace, key, providerKeyFence),
  };
}
