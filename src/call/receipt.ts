// Creates receipts, and the errors that a record answers with.

import { mayHaveArrived } from '../core/contract/classify.ts';
import type { Contract } from '../core/contract/contract.ts';
import { isRepeatable } from '../core/contract/words.ts';
import { type ErrorCode, errorCodes, SemelError } from '../core/errors.ts';
import { recordId } from '../core/key/key.ts';
import type { Receipt } from '../core/receipt.ts';
import { PartialSuccess } from '../core/signals.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Call } from './call.ts';
import { listWaysOut, rerunWithin } from './doubt.ts';

export type { Receipt };

export type Result<Value = unknown> =
  | { readonly ok: true; readonly value: Value; readonly receipt: Receipt }
  | { readonly ok: false; readonly error: SemelError; readonly receipt: Receipt };

export function createReceipt(
  call: Pick<Call, 'namespace' | 'key' | 'identity'> & { tool: { contract: Pick<Contract, 'name'> } },
  record: StoredRecord | undefined,
  more: Partial<Receipt> = {},
): Receipt {
  const key = record?.key ?? call.key;
  return {
    contract: call.tool.contract.name,
    key,
    id: recordId(call.namespace, key),
    fence: record?.fence ?? 0,
    generation: record?.generation ?? 0,
    attempt: record?.attempts ?? 0,
    executed: more.executed ?? false,
    replayed: more.replayed ?? false,
    skipped: more.skipped ?? false,
    settledAt: record?.settledAt == null ? undefined : new Date(record.settledAt),
    drift: more.drift ?? [],
    remoteRef: more.remoteRef ?? record?.result?.remoteRef ?? undefined,
    omitted: more.omitted ?? record?.result?.omitted ?? undefined,
    unguarded: more.unguarded ?? false,
    acceptedRepeat: more.acceptedRepeat ?? false,
    weak: call.identity.weak === true,
    observed: more.observed,
  };
}

/** For a call that was refused before it had a key. */
export function emptyReceipt(name: string): Receipt {
  const call = { tool: { contract: { name } }, namespace: '', key: '', identity: {} };
  return { ...createReceipt(call, undefined), id: '' };
}

export function refuse(
  call: Call,
  record: StoredRecord | undefined,
  error: SemelError,
  more: Partial<Receipt> = {},
): Result {
  return { ok: false, error, receipt: createReceipt(call, record, more) };
}

/**
 * The state that a verdict is about: `<id>@<fence>`, and for a running attempt also when it last dispatched. It may dispatch
 * again and end under the same fence, and what was seen before says nothing about what it has sent since.
 */
export function formatRef(record: StoredRecord): string {
  const ref = `${recordId(record.namespace, record.key)}@${record.fence}`;
  return record.status === 'running'
    ? `${ref}.${(record.lastDispatchedAt ?? 0).toString(36).slice(-6)}`
    : ref;
}

/** What is known about a record, as plain data for people and models. */
export function collectEvidence(record: StoredRecord): Record<string, unknown> {
  const at = (instant: number | null) => (instant === null ? undefined : new Date(instant).toISOString());
  const evidence = {
    record: formatRef(record),
    key: record.key,
    attempts: record.attempts,
    owner: record.owner,
    firstDispatchedAt: at(record.firstDispatchedAt),
    lastDispatchedAt: at(record.lastDispatchedAt),
    error: record.error?.message,
    remoteRef: record.result?.remoteRef ?? undefined,
  };
  return Object.fromEntries(Object.entries(evidence).filter(([, value]) => value !== undefined));
}

