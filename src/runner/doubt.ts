// What may be done about a record in doubt, without a person: run it again where class, provider or contract
// make that no blind repetition; else ask `verify`; else hold it and say so.

import { wordsOf } from '../core/classify.ts';
import { decodeResult } from '../core/codec.ts';
import { majorOf } from '../core/contract.ts';
import { isRepeatable, stricter } from '../core/words.ts';
import type { ClaimFor, StoredRecord } from '../store/store.ts';
import type { Attempt } from './attempt.ts';
import type { Call, VerifyContext } from './call.ts';
import type { Verification } from './verification.ts';

/** The ways out, in the order in which they are tried. */
export function waysOut(call: Call, record: StoredRecord): readonly ClaimFor[] {
  const ways: ClaimFor[] = [];
  if (!call.asksOnly && mayRerun(call, record)) ways.push('rerun');
  if (call.tool.verify !== undefined) ways.push('verify');
  return ways;
}

function mayRerun(call: Call, record: StoredRecord): boolean {
  const { contract } = call.tool;
  if (mayAlwaysRerun(call, record)) return true;
  // What the provider may have seen must be sent again as it was: not without its args, nor by other code.
  const canRepeatExactly = record.args !== null && contract.redact.length === 0 && isSameCode(call, record);
  return contract.rerunWithinMs !== null && record.keyed && canRepeatExactly;
}

/** Code of another major version may not understand the args that were stored. */
export function isSameCode({ tool }: Pick<Call, 'tool'>, record: StoredRecord): boolean {
  return majorOf(record.version) === majorOf(tool.contract.version);
}

/** How long after the first dispatch a re-run counts; null where it may always be done. */
export function rerunWithin(call: Call, record: StoredRecord): number | null {
  return mayAlwaysRerun(call, record) ? null : call.tool.contract.rerunWithinMs;
}

/** Whether one request may be sent once more inside an attempt: never where a re-run would have to be refused. */
export function mayRepeat(call: Call, record: StoredRecord): boolean {
  return mayAlwaysRerun(call, record) || (call.tool.contract.rerunWithinMs !== null && record.keyed);
}

function mayAlwaysRerun({ tool: { contract } }: Call, record: StoredRecord): boolean {
  return isRepeatable(stricter(contract.effect, record.effect)) || contract.onDoubt === 'rerun';
}

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
    signal: attempt.stop.signal(),
  };
  try {
    const asked = isOwn ? argsInDoubt(attempt, inDoubt) : attempt.call.args;
    const answer = tool.verify?.(asked as never, context);
    const verification = await Promise.race([
      answer,
      attempt.over.then(({ reason }) => ({ verdict: 'unsure' as const, because: reason.message })),
    ]);
    if (!isVerification(verification)) return noAnswer;
    // It was sent in words that this code may not understand: where it finds nothing, it may have looked for something else.
    return isOwn || verification.verdict !== 'notLanded'
      ? verification
      : { verdict: 'unsure', because: otherCode(inDoubt.version, tool.contract.version) };
  } catch (error) {
    return { verdict: 'unsure', because: wordsOf(error) };
  }
}

function otherCode(sentBy: string, askedIn: string): string {
  return `it says "not landed", but version ${sentBy} sent it, and this is version ${askedIn}`;
}

/** What was sent is looked for in its own words, not in those of whoever asks. */
function argsInDoubt({ args, call }: Attempt, inDoubt: StoredRecord | undefined): unknown {
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
