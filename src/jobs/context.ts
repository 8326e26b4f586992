// The environment variables that describe a run to its command, and that commands inside the run read back.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Semel } from '../semel/index.ts';
import type { StoreFacts } from '../store/store.ts';
import { type Ids, parseRun, type RunId } from './slots/run-id.ts';
import { type JobSlot, stepWindowMs } from './slots/slot.ts';

export interface RunContext {
  readonly id: RunId;
  /** The run's name in the library. */
  readonly text: string;
  readonly zone: string;
  readonly date: string;
  /** The run's scheduled instant. */
  readonly at: number;
  /** How long its steps and effects are remembered. */
  readonly windowMs: number;
}

/** The run that this process is part of, if any. */
export function currentRun(env: NodeJS.ProcessEnv = process.env): RunContext | undefined {
  const text = env.SEMEL_RUN;
  const id = text === undefined ? undefined : parseRun(text);
  if (text === undefined || id === undefined) return undefined;
  const at = Number(env.SEMEL_AT);
  return {
    id,
    text,
    zone: env.SEMEL_TZ ?? 'UTC',
    date: env.SEMEL_DATE ?? '',
    at: Number.isFinite(at) ? at : 0,
    windowMs: Number(env.SEMEL_WINDOW) || usualWindowMs,
  };
}

/** Where an older version started the run. */
const usualWindowMs = 30 * 86_400_000;

/** Every guarded command gets the ledger, and the keys to pass on to a provider. */
export function attemptEnv(
  semel: Semel,
  facts: StoreFacts,
  attempt: AttemptFacts,
  isNamespaceChosen: boolean,
  held: readonly string[] = [],
) {
  return {
    SEMEL_HELD: [...idsHeldAbove(), ...held].join(','),
    SEMEL_STORE:
      facts.address === undefined || facts.address === '' ? `sqlite:${facts.location}` : facts.address,
    // A program inside keeps its own namespace, unless one was chosen for all.
    ...(isNamespaceChosen ? { SEMEL_NAMESPACE: semel.namespace } : {}),
    SEMEL_ATTEMPT: String(attempt.attempt),
    SEMEL_FENCE: String(attempt.fence),
    SEMEL_KEY: attempt.key.replaceAll('-', ''),
    SEMEL_KEY_UUID: attempt.key,
  };
}

/** Records held by the jobs around the running code. */
const heldHere = new AsyncLocalStorage<readonly string[]>();

/** Calls of `work` know that these records are held around them. */
export function holding<T>(ids: readonly string[], work: () => T): T {
  return heldHere.run([...(heldHere.getStore() ?? []), ...ids], work);
}

/** Ids of the records held by the guards and jobs around this code. Waiting for one of them would be waiting for itself. */
export function idsHeldAbove(env: NodeJS.ProcessEnv = process.env): readonly string[] {
  const above = (env.SEMEL_HELD ?? '').split(',').filter((id) => id !== '');
  return [...above, ...(heldHere.getStore() ?? [])];
}

interface AttemptFacts {
  readonly attempt: number;
  readonly fence: number | string;
  readonly key: string;
}

export function runEnv(semel: Semel, text: string, slot: JobSlot, ids: Ids, windowMs: number) {
  const { periodsAt: at } = slot;
  return {
    SEMEL_RUN: text,
    SEMEL_ID: JSON.stringify(ids),
    SEMEL_SLOT: slot.name,
    SEMEL_DATE: slot.date,
    SEMEL_TZ: slot.zone,
    SEMEL_AT: String(slot.at),
    SEMEL_WINDOW: String(stepWindowMs(slot, windowMs)),
    SEMEL_CONTEXT: semel.within({ run: text, ...(at === undefined ? {} : { at }) }, semel.handoff),
  };
}
