// What a program writes to define a job, and what a run of it answers. Refuses wrong options when the job is defined. Imports
// little: the rest of a job is loaded when it first runs.

import { type Duration, durationMs, formatDuration } from '../core/contract/duration.ts';
import { checkKnown, fieldNames } from '../core/contract/known-fields.ts';
import { type CalendarPeriod, calendarSlot, isCalendarPeriod, minute } from '../core/contract/period.ts';
import { SemelError } from '../core/errors.ts';
import { isGeneratorFunction } from '../core/plain.ts';
import { checkText } from '../core/text.ts';
import type { Verification, VerifyContext } from '../core/verification.ts';
import { parseCron } from './slots/cron.ts';

/** The schedule of a crontab, in a time zone. Made by `cron`. */
export interface CronSchedule {
  readonly cron: string;
  readonly zone: string;
}

/** The slot is the schedule's latest time, however late the start. `@reboot`: this boot of this machine. */
export function cron(expression: string, zone = 'UTC'): CronSchedule {
  if (String(expression).trim().toLowerCase() !== '@reboot') parseCron(String(expression));
  calendarSlot(minute(zone), 0);
  return Object.freeze({ cron: expression, zone });
}

export interface JobOptions<Value = unknown> {
  /**
   * Each slot is done once: a calendar period, a schedule, or `'ever'`. `'none'` only prevents overlap. @default the instant
   * `at` of each run, otherwise 'none'
   */
  readonly per?: CalendarPeriod | CronSchedule | 'ever' | 'none';
  /** What a run does while the job is running: `skip` and `wait` answer `busy`, `fail` throws IN_FLIGHT. @default 'skip' */
  readonly ifBusy?: 'skip' | 'wait' | 'fail';
  /** How long to wait; implies `ifBusy: 'wait'`. */
  readonly wait?: Duration;
  /** How often a run that failed is tried again, within its `run()`. @default 0 */
  readonly retries?: number;
  /** The delay before the first retry; doubles each time. @default '1m' */
  readonly backoff?: Duration;
  /** Aborts `job.signal` after this time. @default 'none' */
  readonly timeout?: Duration | 'none';
  /** How long a function may take to end once its signal is aborted; then `run()` no longer waits for it. @default '10s' */
  readonly grace?: Duration;
  /** How long a crash keeps others from starting, where its death cannot be proven; at least 10s. @default '1m' */
  readonly lease?: Duration;
  /** Holds the lock this long from the start, even if the run is over sooner. @default 0 */
  readonly atLeast?: Duration;
  /** What a failure means: the next start runs the slot again, or it is in doubt. @default 'rerun' */
  readonly afterFailure?: 'rerun' | 'hold';
  /** Finds out whether a run that failed or crashed did its work after all. */
  readonly verify?: (run: RunInfo, ctx: VerifyContext) => Verification<Value> | Promise<Verification<Value>>;
  /** Trust `notLanded()` only after this delay. @default '60s' */
  readonly verifyAfter?: Duration;
  /** How long a run, its steps and its effects are remembered after its slot ends. @default '30d' */
  readonly window?: Duration;
}

export interface JobRunOptions {
  /** The scheduled instant, if the scheduler provides it. @default now */
  readonly at?: Date | number;
  /** Separate runs with a lock and slots of their own, for example per customer. */
  readonly ids?: Readonly<Record<string, string | number>>;
  /** Why a finished slot is run once more: with its own steps and effects. Kept in the history. */
  readonly again?: string;
  /** Ends a wait, and aborts `job.signal`. */
  readonly signal?: AbortSignal;
  /** Why the run may go on although its steps have changed since its last attempt. Kept in the history. */
  readonly acceptChange?: string;
}

/** Which run it is. */
export interface RunInfo {
  readonly job: string;
  /** `2026-06-19`, `2026-06-19T09:00+02:00`, `ever`. */
  readonly slot: string;
  /** The slot's local date. */
  readonly date: string;
  readonly zone: string;
  /** The slot's scheduled instant. */
  readonly at: Date;
  readonly ids: Readonly<Record<string, string>>;
}

export interface JobHolder {
  /** The process, as it names itself. */
  readonly owner: string;
  /** When its run started; undefined if only its lock is left. */
  readonly since: Date | undefined;
  /** When its lease ends, unless it is renewed. */
  readonly until: Date;
  /** The `atLeast` that keeps the lock although the run is over. */
  readonly atLeast: string | undefined;
}

export type JobOutcome<Value> =
  /** The function ran to its end, or `verify` found that it had. */
  | { readonly status: 'executed'; readonly slot: string; readonly value: Value; readonly attempt: number }
  /** The slot was done before. */
  | {
      readonly status: 'skipped';
      readonly slot: string;
      /** What the run returned; undefined if a command did it, or if it could not be stored. */
      readonly value: Value | undefined;
      readonly doneAt: Date;
      /** The record's id, for `semel show`. */
      readonly record: string;
    }
  /** Another run of the job is going on, here or elsewhere. */
  | { readonly status: 'busy'; readonly slot: string; readonly holder: JobHolder };

/** A job that failed, is in doubt or was refused: `error.code` says which. */
export interface JobFailure {
  readonly status: 'failed';
  readonly slot: string;
  readonly error: SemelError;
}

/** What `semel.job` returns. */
export interface Job<Value> {
  readonly name: string;
  /** Runs the job for its slot, unless that is done or running. Throws what `try` answers as `failed`. */
  run(options?: JobRunOptions): Promise<JobOutcome<Value>>;
  /** Never throws for what can be expected. */
  try(options?: JobRunOptions): Promise<JobOutcome<Value> | JobFailure>;
}

