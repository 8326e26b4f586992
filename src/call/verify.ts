// Asks the tool's own `verify` about a record in doubt, under a claim.

import { decodeResult } from '../core/codec/codec.ts';
import { describeThrown } from '../core/contract/classify.ts';
import type { Verification, VerifyContext } from '../core/verification.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Attempt } from './attempt.ts';
import { isSameCode } from './doubt.ts';

/** Asks the tool whether it landed. A throw or no answer in time decides nothing. */
export async function verify(attempt: Attempt, inDoubt: StoredRecord | undefined): Promise<Verification> {
  const { tool } = attempt.call;
  const { record } = attempt;
  const isSameVersion = inDoubt === undefined || isSameCode(attempt.call, inDoubt);
  const { ctx } = attempt.context();
  const at = (instant: number | null) => (instant === null ? undefined : new Date(instant));
  const context: VerifyContext = {
    key: ctx.key,
    keyFor: ctx.keyFor,
    mark: ctx.mark,
    remoteRef: attempt.remoteRef ?? record.result?.remoteRef ?? undefined,
    firstDispatchedAt: at(record.firstDispatchedAt),
    lastDispatchedAt: at(record.lastDispatchedAt),
    attempts: record.attempts,
    signal: attempt.stop.signal,
  };
  try {
    const args = isSameVersion ? chooseArgs(attempt, inDoubt) : attempt.call.args;
    const answer = await attempt.race<Verification | undefined>(
      unlessStopped(context.signal, tool.verify?.(args as never, context)),
      ({ message }) => ({ verdict: 'unsure', because: message }),
    );
    if (!isVerification(answer)) return noAnswer;
    // Another version sent it, perhaps in a form that this code does not find.
    return isSameVersion || answer.verdict !== 'notLanded'
      ? answer
      : { verdict: 'unsure', because: describeOtherVersion(inDoubt.version, tool.contract.version) };
  } catch (error) {
    return { verdict: 'unsure', because: describeThrown(error) };
  }
}

/** An attempt that has to stop does not wait for a `verify` that ignores its signal: nothing depends on how it ends. */
function unlessStopped<Answer>(signal: AbortSignal, answer: Answer | Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop);
    Promise.resolve(answer)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', stop));
  });
}

function describeOtherVersion(sentBy: string, ownVersion: string): string {
  return `it says "not landed", but version ${sentBy} sent it, and this is version ${ownVersion}`;
}

/** `verify` looks for what was sent, so it gets the args of that attempt, not those of the present call. */
function chooseArgs({ args, call }: Attempt, inDoubt: StoredRecord | undefined): unknown {
  const stored = call.tool.contract.redact.length === 0 ? inDoubt?.args : undefined;
  return stored == null ? args : decodeResult(stored);
}

/** Anything but the three answers decides nothing: `true` may mean either. */
const noAnswer: Verification = {
  verdict: 'unsure',
  because: 'it answered none of landed(), notLanded() or unsure()',
};

function isVerification(answer: unknown): answer is Verification {
  const verdict = (answer as Partial<Verification> | null | undefined)?.verdict;
  return verdict === 'landed' || verdict === 'notLanded' || verdict === 'unsure';
}
