// Ends the claim of a process that is proven dead, so that nobody waits for its lease: what it dispatched is in doubt, and
// everything else is free, as when the lease is over.

import { sendsAlone } from '../store/process-life.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Env } from './env.ts';

/** False: its process may be alive. True: the record has changed, through this call or before. */
export async function endIfDead({ ledger, random, isDead }: Env, record: StoredRecord): Promise<boolean> {
  const { namespace, key, owner, fence, status, lapsed, lastDispatchedAt, readAt } = record;
  if (status !== 'running' || lapsed || !isDead(owner)) return false;
  await ledger.resolve({
    namespace,
    key,
    // The claim that was looked at, and no later one.
    seen: { fence, dispatchedAt: lastDispatchedAt },
    decidedAt: readAt,
    act: { type: 'died', mayStillSend: !sendsAlone(owner) },
    token: random.token(),
    by: 'semel',
    note: 'its process is gone',
    force: false,
  });
  return true;
}
