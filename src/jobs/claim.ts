// From a key to a claim on it: find its holder, wait or give up, then claim. Every guarded command takes this path, for
// the job's lock, its slot or its effect.

import { systemClock } from '../core/clock.ts';
import { SemelError } from '../core/errors.ts';
import { NotLanded } from '../core/signals.ts';
import { sleep } from '../ledger/index.ts';
import {
  type CallOptions,
  engineOf,
  forgetTool,
  type OpenAttempt,
  type RecordInfo,
  type Semel,
  type ToolFunction,
} from '../semel/index.ts';
import { idsHeldAbove } from './context.ts';
import type { StoredValue } from './guarded-command.ts';
import { findHolder, type Holder, maxLookAgeMs } from './liveness/holder.ts';
import { isPartOf } from './liveness/liveness.ts';

export type IfBusy = 'skip' | 'wait' | 'fail';

/** When the verifier started, if it ran: the key was claimed by then. */
export interface VerifierStart {
  startedAt: number | undefined;
}

/** Defines a tool for one run. */
export type MakeTool<Args> = () => ToolFunction<Args, unknown>;

/**
 * Defines the tool only while it is looked up, which `begin` and `keyOf` do before they wait for anything: two runs of a job
 * in one process may have other terms, and no sweep may continue one run with the code of another.
 */
export function withTool<Args, T>(make: MakeTool<Args>, use: (tool: ToolFunction<Args, unknown>) => T): T {
  const tool = make();
  try {
    return use(tool);
  } finally {
    forgetTool(tool);
  }
}

interface ClaimOptions<Args> {
  readonly semel: Semel;
  readonly folder: string;
  readonly tool: MakeTool<Args>;
  readonly args: Args;
  readonly options: CallOptions;
  readonly ifBusy: IfBusy;
  readonly verifier?: VerifierStart;
  readonly waitMs: number;
  /** Ends a wait. */
  readonly signal: AbortSignal | undefined;
  /** The claim may be left to its lease, so it does not end with this process. */
  readonly mayOutliveProcess?: boolean;
  /** Called once, before the first wait. */
  readonly onWait: (holder: Holder) => void;
}

export type Claimed =
  /** `before`: the record before this claim. */
  | { readonly kind: 'execute'; readonly attempt: OpenAttempt; readonly before: RecordInfo | undefined }
  | { readonly kind: 'done'; readonly value: StoredValue; readonly record: RecordInfo }
  | { readonly kind: 'busy'; readonly holder: Holder }
  | { readonly kind: 'refused'; readonly error: SemelError };

const pollMs = 200;
/** A holder's death is noticed within this time. */
const slowPollMs = 500;

export async function claim<Args>(options: ClaimOptions<Args>): Promise<Claimed> {
  const { semel, folder, tool, args, options: callOptions, verifier, ifBusy, waitMs, onWait } = options;
  const { signal } = options;
  const { key, id, contract } = await withTool(tool, (made) => semel.keyOf(made, args, callOptions));
  if (idsHeldAbove().includes(id)) return { kind: 'refused', error: insideItself(contract) };
  const until = systemClock.mono() + waitMs;
  let isWaiting = false;
  for (let pauseMs = pollMs; ; pauseMs = slowPollMs) {
    const lookedAt = systemClock.mono();
    const { holder, record: before } = await findHolder(semel, folder, key);
    if (holder !== undefined) {
      if (ifBusy !== 'wait' || systemClock.mono() >= until) return { kind: 'busy', holder };
      if (!isWaiting && isPartOf(folder, holder.record.owner))
        return { kind: 'refused', error: insideItself(contract) };
      if (!isWaiting) onWait(holder);
      isWaiting = true;
      await sleep(systemClock, pauseMs, [signal]);
      if (signal?.aborted) return { kind: 'refused', error: abortedWait(contract) };
      continue;
    }
    if (verifier !== undefined) verifier.startedAt = undefined;
    const begun = await withTool(tool, (made) => {
      const begin = options.mayOutliveProcess === true ? semel.begin : engineOf(semel).beginHere;
      return begin(made, args, callOptions);
    });
    if (begun.execute) {
      if ((verifier?.startedAt ?? systemClock.mono()) - lookedAt < maxLookAgeMs)
        return { kind: 'execute', attempt: begun.attempt, before };
      await begun.attempt.release(
        new NotLanded('the process stalled between looking at the record and claiming it'),
      );
      continue;
    }
    const { result } = begun;
    // Another process was faster: look at it.
    if (!result.ok && result.error.code === 'IN_FLIGHT') continue;
    const isOmitted = !result.ok && result.error.code === 'RESULT_OMITTED';
    if (!result.ok && !isOmitted) return { kind: 'refused', error: result.error };
    const record = await semel.records.get(result.receipt.key);
    if (record !== undefined)
      return { kind: 'done', value: result.ok ? (result.value as StoredValue) : undefined, record };
  }
}

function abortedWait(contract: string): SemelError {
  return new SemelError('ABORTED', `${contract}: the wait for another run was aborted.`);
}

export function insideItself(contract: string): SemelError {
  return new SemelError(
    'REENTRANT',
    `${contract} was started inside its own command, with the same identity.`,
    { next: 'It would wait for itself. Give it another name or id.' },
  );
}
