// Settles an attempt and answers its caller. The record decides the answer: a definite ending may meet a record that is in
// doubt.

import { encodeResult } from '../core/codec/codec.ts';
import { listCauses, listErrorCodes, makeReadable } from '../core/contract/classify.ts';
import { isRepeatable } from '../core/contract/words.ts';
import { type ErrorCode, isSemelError, SemelError } from '../core/errors.ts';
import { findDrift, isSameContent } from '../core/key/identity.ts';
import { PartialSuccess } from '../core/signals.ts';
import { sleep } from '../ledger/index.ts';
import { unconfirmed } from '../rules/endings.ts';
import type {
  Held,
  RecordError,
  SettleAnswer,
  SettleRequest,
  StoredRecord,
  StoredResult,
} from '../store/store.ts';
import type { Attempt } from './attempt.ts';
import type { Call, Tool } from './call.ts';
import type { Report } from './detached.ts';
import type { Env } from './env.ts';
import { refuseInDoubt, withoutMeaning } from './in-doubt-error.ts';
import {
  collectEvidence,
  createReceipt,
  errorFromRecord,
  type Receipt,
  type Result,
  refuse,
} from './receipt.ts';
import { takenOverError } from './refusals.ts';
import { replay } from './replay.ts';
import { readDelayMs, type Try } from './run-tool.ts';

/** `known`: the store's answer, if it has been asked already. */
export function settleAttempt(
  env: Env,
  attempt: Attempt,
  ended: Try,
  known?: SettleAnswer | undefined,
): Promise<Result> {
  const result = settle(env, attempt, ended, known);
  ended.onSettled?.(result);
  return result;
}

async function settle(
  env: Env,
  attempt: Attempt,
  given: Try,
  known: SettleAnswer | undefined,
): Promise<Result> {
  const ended = joinSteps(attempt, given);
  const { ending, thrown, verified } = ended;
  const { call } = attempt;
  const request = createSettleRequest(env, attempt, ended);
  warnOfOmitted(env, call.tool, request);
  let answer = known;
  try {
    answer ??= await env.ledger.settle(request);
  } catch {
    // The ledger gave up: settling goes on in the background for as long as the process lives.
    settleInBackground(env, request);
  }
  const executed = verified === undefined && ending.outcome !== 'released';
  const more: Partial<Receipt> = {
    executed,
    replayed: verified === true && ending.outcome === 'succeeded',
    drift: findDrift(attempt.record.content, call.content()),
    acceptedRepeat:
      executed &&
      attempt.record.doubtFence !== null &&
      !attempt.record.keyed &&
      !isRepeatable(attempt.record.effect),
  };

  // The record was deleted meanwhile and stored nothing: an equal call would run again.
  const isLost = answer?.record === undefined && ending.outcome === 'succeeded';
  if (answer === undefined || isLost) return refuseUnrecorded(attempt, { ending, thrown }, more);
  const own = keepSameGeneration(answer.record, attempt);
  const record = answer.fenced && isOtherWrite(attempt, own) ? undefined : own;
  if (ending.outcome === 'succeeded') {
    if (answer.fenced && record?.status === 'succeeded' && !answer.settled && hasValue(call, record))
      return replay(call, record, asReplay(more));
    // The receipt describes this attempt, even if another one holds the key: replays return its value only if it was stored.
    const settledAt = (answer.settled && record?.settledAt) || null;
    const shown = answer.fenced ? { ...attempt.record, settledAt } : (record ?? attempt.record);
    const { result } = request;
    const remoteRef = result?.remoteRef ?? undefined;
    const omitted = result?.omitted ?? undefined;
    const receipt = createReceipt(call, shown, { ...more, remoteRef, omitted });
    return { ok: true, value: ending.value, receipt };
  }
  // Its own claim is settled by the success of another attempt, which a write that always runs does not replace.
  const isOthers = record?.status === 'succeeded' && isRepeatable(call.tool.contract.effect);
  if (record?.status === 'succeeded' && !isOthers) return replay(call, record, asReplay(more));
  if (answer.fenced || record === undefined)
    return refuse(call, record ?? attempt.record, takenOverError(call, thrown), more);
  return answerFromRecord(env, call, isOthers ? asOwnEnding(attempt, request) : record, ended, more);
}

/**
 * The success of a plain attempt, by what its ticket says: its record is not read before. Without a result, only the record can tell
 * what the answer means.
 */
