// A job whose function runs in another program, which holds the lock and the slot by tickets. The names, keys and terms are
// those of `semel.job`, so a run that died in one language goes on in another. Nothing of it stays in this process.

import type { Result, Ticket } from '../../call/index.ts';
import { decodeResult } from '../../core/codec/codec.ts';
import { SemelError } from '../../core/errors.ts';
import { shortDigest } from '../../core/key/key.ts';
import { checkText } from '../../core/text.ts';
import {
  type CallOptions,
  type Engine,
  engineOf,
  forgetTool,
  type RecordInfo,
  type Semel,
  type ToolFunction,
  toRecordedCall,
} from '../../semel/index.ts';
import type { StoredRecord } from '../../store/store.ts';
import { type MakeTool, withTool } from '../claim.ts';
import { checkJob, type JobOptions, type JobRunOptions } from '../definition.ts';
import { replay, type StoredValue } from '../guarded-command.ts';
import { allowRerun, argsOf, type JobTerms, nameRun, slotTool } from '../job.ts';
import { findHolder, type Holder } from '../liveness/holder.ts';
import { livenessFolder } from '../liveness/liveness.ts';
import { lockTool } from '../lock.ts';
import { contractName, isReserved } from '../slots/run-id.ts';
import { type JobSlot, stepWindowMs } from '../slots/slot.ts';
import { idsOf, slotFor } from './run.ts';
import { stepTerms } from './steps.ts';

/** A tool of a job, by all that its contract is made of. Travels in tickets. */
export type JobTool =
  | { readonly kind: 'lock'; readonly job: string; readonly leaseMs: number }
  | {
      readonly kind: 'run';
      readonly job: string;
      readonly leaseMs: number;
      readonly windowMs: number;
      /** Length of its slot; null: it has no end. */
      readonly lengthMs: number | null;
      readonly run: string;
      readonly stepWindowMs: number;
    }
  | { readonly kind: 'step'; readonly name: string; readonly leaseMs: number; readonly windowMs: number }
  | { readonly kind: 'once'; readonly name: string; readonly per: 'run' | 'ever'; readonly windowMs: number };

type AnyTool = ToolFunction<never, unknown>;

function defineTool(semel: Semel, tool: JobTool): AnyTool {
  if (tool.kind === 'lock') return lockTool({ semel, ...tool }) as AnyTool;
  if (tool.kind === 'run') {
    const span = tool.lengthMs === null ? undefined : { startsAt: 0, endsAt: tool.lengthMs };
    const terms = { semel, ...tool, slot: { span }, verify: undefined, verifyAfterMs: 0 };
    return slotTool(terms, { startedAt: undefined }) as AnyTool;
  }
  const run = () => undefined as unknown;
  if (tool.kind === 'step')
    return semel.tool({ ...stepTerms(tool.name, tool.leaseMs, tool.windowMs), run }) as AnyTool;
  const { name, per, windowMs } = tool;
  return semel.tool({ name, effect: 'write-non-idempotent', per, window: windowMs, run }) as AnyTool;
}

/** For one use: two runs of a job may have other terms. */
export function findJobTool(semel: Semel, tool: JobTool) {
  const made = defineTool(semel, tool);
  try {
    const found = engineOf(semel).find(made.contract.name)?.tool;
    if (found === undefined) throw new SemelError('CONTRACT_INVALID', 'This job cannot be defined.');
    return found;
  } finally {
    forgetTool(made);
  }
}

interface Claimant {
  readonly owner: string;
  readonly token: string | undefined;
}

export interface DetachedClaim {
  readonly tool: JobTool;
  readonly ticket: Ticket;
  readonly record: StoredRecord;
}

export type DetachedRun =
  | {
      readonly kind: 'execute';
      readonly lock: DetachedClaim;
      readonly run: DetachedClaim;
      readonly slot: JobSlot;
      readonly text: string;
    }
  | {
      readonly kind: 'done';
      readonly slot: JobSlot;
      readonly value: StoredValue;
      readonly record: RecordInfo;
    }
  | { readonly kind: 'busy'; readonly slot: JobSlot; readonly holder: Holder | undefined };

