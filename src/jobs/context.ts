// The environment variables that describe a run to its command, and that commands inside the run read back.

import type { Semel } from '../semel/index.ts';
import type { StoreFacts } from '../store/store.ts';
import { type Ids, parseRun, type RunId } from './slots/run-id.ts';
import type { JobSlot } from './slots/slot.ts';

export interface RunContext {
  readonly id: RunId;
  /** The run's name in the library. */
  readonly text: string;
  readonly zone: string;
  readonly date: string;
  /** The run's scheduled instant. */
  readonly at: number;
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
  };
}

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

/** Ids of the records held by the guards around this process. Waiting for one of them would be waiting for itself. */
export function idsHeldAbove(env: NodeJS.ProcessEnv = process.env): readonly string[] {
  return (env.SEMEL_HELD ?? '').split(',').filter((id) => id !== '');
}

interface AttemptFacts {
  readonly attempt: number;
  readonly fence: number | string;
  readonly key: string;
}

export function runEnv(
  semel: Semel,
  text: string,
  slot: Pick<JobSlot, 'name' | 'date' | 'zone' | 'at' | 'periodsAt'>,
  ids: Ids,
) {
  const { periodsAt: at } = slot;
  return {
    SEMEL_RUN: text,
    SEMEL_ID: JSON.stringify(ids),
    SEMEL_SLOT: slot.name,
    SEMEL_DATE: slot.date,
    SEMEL_TZ: slot.zone,
    SEMEL_AT: String(slot.at),
    SEMEL_CONTEXT: semel.within({ run: text, ...(at === undefined ? {} : { at }) }, semel.handoff),
  };
}