export async function settlePlainly(
  env: Env,
  tool: Tool,
  held: Held,
  { value, omitted, remoteRef }: Pick<Report, 'value' | 'omitted' | 'remoteRef'>,
): Promise<{ readonly answer: SettleAnswer; readonly result: Result | undefined }> {
  const stored = toStoredResult(value, remoteRef, tool.contract.result, env.maxResultBytes);
  const request: SettleRequest = {
    ...held,
    outcome: 'succeeded',
    result: omitted === undefined ? stored : { ...stored, text: null, omitted },
    error: null,
    keyed: false,
    found: false,
    keepNote: true,
  };
  warnOfOmitted(env, tool, request);
  const answer = await env.ledger.settle(request).catch((error) => {
    // Its executor may not report again.
    settleInBackground(env, request);
    throw error;
  });
  const { settled, fenced, record } = answer;
  if (!settled || fenced || record?.generation !== held.generation) return { answer, result: undefined };
  const receipt = createReceipt({ tool, ...held, identity: {} }, record, {
    executed: true,
    drift: findDrift(record.content, record.content),
    omitted: request.result?.omitted ?? undefined,
  });
  return { answer, result: { ok: true, value, receipt } };
}

/** What is said of the whole cannot undo a step: a record that counts as not landed is forgotten, and with it which steps it made. */
function joinSteps(attempt: Attempt, ended: Try): Try {
  const { outcome } = ended.ending;
  if ((outcome !== 'released' && outcome !== 'failed') || !attempt.hasOpenStep) return ended;
  return { ...ended, ending: { outcome: 'unknown', because: 'a step of it landed, or may have' } };
}

/** The record's value comes from another attempt. */
function asReplay(more: Partial<Receipt>): Partial<Receipt> {
  return { ...more, replayed: more.executed !== true };
}

/** Without a stored value, the caller keeps the value that its own attempt returned. */
function hasValue({ tool }: Call, { result }: StoredRecord): boolean {
  return result?.text != null || tool.onReplay !== undefined;
}

/** A later generation's record says nothing about this attempt, and its value is not this call's. */
function keepSameGeneration(record: StoredRecord | undefined, { held }: Attempt): StoredRecord | undefined {
  return record?.generation === held.generation ? record : undefined;
}

/** A repeatable write with other content took the record over: it did not do what this call asked for. */
function isOtherWrite({ call, record }: Attempt, now: StoredRecord | undefined): boolean {
  const isWrite = isRepeatable(record.effect) || isRepeatable(call.tool.contract.effect);
  return now !== undefined && isWrite && !isSameContent(now.content, call.content());
}

/** The record as it would be if nobody else had settled it. */
function asOwnEnding({ call, record }: Attempt, { error }: SettleRequest): StoredRecord {
  return { ...record, status: 'released', effect: call.tool.contract.effect, error };
}

/** The answer for an attempt that did not succeed. */
function answerFromRecord(
  { clock }: Env,
  call: Call,
  record: StoredRecord,
  ended: Try,
  more: Partial<Receipt>,
): Result {
  const { ending, thrown, verdict } = ended;
  if (record.status === 'unknown') {
    const lacksWord = 'lacksWord' in ending;
    const doubt = refuseInDoubt(call, record, { cause: thrown, because: verdict, lacksWord });
    return { ...doubt, receipt: { ...doubt.receipt, ...more } };
  }
  const retryAfterMs = record.status === 'released' ? readDelayMs(ended, clock) : undefined;
  return refuse(call, record, errorFromRecord(record, thrown, retryAfterMs), more);
}

/** The ledger could not store the ending: never acknowledged, never repeated, settled as soon as possible. */
function refuseUnrecorded(attempt: Attempt, { ending, thrown }: Try, more: Partial<Receipt>): Result {
  const { call, record } = attempt;
  const name = call.tool.contract.name;
  const error =
    ending.outcome === 'succeeded'
      ? new SemelError('UNRECORDED', `${name} is done, but the store did not take the record.`, {
          value: ending.value,
        })
      : new SemelError(
          'STORE_UNAVAILABLE',
          `${name} ended (${describeError(thrown)}), and the store did not take the record.`,
          {
            cause: thrown,
            next: 'The effect ran and may have landed. semel records it when the store answers; call again then.',
            evidence: { ...collectEvidence(record), executed: more.executed === true },
          },
        );
  return refuse(call, record, error, more);
}

function createSettleRequest(
  { maxResultBytes }: Env,
  attempt: Attempt,
  { ending, thrown, verified, late }: Try,
): SettleRequest {
  const { contract } = attempt.call.tool;
  const keyed = contract.rerunWithinMs !== null && attempt.record.keyed;
  const remoteRef = attempt.refAfter(ending.outcome);
  if (ending.outcome !== 'succeeded') {
    return {
      ...attempt.held,
      outcome: ending.outcome,
      // What an attempt that did not land has noted must not stay either.
      result: remoteRef !== undefined || attempt.hasNoted ? unconfirmed(remoteRef ?? null) : null,
      error: toRecordError(ending.outcome, thrown),
      keyed,
      found: verified === true,
      ...(late && { late }),
    };
  }
  // Under the same key, earlier attempts had the same effect.
  const ref = keyed ? remoteRef : attempt.remoteRef;
  const stored = toStoredResult(ending.value, ref, contract.result, maxResultBytes);
  return {
    ...attempt.held,
    outcome: 'succeeded',
    result: ending.omitted === undefined ? stored : { ...stored, text: null, omitted: ending.omitted },
    error: null,
    keyed,
    found: verified === true || ending.found === true,
  };
}

