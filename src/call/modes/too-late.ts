// A call after its `notAfter`: nothing is run any more, but what was done in time, or may have been, is told.

import type { StoredRecord } from '../../store/store.ts';
import type { Call } from '../call.ts';
import { createClaimRequest, firstPurpose, type Purpose } from '../claim.ts';
import type { Env } from '../env.ts';
import { tooLateError } from '../refusals.ts';
import type { Body } from '../run-tool.ts';

export interface LateCall {
  readonly call: Call;
  readonly ask: Purpose;
  readonly body: Body;
}

/** How to ask for the record that answers for the call; undefined: there is none, or it is free. */
export async function findInTime({ ledger, random, owner }: Env, call: Call): Promise<LateCall | undefined> {
  const now = await ledger.findAnswer(createClaimRequest(call, firstPurpose, random.token(), owner));
  if (now.is === 'gone' || now.record.expired || isFree(now.record)) return undefined;
  const { generation } = now.record;
  const thrown = tooLateError(call);
  return {
    // Whether it landed may be asked at any time.
    call: call.with({ notAfter: null, verifyOnly: true }),
    ask: { ...firstPurpose, generation },
    body: async () => ({ ending: { outcome: 'released', because: thrown.message }, thrown }),
  };
}

/** A claim would win it. */
function isFree({ status, lapsed, inDoubt }: StoredRecord): boolean {
  return status === 'released' || (lapsed && !inDoubt);
}
