// Asks the tool's own `verify` about a record in doubt, under a claim.

import { decodeResult } from '../core/codec/codec.ts';
import { describeThrown } from '../core/contract/classify.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Attempt } from './attempt.ts';
import type { VerifyContext } from './call.ts';
import { isSameCode } from './doubt.ts';
import type { Verification } from './verification.ts';

/** Asks the tool whether it landed. A throw or no answer in time decides nothing. */
export async function verify(attempt: Attempt, inDoubt: StoredRecord | undefined): Promise<Verification> {
  const { tool } = attempt.call;
  const { record } = attempt;
  const isOwn = inDoubt === undefined || isSameCode(attempt.call, inDoubt);
  const { ctx } = attempt.context();
  const at = (instant: number | null) => (instant === null ? undefined : new Date(instant));
  const context: VerifyContext = {
    key: ctx.key,
    keyFor: ctx.keyFor,
    remoteRef: record.result?.remoteRef ?? undefined,
    firstDispatchedAt: at(record.firstDispatchedAt),
    lastDispatchedAt: at(record.lastDispatchedAt),
    attempts: record.attempts,
    signal: attempt.stop.signal,
  };
  try {
    const asked = isOwn ? chooseArgs(attempt, inDoubt) : attempt.call.args;
    const answer = await attempt.race<Verification | undefined>(
      Promise.resolve(tool.verify?.(asked as never, context)),
      ({ message }) => ({ verdict: 'unsure', because: message }),
    );
    if (!isVerification(answer)) return noAnswer;
    // It was sent in words that this code may not understand: where it finds nothing, it may have looked for something else.
    return isOwn || answer.verdict !== 'notLanded'
      ? answer
      : { verdict: 'unsure', because: otherCode(inDoubt.version, tool.contract.version) };
  } catch (error) {
    return { verdict: 'unsure', because: describeThrown(error) };
  }
}

function otherCode(sentBy: string, askedIn: string): string {
  return `it says "not landed", but version ${sentBy} sent it, and this is version ${askedIn}`;
}

/** What was sent is looked for in its own words, not in those of whoever asks. */
function chooseArgs({ args, call }: Attempt, inDoubt: StoredRecord | undefined): unknown {
  const stored = call.tool.contract.redact.length === 0 ? inDoubt?.args : undefined;
  return stored == null ? args : decodeResult(stored);
}

/** Whatever is none of the three answers is no answer: `true` may mean either. */
const noAnswer: Verification = {
  verdict: 'unsure',
  because: 'it answered none of landed(), notLanded() or unsure()',
};

function isVerification(answer: unknown): answer is Verification {
  const verdict = (answer as Partial<Verification> | null | undefined)?.verdict;
  return verdict === 'landed' || verdict === 'notLanded' || verdict === 'unsure';
}