/** The caller gets the value now, but a retry would get an error instead. */
function warnOfOmitted({ warn }: Env, tool: Tool, { outcome, result }: SettleRequest): void {
  const { name, result: keep, windowMs } = tool.contract;
  if (outcome !== 'succeeded' || result?.omitted == null || keep === 'reference') return;
  if (tool.onReplay !== undefined || windowMs === 0) return;
  warn(
    `${name}: its value is not stored (${result.omitted}). A retry does not run it again and gets RESULT_OMITTED instead of the value. Return plain data, or say \`result: 'reference'\`, or give the tool an \`onReplay\`.`,
  );
}

export function toStoredResult(
  value: unknown,
  remoteRef: string | undefined,
  keep: 'value' | 'reference',
  maxBytes: number,
): StoredResult {
  const reference = remoteRef ?? null;
  if (keep === 'reference')
    return { text: null, omitted: 'only the reference is kept', remoteRef: reference };
  const encoded = encodeResult(value, { maxBytes });
  if (encoded.ok) return { text: encoded.text, omitted: null, remoteRef: reference };
  return { text: null, omitted: encoded.detail, remoteRef: reference };
}

/** Null if nothing was thrown: then the record keeps its error. */
function toRecordError(outcome: 'failed' | 'released' | 'unknown', thrown: unknown): RecordError | null {
  if (thrown === undefined) return null;
  const fallback: Record<typeof outcome, ErrorCode> = {
    failed: 'FAILED',
    released: 'NOT_LANDED',
    unknown: 'IN_DOUBT',
  };
  // An error with a receipt comes from another call, made inside this one.
  const isOwn = isSemelError(thrown) && thrown.receipt === undefined;
  const code = thrown instanceof PartialSuccess ? 'PARTIAL_SUCCESS' : isOwn ? thrown.code : fallback[outcome];
  const next = thrown instanceof PartialSuccess ? thrown.next : undefined;
  return {
    code,
    message: describeError(thrown),
    retriable: outcome === 'released',
    ...(typeof next === 'string' ? { next: toLine(next) } : {}),
  };
}

const maxMessageLength = 500;

/** Stored text is shown to people: it must not steer a terminal or forge a log line. */
const controlCharacters = /\p{Cc}+/gu;

/** One line, short, with the error's own code in front. */
export function describeError(error: unknown): string {
  const thrown = makeReadable(error);
  const text = readMessage(thrown);
  const code = isSemelError(thrown) ? undefined : listErrorCodes(thrown)[0];
  return toLine(code !== undefined && !text.startsWith(code) ? `${code}: ${text}` : text);
}

function toLine(text: string): string {
  const line = text.replace(controlCharacters, ' ').trim();
  return line.length > maxMessageLength ? `${line.slice(0, maxMessageLength)}…` : line;
}

/** Anything can be thrown, and nothing of it may keep an attempt from being settled. */
function readMessage(thrown: unknown): string {
  // Without the advice, which is for the caller of this error and not for readers of the record.
  if (isSemelError(thrown)) return withoutMeaning(thrown.happened);
  if (thrown instanceof Error) {
    const own = thrown.message || thrown.name;
    const reason = listCauses(thrown).at(-1)?.message ?? '';
    return reason === '' || own.includes(reason) ? own : `${own} (${reason})`;
  }
  if (typeof thrown !== 'object' || thrown === null) return String(thrown);
  // Only these fields: the rest of a thrown object may hold a request with its secrets.
  const { message, code, status } = thrown as Record<string, unknown>;
  const parts = [code, status, message].filter(
    (part) => typeof part === 'string' || typeof part === 'number',
  );
  return parts.length === 0 ? 'an object was thrown that has no message' : parts.join(': ');
}

/** An executor elsewhere reports again and again until its report is taken, and each may have a megabyte. */
function settleInBackground(env: Env, request: SettleRequest): void {
  env.onceInBackground(`${request.token} ${request.outcome}`, () => settleLater(env, request));
}

/** Retries for as long as the process lives, and a last time when it closes. */
export async function settleLater(
  { ledger, clock, closing }: Env,
  request: SettleRequest,
): Promise<SettleAnswer | undefined> {
  for (let waitMs = 250; ; waitMs = Math.min(waitMs * 2, 30_000)) {
    // Does not keep the process alive: if it exits, the lease runs out and the next caller decides.
    await sleep(clock, waitMs, [closing], 'background');
    try {
      return await ledger.settle(request);
    } catch (error) {
      const isRetriable = isSemelError(error) && error.retriable;
      if (closing.aborted || !isRetriable) return undefined;
    }
  }
}
