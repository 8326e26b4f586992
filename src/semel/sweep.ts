// Settles open records that nobody called again: by `verify` if the tool has one, by a re-run if the provider honours the
// key. Leaves the others in doubt and counts them, also repeatable writes, and what only a framework or a caller can execute.

import {
  type Call,
  describeError,
  findInstant,
  isSameCode,
  type Pipeline,
  type Result,
  runAs,
  type Tool,
} from '../call/index.ts';
import { decodeResult } from '../core/codec/codec.ts';
import { isRepeatable } from '../core/contract/words.ts';
import type { SemelError } from '../core/errors.ts';
import { items } from '../core/paging.ts';
import type { Ledger } from '../ledger/index.ts';
import type { StoredRecord } from '../store/store.ts';
import { recordedIdentity, toRecordedCall } from './calls/recorded-call.ts';
import { checkArgs } from './calls/validation.ts';
import type { KnownTool } from './toolbox.ts';

export interface SweepReport {
  /** Had landed by the end of this sweep. */
  readonly landed: number;
  /** Known not to have landed, or refused. */
  readonly notLanded: number;
  /** Still in doubt: no tool of this process can decide them. */
  readonly open: number;
}

export interface SweepOptions {
  /** Execute what is known not to have landed. @default true */
  readonly execute?: boolean;
  readonly contract?: string;
  /** Gets every record that stays in doubt, with the reason: a verifier's token may have expired. */
  readonly onOpen?: (open: StillOpen) => void;
  /** Gets every record that is settled now. */
  readonly onSettled?: (settled: Swept) => void;
}

export interface Swept {
  readonly contract: string;
  readonly key: string;
  readonly as: 'landed' | 'notLanded';
  /** The sweep executed it; otherwise it was found out, or another process was faster. */
  readonly executed: boolean;
}

export interface StillOpen {
  readonly contract: string;
  readonly key: string;
  /** What its caller would get; undefined: no tool of this process can continue it. */
  readonly error: SemelError | undefined;
}

export async function sweep(
  ledger: Ledger,
  pipeline: Pipeline,
  namespace: string,
  findTool: (contract: string) => KnownTool | undefined,
  { execute = true, contract, onOpen, onSettled }: SweepOptions,
  warnOnce: (message: string) => void = () => undefined,
): Promise<SweepReport> {
  const report = { landed: 0, notLanded: 0, open: 0 };
  /** Without a tool here: mostly steps, which are decided when their call goes on. */
  const others: Pick<StoredRecord, 'contract' | 'key' | 'generation'>[] = [];
  const about = { namespace, inDoubt: true, limit: 100, ...(contract === undefined ? {} : { contract }) };
  for await (const record of items((from) => ledger.list({ ...about, ...from }))) {
    const known = findTool(record.contract);
    if (known === undefined) {
      others.push({ ...nameOf(record), generation: record.generation });
      continue;
    }
    const call = toCall(known.tool, record);
    const isLate = record.notAfter !== null && record.readAt > record.notAfter;
    const isStale = isLate || (call !== undefined && isWrite(call, record));
    const canRun = call && execute && !known.isExternal;
    const mayRun = canRun && !isStale && (await fitsSchema(known, call.args, warnOnce));
    const goOn = () => call && (mayRun ? pipeline.run(call) : verifyOnly(pipeline, call));
    const result = await runAs({ ...recordedIdentity(record), at: findCallInstant(known, record) }, goOn);
    if (result !== undefined && (await isSettledAndExpired(ledger, record, result))) continue;
    const is = classifyResult(result);
    report[is] += 1;
    if (is === 'open') onOpen?.(describeOpen(record, result));
    else onSettled?.({ ...nameOf(record), as: is, executed: result?.receipt.executed === true });
  }
  for (const { generation, ...name } of others) {
    const now = await ledger.read(namespace, name.key);
    if (now?.generation !== generation) continue;
    const is =
      now.inDoubt || now.status === 'running' ? 'open' : now.status === 'succeeded' ? 'landed' : 'notLanded';
    report[is] += 1;
    if (is === 'open') onOpen?.({ ...name, error: undefined });
    else onSettled?.({ ...name, as: is, executed: false });
  }
  return report;
}

function nameOf({
  contract,
  key,
}: Pick<StoredRecord, 'contract' | 'key'>): Pick<StillOpen, 'contract' | 'key'> {
  return { contract, key };
}

function describeOpen(record: StoredRecord, result: Result | undefined): StillOpen {
  return { ...nameOf(record), error: result === undefined || result.ok ? undefined : result.error };
}

/** Another write may have replaced it since: only a caller knows whether it is still wanted. */
function isWrite({ tool }: Call, { effect }: StoredRecord): boolean {
  return isRepeatable(tool.contract.effect) || isRepeatable(effect);
}

/**
 * The schema may have changed since the args were stored: a sweep must not run what a caller could not. A schema that
 * transforms may refuse its own output; such records are left to their callers too.
 */
async function fitsSchema({ schema, tool }: KnownTool, args: unknown, warnOnce: (message: string) => void) {
  if (schema === undefined) return true;
  try {
    await checkArgs(schema, args, tool.contract);
    return true;
  } catch (error) {
    warnOnce(
      `${tool.contract.name}: a sweep does not run records whose stored args do not fit the tool's schema (${describeError(error)}). It only asks \`verify\`; what stays open is for a caller, or for \`semel resolve\`.`,
    );
    return false;
  }
}

/** It was settled after it was listed, and its window has ended: there is nothing to report. */
async function isSettledAndExpired(
  ledger: Ledger,
  { namespace, key, generation }: StoredRecord,
  result: Result,
) {
  if (result.ok || result.error.code !== 'EXPIRED' || result.receipt.fence !== 0) return false;
  const now = await ledger.read(namespace, key);
  return now?.generation !== generation || !now.inDoubt;
}

/** `verify` may be called at any time, even when it is too late to run. */
function verifyOnly(pipeline: Pipeline, call: Call): Promise<Result> {
  return pipeline.runWith(call.with({ notAfter: null, verifyOnly: true }), async () => ({
    ending: { outcome: 'released', because: 'the sweep does not execute' },
    thrown: undefined,
  }));
}

function classifyResult(result: Result | undefined): keyof SweepReport {
  if (result === undefined) return 'open';
  if (result.ok) return result.receipt.skipped ? 'open' : 'landed';
  // Another process was faster; only the value is unknown.
  if (result.error.code === 'RESULT_OMITTED') return 'landed';
  return result.error.code === 'NOT_LANDED' ||
    result.error.code === 'FAILED' ||
    result.error.code === 'EXPIRED'
    ? 'notLanded'
    : 'open';
}

/** When the call was made, or was said to be: inner calls with a calendar period belong to that day, not to today. */
function findCallInstant(known: KnownTool | undefined, { createdAt, retention }: StoredRecord): number {
  const inPeriod = known && findInstant(known.tool.contract, retention?.periodEndsAt ?? null, [createdAt]);
  return inPeriod ?? createdAt;
}

/** Only the caller can continue a call whose args were not stored completely. */
function toCall(tool: Tool, record: StoredRecord): Call | undefined {
  if (record.args === null || tool.contract.redact.length > 0) return undefined;
  // An observed tool runs whatever the ledger says, so a sweep does not start it.
  if (tool.contract.mode !== 'enforce') return undefined;
  // Neither `run` nor `verify` may understand the args of other code.
  if (!isSameCode({ tool }, record)) return undefined;
  return toRecordedCall(tool, record, decodeResult(record.args));
}
