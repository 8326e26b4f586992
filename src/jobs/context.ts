// What a guarded command is told of its run by the environment, and reads back in the commands inside it.

import type { Semel } from '../semel/index.ts';
import type { StoreFacts } from '../store/store.ts';
import { type Ids, type RunId, readRun } from './slots/run-id.ts';
import type { JobSlot } from './slots/slot.ts';

export interface Inside {
  readonly run: RunId;
  /** The name of the run as the library knows it. */
  readonly text: string;
  readonly zone: string;
  readonly date: string;
  /** The instant that the run stands for. */
  readonly at: number;
}

/** The run that this process is part of; undefined: none. */
export function insideOf(env: NodeJS.ProcessEnv = process.env): Inside | undefined {
  const text = env.SEMEL_RUN;
  const run = text === undefined ? undefined : readRun(text);
  if (text === undefined || run === undefined) return undefined;
  const at = Number(env.SEMEL_AT);
  return {
    run,
    text,
    zone: env.SEMEL_TZ ?? 'UTC',
    date: env.SEMEL_DATE ?? '',
    at: Number.isFinite(at) ? at : 0,
  };
}

/** For every guarded command: which ledger, and the keys to pass on to a provider. */
export function commonEnv(
  semel: Semel,
  facts: StoreFacts,
  attempt: AttemptFacts,
  isNamespaceChosen: boolean,
  held: readonly string[] = [],
) {
  return {
    SEMEL_HELD: [...heldAbove(), ...held].join(','),
    SEMEL_STORE:
      facts.address === undefined || facts.address === '' ? `sqlite:${facts.location}` : facts.address,
    // A program inside that has a name of its own keeps it, unless somebody chose one for all.
    ...(isNamespaceChosen ? { SEMEL_NAMESPACE: semel.namespace } : {}),
    SEMEL_ATTEMPT: String(attempt.attempt),
    SEMEL_FENCE: String(attempt.fence),
    SEMEL_KEY: attempt.key.replaceAll('-', ''),
    SEMEL_KEY_UUID: attempt.key,
  };
}

/** The records that the guards around this process hold: whoever waits for one of them waits for itself. */
export function heldAbove(env: NodeJS.ProcessEnv = process.env): readonly string[] {
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