/** IN_DOUBT: what was thrown, what that means, the command that decides it, and the line that would have. */
export function refuseInDoubt(
  call: Call,
  record: StoredRecord,
  more: { cause?: unknown; because?: string | undefined; lacksWord?: boolean } = {},
): Result {
  const { contract } = call.tool;
  const thrown = record.error?.message ?? 'the process that ran it exited without reporting a result';
  const code: ErrorCode = record.error?.code === 'PARTIAL_SUCCESS' ? 'PARTIAL_SUCCESS' : 'IN_DOUBT';
  const { first: callAgain, sentence, ...retry } = adviseDecision(call, record, more);
  const look = `heck whether it landed, then ${describeResolve(call, record)}.`;
  const next = `${callAgain === undefined ? `C${look}` : `${callAgain} Or c${look}`}${sentence} More: npx semel explain ${code}.`;
  return refuse(
    call,
    record,
    new SemelError(
      code,
      `${contract.name}: ${thrown.replace(/\.$/, '')}. It may have landed, so nothing was done again.${more.because === undefined ? '' : ` \`verify\` could not tell: ${more.because}.`}`,
      {
        next,
        evidence: {
          ...collectEvidence(record),
          ...(wasSentUnkeyed(call, record) ? { withoutKey: true } : {}),
        },
        ...retry,
        ...(more.cause === undefined ? {} : { cause: more.cause }),
        ...(more.cause instanceof PartialSuccess ? { value: more.cause.landed } : {}),
      },
    ),
  );
}

/** `fetch` throws a TypeError too, but with a cause. */
function isPlainBug(thrown: unknown): boolean {
  return (thrown instanceof TypeError || thrown instanceof ReferenceError) && thrown.cause === undefined;
}

function describeResolve(call: Call, record: StoredRecord): string {
  const address = call.address();
  const early = Number.isFinite(record.inFlightMs) && record.inFlightMs > 0;
  const when = early
    ? ` ("not landed" only in ${Math.ceil(record.inFlightMs / 1000)} s: a request may be on its way)`
    : '';
  return address === undefined
    ? `call semel.doubts.resolve('${formatRef(record)}', …)${when}`
    : `run: semel resolve ${formatRef(record)} landed/not-landed ${address}${when}`;
}

/** What decides the doubt without a person, and when; or which line of the contract would have. */
function adviseDecision(
  call: Call,
  record: StoredRecord,
  more: { readonly cause?: unknown; readonly lacksWord?: boolean },
): { first?: string; sentence: string; retriable?: true; retryAfterMs?: number } {
  const ways = listWaysOut(call, record);
  if (ways.includes('rerun') && isInTime(call, record)) {
    const first = record.keyed
      ? 'Call again: the provider gets the same key, so it lands once.'
      : 'Call again: a repetition is harmless, or accepted.';
    return { first, sentence: '', retriable: true };
  }
  if (ways.includes('verify')) {
    const { inFlightMs } = record;
    if (inFlightMs === 0)
      return { sentence: ' Or call again: `verify` is asked, and can decide now.', retriable: true };
    if (!Number.isFinite(inFlightMs)) return { sentence: clockHint, retriable: true };
    const seconds = Math.ceil(inFlightMs / 1000);
    const sentence = ` Or call again: \`verify\` is asked, and in ${seconds} s at the latest it can decide.`;
    return { sentence, retriable: true, retryAfterMs: inFlightMs };
  }
  if (wasSentUnkeyed(call, record))
    return {
      sentence: ` ${unkeyedHint} Send \`ctx.key\`, or describe the SDK's keys in \`provider.sdkKey\`.`,
    };
  return { sentence: ` ${adviseContract(call.tool, record, more)}` };
}

/** The one line that would have decided it, of those that this caller can write. */
function adviseContract(
  { contract, isOneLiner, classify }: Call['tool'],
  record: StoredRecord,
  { cause, lacksWord = false }: { readonly cause?: unknown; readonly lacksWord?: boolean },
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
    ? `With \`verify\` or \`provider\` in ${where} it decides this without a person.`
    : `With \`verify\` in ${where} it decides this without a person.`;
}

const unkeyedHint = "A request went out without semel's key, so the provider may not know a second one.";

/** The contract trusts its provider's key, and something was sent without it. */
function wasSentUnkeyed({ tool: { contract } }: Call, record: StoredRecord): boolean {
  return contract.rerunWithinMs !== null && !record.keyed;
}

const clockHint =
  ' Or call again: `verify` is asked; "not landed" is not believed from it, because of the clock.';

/** Within the provider's window for the key. */
function isInTime(call: Call, record: StoredRecord): boolean {
  const { firstDispatchedAt, readAt } = record;
  const withinMs = rerunWithin(call, record);
  return (
    withinMs === null || firstDispatchedAt === null || (readAt > 0 && readAt < firstDispatchedAt + withinMs)
  );
}

/** The error that a settled or released record answers with. */
export function errorFromRecord(
  record: StoredRecord,
  cause?: unknown,
  retryAfterMs?: number | undefined,
): SemelError {
  const message = (record.error?.message ?? 'no reason was recorded').replace(/\.$/, '');
  const stored = record.error?.code as ErrorCode | undefined;
  const known = stored !== undefined && errorCodes.includes(stored);
  const details = {
    evidence: collectEvidence(record),
    ...(cause === undefined ? {} : { cause }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
  if (record.status === 'failed' && record.doubtFence !== null) {
    const next = 'Somebody abandoned it; `semel.records.reopen` puts it in doubt again.';
    // It was given up, not refused: it may have landed.
    const evidence = { ...details.evidence, givenUp: true };
    return new SemelError('FAILED', `${record.contract}: ${message}.`, { ...details, evidence, next });
  }
  if (record.status === 'failed')
    return new SemelError(known ? stored : 'FAILED', `${record.contract} failed: ${message}.`, details);
  if (isRepeatable(record.effect)) {
    const next = 'It is declared harmless to repeat: call again.';
    return new SemelError('FAILED', `${record.contract} threw: ${message}.`, {
      ...details,
      next,
      retriable: true,
    });
  }
  if (known && stored !== 'NOT_LANDED')
    return new SemelError(stored, `${record.contract} did not land: ${message}.`, details);
  return new SemelError('NOT_LANDED', `${record.contract} did not land: ${message}.`, details);
}
