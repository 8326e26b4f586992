// Asks the tool's own `verify` about a record in doubt, under a claim.

import { decodeResult } from '../core/codec/codec.ts';
import { describeThrown } from '../core/contract/classify.ts';
import { isSameProvider, recordVersion, shownVersion } from '../core/contract/version.ts';
import type { Verification, VerifyContext } from '../core/verification.ts';
import type { StoredRecord } from '../store/store.ts';
import { type Attempt, maxRefLength } from './attempt.ts';
import { isSameCode } from './doubt.ts';

/** Asks the tool whether it landed. A throw or no answer in time decides nothing. */
export async function verify(
  attempt: Attempt,
  inDoubt: StoredRecord | undefined,
  remoteRef: string | undefined,
): Promise<Verification> {
  return shorten(await ask(attempt, inDoubt, remoteRef));
}

/** Texts and ids come from a service and have no maximum length. People and models read the texts, and records store the ids. */
function shorten(answer: Verification): Verification {
  if (answer.verdict === 'unsure' && answer.because != null)
    return { ...answer, because: String(answer.because).slice(0, maxReasonLength) };
  if (answer.verdict === 'landed' && answer.remoteRef != null)
    return { ...answer, remoteRef: String(answer.remoteRef).slice(0, maxRefLength) };
  return answer;
}

const maxReasonLength = 1_000;

async function ask(
  attempt: Attempt,
  inDoubt: StoredRecord | undefined,
  remoteRef: string | undefined,
): Promise<Verification> {
  const { tool } = attempt.call;
  const { record } = attempt;
  const isSameVersion = inDoubt === undefined || isSameCode(attempt.call, inDoubt);
  const { ctx } = attempt.context();
  const at = (instant: number | null) => (instant === null ? undefined : new Date(instant));
  const context: VerifyContext = {
    key: ctx.key,
    keyFor: ctx.keyFor,
    mark: ctx.mark,
    remoteRef,
    firstDispatchedAt: at(findFirstDispatch(record)),
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
    if (answer.verdict === 'notLanded' && tool.contract.via === 'steps') return partsDecide;
    // Another version sent it, perhaps in a form or to a service where this code does not find it.
    return isSameVersion || answer.verdict !== 'notLanded'
      ? answer
      : { verdict: 'unsure', because: describeOtherVersion(inDoubt.version, recordVersion(tool.contract)) };
  } catch (error) {
    return { verdict: 'unsure', because: describeThrown(error) };
  }
}

/**
 * Nothing in doubt was dispatched earlier. If a person let it run again, the provider's window has restarted since, and the
 * record only knows that its first attempt was not made before it was created.
 */
function findFirstDispatch({ firstDispatchedAt, createdAt, doubtFence }: StoredRecord): number | null {
  const earliestAt = doubtFence === null ? Number.POSITIVE_INFINITY : createdAt;
  return firstDispatchedAt === null ? null : Math.min(firstDispatchedAt, earliestAt);
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

/** "Not landed" would let the record be forgotten, and with it which of the steps it made. */
const partsDecide: Verification = {
  verdict: 'unsure',
  because: 'it says "not landed", but only the records of the steps say which of them did not',
};

function describeOtherVersion(sentBy: string, ownVersion: string): string {
  if (!isSameProvider(sentBy, ownVersion))
    return 'it says "not landed", but it was sent under the contract\'s earlier `provider`, and may have landed there';
  return `it says "not landed", but version ${shownVersion(sentBy)} sent it, and this is version ${shownVersion(ownVersion)}`;
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
