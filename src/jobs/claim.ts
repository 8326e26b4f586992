// From a key to the right to act on it: look who holds it, wait or give way, then claim. Every guarded command takes
// this path, for its turn, its slot or its effect.

import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '../core/clock.ts';
import { SemelError } from '../core/errors.ts';
import { NotLanded } from '../core/signals.ts';
import type { CallOptions, OpenAttempt, RecordInfo, Semel, ToolFunction } from '../semel/index.ts';
import { heldAbove } from './context.ts';
import { type Holder, holderOf, lookHoldsMs } from './life/holder.ts';
import { isPartOf } from './life/liveness.ts';

export type IfBusy = 'skip' | 'wait' | 'fail';

/** When the verifier began, if it was asked: the key was claimed by then. */
export interface Asked {
  since: number | undefined;
}

interface Claiming<Args> {
  readonly semel: Semel;
  readonly folder: string;
  readonly tool: ToolFunction<Args, unknown>;
  readonly args: Args;
  readonly options: CallOptions;
  readonly ifBusy: IfBusy;
  readonly asked?: Asked;
  /** How long `wait` waits. */
  readonly waitMs: number;
  /** Called once, when it begins to wait. */
  readonly onWait: (holder: Holder) => void;
}

export type Claimed =
  /** `before` is the record as it was before this claim. */
  | { readonly kind: 'execute'; readonly attempt: OpenAttempt; readonly before: RecordInfo | undefined }
  | { readonly kind: 'done'; readonly value: unknown; readonly record: RecordInfo }
  | { readonly kind: 'busy'; readonly holder: Holder }
  | { readonly kind: 'refused'; readonly error: SemelError };

const pollMs = 200;
/** Somebody who died is noticed within this. */
const slowPollMs = 500;

export async function claim<Args>(claiming: Claiming<Args>): Promise<Claimed> {
  const { semel, folder, tool, args, options, asked, ifBusy, waitMs, onWait } = claiming;
  const { key, id } = await semel.keyOf(tool, args, options);
  if (heldAbove().includes(id)) return { kind: 'refused', error: insideItself(tool.contract.name) };
  const until = systemClock.mono() + waitMs;
  let isWaiting = false;
  for (let pauseMs = pollMs; ; pauseMs = slowPollMs) {
    const lookedAt = systemClock.mono();
    const { holder, record: before } = await holderOf(semel, folder, key);
    if (holder !== undefined) {
      if (ifBusy !== 'wait' || systemClock.mono() >= until) return { kind: 'busy', holder };
      if (!isWaiting && isPartOf(folder, holder.record.owner))
        return { kind: 'refused', error: insideItself(tool.contract.name) };
      if (!isWaiting) onWait(holder);
      isWaiting = true;
      await pause(pauseMs);
      continue;
    }
    if (asked !== undefined) asked.since = undefined;
    const begun = await semel.begin(tool, args, options);
    if (begun.execute) {
      if ((asked?.since ?? systemClock.mono()) - lookedAt < lookHoldsMs)
        return { kind: 'execute', attempt: begun.attempt, before };
      await begun.attempt.release(new NotLanded('it stood still between its look and its claim'));
      continue;
    }
    const { result } = begun;
    // Somebody was faster: look at them.
    if (!result.ok && result.error.code === 'IN_FLIGHT') continue;
    const isOmitted = !result.ok && result.error.code === 'RESULT_OMITTED';
    if (!result.ok && !isOmitted) return { kind: 'refused', error: result.error };
    const record = await semel.records.get(result.receipt.key);
    if (record !== undefined) return { kind: 'done', value: result.ok ? result.value : undefined, record };
  }
}

export function insideItself(contract: string): SemelError {
  return new SemelError(
    'REENTRANT',
    `${contract} was started inside its own command, with the same identity.`,
    {
      next: 'It would wait for itself. Give it another name or id.',
    },
  );
}
