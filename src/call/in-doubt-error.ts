// IN_DOUBT and PARTIAL_SUCCESS: what was thrown, what that means, the command that decides it, and the line of the contract that
// would have. What a call inside this one threw has its own record and its own advice, which comes first.

import { listCauses, mayHaveArrived } from '../core/contract/classify.ts';
import { isSemelError, SemelError } from '../core/errors.ts';
import { PartialSuccess } from '../core/signals.ts';
import { reportedError } from '../rules/state.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Call } from './call.ts';
import { isSameCode, listWaysOut, rerunWithin } from './doubt.ts';
import { collectEvidence, formatRef, type Result, refuse } from './receipt.ts';

interface Known {
  /** What `run` threw in this call. */
  readonly cause?: unknown;
  /** What `verify` said. */
  readonly because?: string | undefined;
  readonly lacksWord?: boolean;
}

const mayHaveLanded = 'It may have landed, so nothing was done again.';

export function refuseInDoubt(call: Call, record: StoredRecord, known: Known = {}): Result {
  const { contract } = call.tool;
  const reported = reportedError(record);
  const thrown = reported?.message ?? 'the process that ran it exited without reporting a result';
  const isPartial = reported?.code === 'PARTIAL_SUCCESS';
  const code = isPartial ? 'PARTIAL_SUCCESS' : 'IN_DOUBT';
  // The steps say exactly what landed.
  const isExact = isPartial && contract.via === 'steps';
  const meaning = isPartial ? 'Only part of it landed, so nothing was done again.' : mayHaveLanded;
  const happened = [
    `${contract.name}: ${thrown.replace(/\.$/, '')}.`,
    ...(isExact ? [] : [meaning]),
    ...(known.because === undefined ? [] : [`\`verify\` could not tell: ${known.because}.`]),
  ].join(' ');
  const { next, ...retry } = advise(call, record, known, isPartial);
  const error = new SemelError(code, happened, {
    next: `${next} More: npx semel explain ${code}.`,
    evidence: {
      ...collectEvidence(record),
      ...(wasSentUnkeyed(call, record) ? { withoutKey: true } : {}),
      ...(reported?.next === undefined ? {} : { next: reported.next }),
    },
    ...retry,
    ...(known.cause === undefined ? {} : { cause: known.cause }),
    ...(known.cause instanceof PartialSuccess ? { value: known.cause.landed } : {}),
  });
  return refuse(call, record, error);
}

/** For a record, without what only the caller of a failed call needs: its own meaning, and its advice. */
export function withoutMeaning(happened: string): string {
  return happened.replaceAll(` ${mayHaveLanded}`, '').replace(/\.$/, '');
}

interface Advice {
  readonly next: string;
  readonly retriable?: boolean;
  readonly retryAfterMs?: number;
}

function advise(call: Call, record: StoredRecord, known: Known, isPartial: boolean): Advice {
  const { first, sentence, ...retry } = adviseDecision(call, record, known, isPartial);
  const inner = isPartial ? undefined : innerError(known.cause);
  if (inner === undefined) {
    const look = isPartial
      ? `o the rest by hand, then ${describeResolve(call, record, 'landed')}.`
      : `heck whether it landed, then ${describeResolve(call, record)}.`;
    const letter = isPartial ? 'd' : 'c';
    const start = first === undefined ? `${letter.toUpperCase()}${look}` : `${first} Or ${letter}${look}`;
    return { next: `${start}${sentence}`, ...retry };
  }
  const advice = inner.correctiveAction.replace(/ More: npx semel explain \w+\.$/, '');
  const own = describeResolve(call, record);
  if (inner.code !== 'IN_DOUBT' && inner.code !== 'PARTIAL_SUCCESS')
    return { next: `${advice} Then check whether ${record.contract} landed, and ${own}.`, ...retry };
  const { contract = 'it' } = inner.receipt ?? {};
  const decide = `Decide ${contract} first: ${advice.charAt(0).toLowerCase()}${advice.slice(1)}`;
  // Its steps are all that it does: a call again gets past the one that is decided.
  if (call.tool.contract.via === 'steps' && first !== undefined) {
    const { retriable, retryAfterMs } = inner;
    const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
    return { next: `${decide} Then call again: the steps that landed are not repeated.`, retriable, ...wait };
  }
  return { next: `${decide} Then ${record.contract}: ${own}.`, ...retry };
}

/** An error of semel that `run` threw: from a step, another tool, or a misuse. */
function innerError(cause: unknown): SemelError | undefined {
  return listCauses(cause).find((each) => isSemelError(each));
}

/** `fetch` throws a TypeError too, but with a cause. */
function isPlainBug(thrown: unknown): boolean {
  return (thrown instanceof TypeError || thrown instanceof ReferenceError) && thrown.cause === undefined;
}

