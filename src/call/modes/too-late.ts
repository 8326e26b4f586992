// A call after its `notAfter`: nothing is run any more, but the call still learns what was done in time, or may have been.

import { isRepeatable } from '../../core/contract/words.ts';
import { isSemelError } from '../../core/errors.ts';
import { hasSettledStaged } from '../../rules/state.ts';
import type { StoredRecord } from '../../store/store.ts';
import type { Call } from '../call.ts';
import { createClaimRequest, firstPurpose, type Purpose } from '../claim.ts';
import type { Env } from '../env.ts';
import { type Result, refuse } from '../receipt.ts';
import { tooLateError } from '../refusals.ts';
import type { Body } from '../run-tool.ts';

export async function answerLate(
  env: Env,
  call: Call,
  startAlone: (call: Call, body: Body, purpose: Purpose) => Promise<Result>,
): Promise<Result> {
  const { ledger, random, owner } = env;
  const error = tooLateError(call);
  // Every call is a write of its own: what was written before does not answer it.
  if (isRepeatable(call.tool.contract.effect)) return refuse(call, undefined, error);
  try {
    const now = await ledger.findAnswer(createClaimRequest(call, firstPurpose, random.token(), owner));
    if (now.is === 'gone' || isOver(call, now.record) || isFree(now.record))
      return refuse(call, undefined, error);
    const { generation } = now.record;
    const body: Body = async () => ({
      ending: { outcome: 'released', because: error.message },
      thrown: error,
    });
    // `verify` may be asked at any time.
    const verifying = call.with({ notAfter: null, verifyOnly: true });
    return await startAlone(verifying, body, { ...firstPurpose, generation });
  } catch (thrown) {
    if (!isSemelError(thrown)) throw thrown;
    return refuse(call, undefined, thrown);
  }
}

function isOver({ stagedAt }: Call, record: StoredRecord): boolean {
  return record.expired && (stagedAt === null || !hasSettledStaged(record, stagedAt));
}

/** A claim would win it. */
function isFree({ status, lapsed, inDoubt }: StoredRecord): boolean {
  return status === 'released' || (lapsed && !inDoubt);
}
