// Asks about open records that nobody called for again: `verify` where the tool has one, a re-run where the
// provider honours the key. What cannot be decided stays where it is, listed.

import {
  Call,
  describeError,
  isSameCode,
  type Pipeline,
  type Result,
  type Tool,
  unstoredMaker,
} from '../call/index.ts';
import { decodeResult } from '../core/codec/codec.ts';
import { items } from '../core/paging.ts';
import type { Ledger } from '../ledger/index.ts';
import type { StoredRecord } from '../store/store.ts';
import { type FormerAsker, onBehalfOf } from './calls/ambient.ts';
import { checkArgs } from './calls/validation.ts';
import type { KnownTool } from './toolbox.ts';

export interface SweepReport {
  /** Known to have landed by the end of this sweep. */
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
}

export async function sweep(
  ledger: Ledger,
  pipeline: Pipeline,
  namespace: string,
  toolOf: (contract: string) => KnownTool | undefined,
  { execute = true, contract }: SweepOptions,
  warnOnce: (message: string) => void = () => undefined,
): Promise<SweepReport> {
  const report = { landed: 0, notLanded: 0, open: 0 };
  const about = { namespace, inDoubt: true, limit: 100, ...(contract === undefined ? {} : { contract }) };
  for await (const record of items((from) => ledger.list({ ...about, ...from }))) {
    const known = toolOf(record.contract);
    const call = known && callOfRecord(known.tool, record);
    const isLate = record.notAfter !== null && record.readAt > record.notAfter;
    const mayRun = call && execute && !isLate && (await fits(known, call.args, warnOnce));
    const goOn = () => call && (mayRun ? pipeline.run(call) : justAsk(pipeline, call));
    const result = await onBehalfOf(askerOf(record), goOn);
    if (result !== undefined && (await isOver(ledger, record, result))) continue;
    report[meaning(result)] += 1;
  }
  return report;
}

/**
 * The schema may have changed since the args were stored: what it refuses to callers now is not run for nobody. A schema
 * that transforms may refuse its own output; such records are left to their callers too.
 */
async function fits({ schema, tool }: KnownTool, args: unknown, warnOnce: (message: string) => void) {
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

/** Somebody settled it since it was listed, and its window has ended: there is nothing to do or to tell. */
async function isOver(ledger: Ledger, { namespace, key, generation }: StoredRecord, result: Result) {
  if (result.ok || result.error.code !== 'EXPIRED' || result.receipt.fence !== 0) return false;
  const now = await ledger.read(namespace, key);
  return now?.generation !== generation || !now.inDoubt;
}

/** Whether it landed may be asked at any time, also when it is too late to run it. */
function justAsk(pipeline: Pipeline, call: Call): Promise<Result> {
  return pipeline.runWith(call.with({ notAfter: null, verifyOnly: true }), async () => ({
    ending: { outcome: 'released', because: 'the sweep does not execute' },
    thrown: undefined,
  }));
}

function meaning(result: Result | undefined): keyof SweepReport {
  if (result === undefined) return 'open';
  if (result.ok) return result.receipt.skipped ? 'open' : 'landed';
  // Done, by whoever was faster: only its value is not known.
  if (result.error.code === 'RESULT_OMITTED') return 'landed';
  return result.error.code === 'NOT_LANDED' ||
    result.error.code === 'FAILED' ||
    result.error.code === 'EXPIRED'
    ? 'notLanded'
    : 'open';
}

function askerOf({ conversation, turn, run, caller }: StoredRecord): FormerAsker {
  return {
    conversation: conversation ?? undefined,
    turn: turn ?? undefined,
    run: run ?? undefined,
    caller: caller ?? undefined,
  };
}

/** Only with the args that were stored whole can somebody else than the caller go on. */
function callOfRecord(tool: Tool, record: StoredRecord): Call | undefined {
  if (record.args === null || tool.contract.redact.length > 0) return undefined;
  // An observed tool runs whatever the ledger says, so it is not for the ledger to start it.
  if (tool.contract.mode === 'observe') return undefined;
  // Nor what other code has sent: neither `run` nor `verify` may understand its args.
  if (!isSameCode({ tool }, record)) return undefined;
  const parts = {
    tool,
    namespace: record.namespace,
    args: decodeResult(record.args),
    key: record.key,
    fingerprint: record.fingerprint,
    intent: '',
    periodEndsAt: record.retention?.periodEndsAt ?? null,
    identity: { ...askerOf(record), toolCallId: record.toolCallId ?? undefined },
    again: record.again,
    notAfter: record.notAfter,
    signal: undefined,
    // Since it was listed, it may have been settled and have expired: then nobody wants it run.
    generation: record.generation,
  };
  // Nobody reads a sweep's errors one by one, so they need no address.
  return new Call(parts, { ...unstoredMaker, content: () => record.content, storedArgs: () => record.args });
}