export interface DetachOptions extends Pick<JobOptions, 'per' | 'lease' | 'window' | 'afterFailure'> {
  readonly job: string;
  readonly run: Pick<JobRunOptions, 'at' | 'ids' | 'again'>;
}

export async function detachJob(
  semel: Semel,
  { job, run: options, ...given }: DetachOptions,
  claimant: Claimant,
): Promise<DetachedRun> {
  const terms = checkJob(job, given, () => undefined);
  const slot = slotFor(terms, options);
  // Each start would be a run of its own, so a repeated request would be a second one.
  if (slot.unit === 'none') throw noSlot(job);
  const facts = await semel.open();
  const ids = idsOf(options.ids);
  const again = checkText('again', options.again);
  const all: JobTerms = {
    ...terms,
    ...{ semel, facts, job, label: `${job} ${slot.name}`, ids, slot, again },
    verify: undefined,
    hint: undefined,
    say: () => undefined,
  };
  const text = nameRun(all);
  const { args, slotArgs, slotOptions } = argsOf(all);
  const { leaseMs, windowMs } = terms;
  const lockOf: JobTool = { kind: 'lock', job, leaseMs };
  const runOf: JobTool = {
    ...{ kind: 'run', job, leaseMs, windowMs, run: text, stepWindowMs: stepWindowMs(slot, windowMs) },
    lengthMs: slot.span === undefined ? null : slot.span.endsAt - slot.span.startsAt,
  };
  const make = (tool: JobTool) => (() => defineTool(semel, tool)) as unknown as MakeTool<object>;
  const keyOf = (tool: JobTool, of: object, how?: CallOptions) =>
    withTool(make(tool), (made) => semel.keyOf(made, of, how));
  const { key: slotKey } = await keyOf(runOf, slotArgs, slotOptions);
  const done = await replay(semel, make(runOf), slotArgs, slotOptions, await semel.records.get(slotKey));
  if (done?.kind === 'done') return { kind: 'done', slot, value: done.value, record: done.record };
  const lock = await claimLock();
  if (lock === undefined) {
    const { key } = await keyOf(lockOf, args);
    const { holder } = await findHolder(semel, livenessFolder(facts.kind, facts.location), key);
    return { kind: 'busy', slot, holder };
  }
  try {
    for (;;) {
      const claimed = await detachTool(semel, runOf, slotArgs, slotOptions, claimant);
      if ('ticket' in claimed) return { kind: 'execute', lock, run: claimed, slot, text };
      const isDone = claimed.ok || claimed.error.code === 'RESULT_OMITTED';
      const record = isDone ? await semel.records.get(claimed.receipt.key) : undefined;
      if (record !== undefined) {
        const value = (claimed.ok ? claimed.value : undefined) as StoredValue;
        await release(semel, lock);
        return { kind: 'done', slot, value, record };
      }
      if (claimed.ok) continue;
      if (claimed.error.code === 'IN_DOUBT' && (await allowRerun(all, slotKey))) continue;
      throw claimed.error;
    }
  } catch (error) {
    await release(semel, lock);
    throw error;
  }

  /** Undefined: it is held. */
  async function claimLock(): Promise<DetachedClaim | undefined> {
    for (let nth = 0; nth < lockTokens; nth += 1) {
      const claimed = await tryLock(claimant.token && shortDigest('lock', claimant.token, ...nthPart(nth)));
      if (!('holder' in claimed)) return claimed;
      // An earlier request with this token gave the lock back, or took it and its answer was lost. A token claims once.
      const mayBeOwn = claimed.holder === undefined || claimed.holder.record.owner === claimant.owner;
      if (claimant.token === undefined || !mayBeOwn) return undefined;
    }
    return undefined;
  }

  /** A holder that is known to be dead is recorded as such by the look, and does not count. */
  async function tryLock(token: string | undefined): Promise<DetachedClaim | { holder: Holder | undefined }> {
    for (const isLast of [false, true]) {
      const claimed = await detachTool(semel, lockOf, args, {}, { ...claimant, token });
      if ('ticket' in claimed) return claimed;
      if (claimed.ok || claimed.error.code !== 'IN_FLIGHT')
        throw claimed.ok ? heldForGood(job) : claimed.error;
      const { key } = await keyOf(lockOf, args);
      const { holder } = await findHolder(semel, livenessFolder(facts.kind, facts.location), key);
      if (holder !== undefined || isLast) return { holder };
    }
    return { holder: undefined };
  }
}