function describeResolve(call: Call, record: StoredRecord, verdict = 'landed/not-landed'): string {
  const address = call.address();
  const early = verdict !== 'landed' && Number.isFinite(record.inFlightMs) && record.inFlightMs > 0;
  const when = early
    ? ` ("not landed" only in ${Math.ceil(record.inFlightMs / 1000)} s: a request may be on its way)`
    : '';
  return address === undefined
    ? `call semel.doubts.resolve('${formatRef(record)}', …)${when}`
    : `run: npx semel resolve ${formatRef(record)} ${verdict} ${address}${when}`;
}

/** What decides the doubt without a person, and when; or which line of the contract would have. */
function adviseDecision(
  call: Call,
  record: StoredRecord,
  known: Known,
  isPartial: boolean,
): { first?: string; sentence: string; retriable?: true; retryAfterMs?: number } {
  const ways = listWaysOut(call, record);
  if (ways.includes('rerun') && isInTime(call, record)) {
    const first = record.keyed
      ? call.tool.contract.via === 'steps'
        ? 'Call again: the steps that landed are not repeated, and it continues after them.'
        : 'Call again: the provider gets the same key, so it lands once.'
      : 'Call again: a repeat is harmless, or accepted.';
    return { first, sentence: '', retriable: true };
  }
  if (ways.includes('verify')) {
    const { inFlightMs } = record;
    if (inFlightMs === 0)
      return { sentence: ' Or call again: semel then asks `verify`, which can decide now.', retriable: true };
    if (!Number.isFinite(inFlightMs)) return { sentence: clockHint, retriable: true };
    const seconds = Math.ceil(inFlightMs / 1000);
    const sentence = ` Or call again: \`verify\` can say "landed" at once, and "not landed" in ${seconds} s.`;
    return { sentence, retriable: true, retryAfterMs: inFlightMs };
  }
  if (wasSentUnkeyed(call, record))
    return {
      sentence: ` ${unkeyedHint} Send \`ctx.key\`, or describe the SDK's keys in \`provider.sdkKey\`.`,
    };
  if (isPartial && call.tool.contract.via === 'steps')
    return {
      sentence: isSameCode(call, record)
        ? ' Its args were not stored: called again with the same ones, it goes on after the steps that landed.'
        : ' Code of another major version does not go on with it.',
    };
  if (isPartial) return { sentence: " With via: 'steps' in its contract, a call again does the rest." };
  return { sentence: ` ${adviseContract(call.tool, record, known)}` };
}

/** The one line that would have decided it, of those that this caller can write. */
function adviseContract(
  { contract, isOneLiner, classify }: Call['tool'],
  record: StoredRecord,
  { cause, lacksWord = false }: Known,
): string {
  const where = isOneLiner ? 'its options' : 'its contract';
  if (lacksWord)
    return "Its request was refused or never sent: if it makes one request and nothing else, add classify: oneRequest; if all its effects go through `ctx.fetch`, add via: 'fetch'.";
  if (isPlainBug(cause))
    return `If it was thrown before anything was sent: throw NotLanded there${isOneLiner ? '' : ", or use dispatch: 'explicit'"}.`;
  const message = record.error?.message ?? '';
  if (classify === undefined && contract.via === undefined && /\b4\d\d\b/.test(message))
    return 'If it makes one request and nothing else, add classify: oneRequest: it knows a refusal by the status.';
  const errorCode = /^([A-Z][A-Z0-9_]{2,}):/.exec(message)?.[1];
  if (errorCode !== undefined && !mayHaveArrived(errorCode))
    return `If ${errorCode} always means that nothing was sent, add: classify: { ${errorCode}: 'notLanded' }.`;
  return contract.provider === undefined
    ? `With \`verify\` or \`provider\` in ${where}, semel decides this without a person.`
    : `With \`verify\` in ${where}, semel decides this without a person.`;
}

const unkeyedHint =
  "What was sent may be without semel's key, so the provider may not know a second request.";

/** The contract trusts its provider's key, and something was sent without it. */
function wasSentUnkeyed({ tool: { contract } }: Call, record: StoredRecord): boolean {
  return contract.rerunWithinMs !== null && !record.keyed;
}

const clockHint =
  ' Or call again: semel then asks `verify`. Its "not landed" does not count while the clock is wrong.';

/** Within the provider's window for the key. */
function isInTime(call: Call, record: StoredRecord): boolean {
  const { firstDispatchedAt, readAt } = record;
  const withinMs = rerunWithin(call, record);
  return (
    withinMs === null || firstDispatchedAt === null || (readAt > 0 && readAt < firstDispatchedAt + withinMs)
  );
}