export interface DefinedTerms {
  readonly per: JobOptions['per'];
  readonly ifBusy: 'skip' | 'wait' | 'fail';
  readonly waitMs: number;
  readonly retries: number;
  readonly backoffMs: number;
  readonly timeoutMs: number;
  readonly graceMs: number;
  readonly leaseMs: number;
  readonly atLeastMs: number;
  readonly afterFailure: 'rerun' | 'hold';
  readonly verify: JobOptions<never>['verify'];
  readonly verifyAfterMs: number;
  readonly windowMs: number;
}

const optionNames = fieldNames<JobOptions>({
  per: true,
  ifBusy: true,
  wait: true,
  retries: true,
  backoff: true,
  timeout: true,
  grace: true,
  lease: true,
  atLeast: true,
  afterFailure: true,
  verify: true,
  verifyAfter: true,
  window: true,
});

/** Leases of jobs are longer than any look at their records takes (liveness/holder.ts). */
export const minLeaseMs = 10_000;
/** Longer timers fire at once. */
const maxTimerMs = 2_147_483_647;

export function checkJob(name: string, options: JobOptions<never>, work: unknown): DefinedTerms {
  const refuse = (path: string, what: string, next: string): never => {
    throw new SemelError('CONTRACT_INVALID', `job ${JSON.stringify(name)}: ${what}.`, { path, next });
  };
  checkText('name', name);
  if (name === undefined)
    refuse('name', 'it has no name', "Write semel.job('blog', { … }, async (job) => …).");
  if (typeof options !== 'object' || options === null)
    refuse('options', 'its options are not an object', 'Pass { per: day() } or {}.');
  checkKnown(`job ${JSON.stringify(name)}`, options, optionNames);
  if (typeof work !== 'function') refuse('work', 'it has no function', 'Pass it last: async (job) => ….');
  if (isGeneratorFunction(work))
    refuse('work', 'its function is a generator', 'Write an async function that returns the result.');
  const { per, wait, ifBusy = wait === undefined ? 'skip' : 'wait', afterFailure = 'rerun' } = options;
  const { retries = 0, timeout = 'none', verify } = options;
  if (!['skip', 'wait', 'fail'].includes(ifBusy))
    refuse('ifBusy', `${JSON.stringify(ifBusy)} is not a valid \`ifBusy\``, "Use 'skip', 'wait' or 'fail'.");
  if (wait !== undefined && ifBusy !== 'wait')
    refuse('wait', '`wait` has no meaning here', "Leave `ifBusy` out, or write 'wait'.");
  if (!['rerun', 'hold'].includes(afterFailure))
    refuse('afterFailure', `${JSON.stringify(afterFailure)} is not valid`, "Use 'rerun' or 'hold'.");
  if (afterFailure === 'hold' && per === 'none')
    refuse(
      'afterFailure',
      "'hold' needs a slot: otherwise every start is a new run",
      'Add a period: per: day().',
    );
  if (!isPer(per))
    refuse(
      'per',
      `${typeof per === 'function' ? 'a function that was not called' : JSON.stringify(per)} is not a period`,
      "Use minute(), hour(), day(), week() or month() with a time zone, cron('0 7 * * *', zone), 'ever' or 'none'.",
    );
  if (!Number.isInteger(retries) || retries < 0 || retries > 999)
    refuse('retries', '`retries` is not a whole number from 0 to 999', 'Write retries: 2.');
  if (verify !== undefined && typeof verify !== 'function')
    refuse('verify', '`verify` is not a function', 'Write verify: async (run) => ….');
  const ms = (field: keyof JobOptions, missing: Duration, to = Number.MAX_SAFE_INTEGER): number => {
    const value = durationMs((options[field] as Duration | undefined) ?? missing, field);
    if (value > to) refuse(field, `\`${field}\` is too long`, `The maximum is ${formatDuration(to)}.`);
    return value;
  };
  const leaseMs = ms('lease', '1m');
  if (leaseMs < minLeaseMs) refuse('lease', '`lease` is too short', 'The minimum is 10s.');
  return {
    per,
    ifBusy,
    waitMs: wait === undefined ? Number.POSITIVE_INFINITY : ms('wait', 0),
    retries,
    backoffMs: ms('backoff', '1m'),
    timeoutMs: timeout === 'none' ? Number.POSITIVE_INFINITY : ms('timeout', 0, maxTimerMs),
    graceMs: ms('grace', '10s', maxTimerMs),
    leaseMs,
    atLeastMs: ms('atLeast', 0, maxTimerMs),
    afterFailure,
    verify,
    verifyAfterMs: ms('verifyAfter', '60s'),
    windowMs: ms('window', '30d'),
  };
}

function isPer(per: unknown): boolean {
  if (per === undefined || per === 'ever' || per === 'none' || isCalendarPeriod(per)) return true;
  const { cron: expression, zone } = (per ?? {}) as Partial<CronSchedule>;
  if (typeof expression !== 'string' || typeof zone !== 'string') return false;
  cron(expression, zone);
  return true;
}

export const runOptionNames = fieldNames<JobRunOptions>({
  at: true,
  ids: true,
  again: true,
  signal: true,
  acceptChange: true,
});

/** `load` brings the rest of a job, at its first run. */
export function defineJob<Value>(
  name: string,
  options: JobOptions<never>,
  work: unknown,
  load: (terms: DefinedTerms, options: JobRunOptions) => Promise<JobOutcome<Value> | JobFailure>,
): Job<Value> {
  const terms = checkJob(name, options, work);
  const attempt = async (given: JobRunOptions = {}) => load(terms, given);
  return {
    name,
    try: attempt,
    async run(given) {
      const outcome = await attempt(given);
      if (outcome.status === 'failed') throw outcome.error;
      return outcome;
    },
  };
}
