// What the caller of `semel.job` gets: how the function's run ended, as a value, and the errors that say so.

import { describeError } from '../../call/index.ts';
import { formatDuration } from '../../core/contract/duration.ts';
import { isSemelError, SemelError } from '../../core/errors.ts';
import type { Semel } from '../../semel/index.ts';
import type { DefinedTerms, JobFailure, JobHolder, JobOutcome } from '../definition.ts';
import type { Report, RunEnding, StoredValue } from '../guarded-command.ts';
import { findRun } from '../job.ts';
import type { Holder } from '../liveness/holder.ts';
import { shownOwner } from '../liveness/liveness.ts';
import { findAtLeast } from '../lock.ts';

/** How the function ended. */
export interface FunctionEnding extends RunEnding {
  readonly value: unknown;
  readonly thrown: unknown;
  readonly timedOut: boolean;
  /** Resolves when the function has ended. */
  readonly gone: Promise<unknown>;
}

interface About {
  readonly job: string;
  readonly label: string;
  readonly slot: string;
  readonly terms: DefinedTerms;
}

export async function toOutcome<Value>(
  semel: Semel,
  report: Report<FunctionEnding>,
  { job, label, slot, terms }: About,
): Promise<JobOutcome<Value> | JobFailure> {
  switch (report.kind) {
    case 'ran': {
      const { ending, attempt } = report;
      if (ending.exit === 0) return { status: 'executed', slot, value: ending.value as Value, attempt };
      return { status: 'failed', slot, error: failure(label, ending, terms) };
    }
    case 'done': {
      const { record, value, ending } = report;
      if (ending !== undefined)
        return { status: 'executed', slot, value: valueIn(value) as Value, attempt: record.attempts };
      const doneAt = record.settledAt ?? record.updatedAt;
      return { status: 'skipped', slot, value: valueIn(value) as Value, doneAt, record: record.id };
    }
    case 'busy': {
      const holder = await describeHolder(semel, job, report.holder);
      if (terms.ifBusy === 'fail') return { status: 'failed', slot, error: inFlight(job, label, holder) };
      return { status: 'busy', slot, holder };
    }
    case 'refused':
      return { status: 'failed', slot, error: report.error };
  }
}

/** A command stores how it ended instead; a person may have stored the value as it is. */
function valueIn(stored: StoredValue): unknown {
  if (typeof stored !== 'object' || stored === null) return stored;
  const isOwn = 'value' in stored || 'tookMs' in stored || 'verified' in stored || 'exit' in stored;
  return isOwn ? stored.value : stored;
}

async function describeHolder(semel: Semel, job: string, holder: Holder): Promise<JobHolder> {
  const run = await findRun(semel, job, holder);
  const { owner, leaseLeftMs } = holder.record;
  return {
    owner: shownOwner(owner),
    since: run === undefined ? undefined : (run.lastDispatchedAt ?? run.createdAt),
    until: new Date(Date.now() + leaseLeftMs),
    atLeast: run === undefined ? await findAtLeast(semel, holder) : undefined,
  };
}

function failure(label: string, ending: FunctionEnding, terms: DefinedTerms): SemelError {
  const { thrown, timedOut, descendants } = ending;
  if (timedOut) return tooLong(label, terms, thrown, descendants.areAlive());
  if (isSemelError(thrown)) return thrown;
  return new SemelError('FAILED', `${label} failed: ${describeError(thrown)}.`, {
    next: 'Run it again: steps that are done are not repeated.',
    retriable: true,
    cause: thrown,
  });
}

export function tooLong(
  label: string,
  { timeoutMs }: DefinedTerms,
  cause?: unknown,
  isAlive = false,
): SemelError {
  const time = formatDuration(timeoutMs);
  return new SemelError('FAILED', `${label} was ended by its timeout of ${time}.`, {
    next: isAlive
      ? 'Its function ignores `job.signal` and is still running: the job does not start again until it has ended.'
      : 'Run it again: steps that are done are not repeated.',
    retriable: true,
    ...(cause === undefined ? {} : { cause }),
  });
}

export function aborted(label: string, { reason }: AbortSignal): SemelError {
  return new SemelError('ABORTED', `${label} was aborted by its caller.`, {
    next: 'Run it again if it is still wanted: steps that are done are not repeated.',
    cause: reason,
  });
}

export function runOver(label: string): SemelError {
  return new SemelError('ABORTED', `This attempt of ${label} is over.`, {
    next: 'Await every step before the function of the job returns.',
  });
}

export function holdNeedsSlot(job: string): SemelError {
  return new SemelError('INVALID_ARGS', `${job}: afterFailure 'hold' needs a slot.`, {
    path: 'at',
    next: 'Define the job with a period, or pass `at`.',
  });
}

function inFlight(job: string, label: string, { owner, since, until, atLeast }: JobHolder): SemelError {
  const by = since === undefined ? `held by ${owner}` : `running since ${since.toISOString()} by ${owner}`;
  const why = atLeast === undefined ? by : `held until ${until.toISOString()} (atLeast ${atLeast})`;
  return new SemelError('IN_FLIGHT', `${label} was not run: ${job} is ${why}.`, {
    retryAfterMs: Math.max(0, until.getTime() - Date.now()),
    evidence: { owner, since: since?.toISOString(), until: until.toISOString() },
  });
}