/** How often a repeated request may take the lock again. */
const lockTokens = 8;

function nthPart(nth: number): readonly string[] {
  return nth === 0 ? [] : [String(nth)];
}

export interface DetachedStep {
  readonly kind: 'step' | 'once';
  readonly name: string;
  /** What a step depends on, or the id of a `once`. */
  readonly args?: unknown;
  /** The steps around it. */
  readonly in?: readonly string[];
}

/** How long to wait for another holder, and what ends the wait. */
export interface DetachedWait {
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** A step of a run, or an effect that lands once per run, or once ever with an id. */
export function detachStep(
  semel: Semel,
  run: Extract<JobTool, { kind: 'run' }>,
  { kind, name, args, in: path = [] }: DetachedStep,
  claimant: Claimant,
  wait?: DetachedWait,
): Promise<DetachedClaim | Result> {
  const windowMs = run.stepWindowMs;
  const options = { run: run.run };
  if (kind === 'step') {
    const identity = {
      step: name,
      ...(path.length === 0 ? {} : { in: path }),
      ...(args === undefined ? {} : { args }),
    };
    const tool: JobTool = { kind, name, leaseMs: run.leaseMs, windowMs };
    return detachTool(semel, tool, identity, options, claimant, wait);
  }
  if (isReserved(name))
    throw new SemelError('INVALID_ARGS', `${name} is a name of semel's own.`, {
      path: 'name',
      next: 'Use another name.',
    });
  const contract = contractName(undefined, name);
  const per = args === undefined ? 'run' : 'ever';
  const tool: JobTool = { kind, name: contract, per, windowMs };
  return detachTool(semel, tool, args ?? { effect: contract }, options, claimant, wait);
}

async function detachTool(
  semel: Semel,
  tool: JobTool,
  args: unknown,
  options: CallOptions,
  claimant: Claimant,
  wait?: DetachedWait,
): Promise<DetachedClaim | Result> {
  const engine = engineOf(semel);
  const make = (() => defineTool(semel, tool)) as unknown as MakeTool<unknown>;
  const call = await withTool(make, (made) => engine.makeCall(made, args, options));
  const { contract } = call.tool;
  const terms =
    wait === undefined ? { ifBusy: 'fail' as const } : { ifBusy: 'wait' as const, waitMs: wait.waitMs };
  const patient = call.with({
    tool: { ...call.tool, contract: { ...contract, ...terms } },
    ...(wait === undefined ? {} : { signal: wait.signal }),
  });
  const begun = await engine.pipeline.detach(patient, claimant);
  if (!begun.execute) return begun.result;
  const { ticket, record } = begun.attempt;
  if (ticket === undefined || record === undefined)
    throw new SemelError('CONTRACT_INVALID', `${contract.name} is not claimed.`);
  return { tool, ticket, record };
}

/** Gives back what has not begun. */
export async function release(semel: Semel, { tool, ticket }: DetachedClaim): Promise<void> {
  const { pipeline, namespace }: Engine = engineOf(semel);
  const made = findJobTool(semel, tool);
  const callOf = (record: StoredRecord) =>
    toRecordedCall(made, record, record.args === null ? undefined : decodeResult(record.args));
  // If it fails, the lease ends it.
  await pipeline.tickets
    .settle(made, callOf, namespace, ticket, { outcome: 'released' })
    .catch(() => undefined);
}

function noSlot(job: string): SemelError {
  return new SemelError('INVALID_ARGS', `${job}: its runs have no slot.`, {
    path: 'per',
    next: 'Say `per`, `cron` or `at`.',
  });
}

function heldForGood(job: string): SemelError {
  return new SemelError('CONTRACT_INVALID', `The lock of ${job} was settled by somebody.`, {
    next: `Forget its record: semel forget lock.${job}`,
  });
}
