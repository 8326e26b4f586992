// `semel.job`: a function of the program, under the same lock, slot and steps as the command of `semel run`. The process shows that
// it is alive by renewing its lease.

import { randomBytes } from 'node:crypto';
import { describeError } from '../../call/index.ts';
import { systemClock, toInstant } from '../../core/clock.ts';
import { formatDuration } from '../../core/contract/duration.ts';
import { checkKnown } from '../../core/contract/known-fields.ts';
import { isCalendarPeriod } from '../../core/contract/period.ts';
import { isSemelError } from '../../core/errors.ts';
import { isLazy } from '../../core/plain.ts';
import { checkText } from '../../core/text.ts';
import { landed } from '../../core/verification.ts';
import { sleep } from '../../ledger/index.ts';
import { enterAttempt, type OpenAttempt, type Semel } from '../../semel/index.ts';
import { attemptEnv, holding, type RunContext, runEnv } from '../context.ts';
import {
  type DefinedTerms,
  type JobFailure,
  type JobOutcome,
  type JobRunOptions,
  type RunInfo,
  runOptionNames,
} from '../definition.ts';
import type { Under, Work } from '../guarded-command.ts';
import { nameRun, runJob } from '../job.ts';
import type { RecentWork } from '../slots/recent.ts';
import type { Ids } from '../slots/run-id.ts';
import { type JobSlot, slotOf, stepWindowMs, weekdayOf } from '../slots/slot.ts';
import { openOrder } from './order.ts';
import { aborted, type FunctionEnding, holdNeedsSlot, runOver, toOutcome, tooLong } from './outcome.ts';
import { createSeed, recentOf, type Seed } from './seed.ts';
import { createSteps, type RunSteps, type Steps } from './steps.ts';

/** What the function of a job gets. */
export interface JobContext extends RunInfo, Steps {
  /** `Friday` */
  readonly weekday: string;
  /** 1, 2, … */
  readonly attempt: number;
  /** Grows with every attempt, for targets that can refuse a stale one. */
  readonly fence: number;
  /** Aborts at the timeout, with the caller's signal, and if the lease is lost. */
  readonly signal: AbortSignal;
  /** Choices that are the same in every attempt. */
  readonly seed: Seed;
  /** Work of earlier slots, newest first: results of a `once`, a step or a pick of this name. */
  recent(name: string, most?: number): Promise<readonly RecentWork[]>;
  /** For child processes: `semel once`, `step` and `pick` in them belong to this run. */
  readonly env: Readonly<Record<string, string>>;
}

type JobFunction<Value> = (job: JobContext) => Value | Promise<Value>;

export async function runFunction<Value>(
  semel: Semel,
  job: string,
  terms: DefinedTerms,
  work: JobFunction<Value>,
  options: JobRunOptions,
): Promise<JobOutcome<Awaited<Value>> | JobFailure> {
  let slot: JobSlot | undefined;
  try {
    checkKnown(`run() of job ${JSON.stringify(job)}`, options, runOptionNames, 'INVALID_ARGS');
    slot = slotFor(terms, options);
    if (slot.unit === 'none' && terms.afterFailure === 'hold') throw holdNeedsSlot(job);
    const ids = idsOf(options.ids);
    const again = checkText('again', options.again);
    const accept = checkText('acceptChange', options.acceptChange);
    const label = [`${job} ${slot.name}`, ...Object.entries(ids).map(([k, v]) => `${k}=${v}`)].join(' ');
    if (options.signal?.aborted) throw aborted(label, options.signal);
    const text = nameRun({ job, slot, ids, again });
    const { name, date, zone, at, span } = slot;
    const run: RunContext = {
      id: { job, slot: name, ids, ...(span === undefined ? {} : { startsAt: span.startsAt }) },
      text,
      ...{ zone, date, at },
      windowMs: stepWindowMs(slot, terms.windowMs),
    };
    const info: RunInfo = { job, slot: name, date, zone, at: new Date(at), ids };
    const facts = await semel.open();
    const { verify } = terms;
    const report = await runJob<FunctionEnding>(
      {
        ...terms,
        ...{ semel, facts, job, label, ids, slot, again, signal: options.signal },
        verify:
          verify &&
          (async (ctx) => {
            const answer = await verify(info, ctx);
            return answer.verdict === 'landed'
              ? landed({ value: answer.value, verified: true }, answer.remoteRef)
              : answer;
          }),
        hint: undefined,
        // A library does not print: what happened is in the outcome and in the record's history.
        say: () => undefined,
      },
      functionWork({ semel, facts, slot, run, info, label, terms, accept, signal: options.signal }, work),
    );
    return await toOutcome<Awaited<Value>>(semel, report, { job, label, slot: name, terms });
  } catch (error) {
    if (!isSemelError(error)) throw error;
    return { status: 'failed', slot: slot?.name ?? '', error };
  }
}

export function slotFor({ per }: DefinedTerms, { at }: JobRunOptions): JobSlot {
  const isCalendar = isCalendarPeriod(per);
  const zone = typeof per === 'object' ? per.zone : 'UTC';
  const schedule = {
    per: isCalendar ? per.unit : typeof per === 'string' ? per : undefined,
    cron: typeof per === 'object' && !isCalendar ? per.cron : undefined,
    at: toInstant('at', at),
    zone,
  };
  return slotOf(schedule, Date.now(), randomBytes(10).toString('hex'));
}

export function idsOf(given: JobRunOptions['ids'] = {}): Ids {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      checkText('ids', name);
      return [name, checkText(`ids.${name}`, typeof value === 'number' ? String(value) : value) as string];
    }),
  );
}

interface FunctionOptions {
  readonly semel: Semel;
  readonly facts: Awaited<ReturnType<Semel['open']>>;
  readonly slot: JobSlot;
  readonly run: RunContext;
  readonly info: RunInfo;
  readonly label: string;
  readonly terms: DefinedTerms;
  readonly accept: string | undefined;
  readonly signal: AbortSignal | undefined;
}

function functionWork(options: FunctionOptions, work: JobFunction<unknown>): Work<FunctionEnding> {
  const { semel, label, terms } = options;
  return {
    // The lease shows it.
    begin: async () => ({ end: () => undefined }),
    async execute(attempt, under) {
      const ending = await callFunction(options, attempt, under, work);
      const result = await under.settle(ending);
      const ended = ending.exit === 0 ? 'succeeded' : describe(ending);
      const note = { attempt: attempt.attempt, ended, tookMs: Math.round(ending.tookMs) };
      await semel.records.annotate(under.key, note).catch(() => undefined);
      return { ending, result };
    },
    describe,
    resultOf: ({ value, tookMs }) => ({ value, tookMs: Math.round(tookMs) }),
    // Its grace is over already.
    hasOutlived: async ({ descendants }) => descendants.areAlive(),
    leave: ({ gone }, release) => void gone.then(release).catch(() => undefined),
  };

  function describe({ timedOut, thrown }: FunctionEnding): string {
    if (timedOut) return `was ended by its timeout of ${formatDuration(terms.timeoutMs)}`;
    const words = isSemelError(thrown) ? thrown.happened : describeError(thrown);
    // With a run's label in the message, equal failures would not group.
    return `failed: ${words.replaceAll(`${label}: `, '')}`;
  }
}

async function callFunction(
  options: FunctionOptions,
  attempt: OpenAttempt,
  { held, signals, ensure }: Under<FunctionEnding>,
  work: JobFunction<unknown>,
): Promise<FunctionEnding> {
  const { semel, slot, run, label, terms, signal: callers } = options;
  const startedAt = systemClock.mono();
  const stop = new AbortController();
  let timedOut = false;
  let isAlive = true;
  const unlisten = [...signals, ...(callers === undefined ? [] : [callers])].map((each) => {
    const end = () => stop.abort(each === callers ? aborted(label, each) : each.reason);
    each.addEventListener('abort', end);
    if (each.aborted) end();
    return () => each.removeEventListener('abort', end);
  });
  const timer = Number.isFinite(terms.timeoutMs)
    ? setTimeout(() => {
        timedOut = true;
        stop.abort(tooLong(label, terms));
      }, terms.timeoutMs)
    : undefined;
  const { periodsAt: at } = slot;
  const ambient = { run: run.text, ...(at === undefined ? {} : { at }) };
  const running = enterAttempt(attempt, () =>
    holding(held, () =>
      semel.within(ambient, async () => {
        const own = { semel, run, label, leaseMs: terms.leaseMs };
        const order = await openOrder(own, options.accept);
        const steps = createSteps({ ...own, order, signal: stop.signal, ensure });
        const value = await work(contextFor(options, attempt, held, stop.signal, steps));
        if (isLazy(value)) throw lazyWork();
        await steps.finish();
        return value;
      }),
    ),
  );
  const gone = running.then(
    (value) => ({ value, hasThrown: false, thrown: undefined }),
    (thrown: unknown) => ({ value: undefined, hasThrown: true, thrown }),
  );
  void gone.then(() => {
    isAlive = false;
  });
  const ended = await Promise.race([gone, outlast(stop.signal, terms.graceMs)]);
  clearTimeout(timer);
  for (const end of unlisten) end();
  // What the function left running must not start anything more.
  stop.abort(runOver(label));
  const reason = stop.signal.reason as unknown;
  const hasFailed = ended === undefined || ended.hasThrown;
  const thrown = ended === undefined ? reason : ended.thrown;
  const isFinal = callers?.aborted === true || (isSemelError(thrown) && !thrown.retriable);
  return {
    exit: hasFailed ? 1 : 0,
    neverStarted: false,
    interruptedBy: hasFailed && isFinal ? 'a decision' : undefined,
    tookMs: systemClock.mono() - startedAt,
    descendants: { areAlive: () => isAlive },
    value: ended?.value,
    thrown,
    timedOut: timedOut && hasFailed,
    gone,
  };
}

/** A generator would run after its run was recorded as done, or never. */
function lazyWork(): Error {
  return new Error(
    'its function returned a generator or promises, which have not run or not ended: await them inside the function and return the result',
  );
}

/** Resolves when the grace period after the stop signal is over. */
function outlast(signal: AbortSignal, graceMs: number): Promise<undefined> {
  return new Promise((resolve) => {
    const wait = () => void sleep(systemClock, graceMs, [], 'background').then(() => resolve(undefined));
    if (signal.aborted) wait();
    else signal.addEventListener('abort', wait, { once: true });
  });
}

function contextFor(
  { semel, facts, slot, run, info, terms }: FunctionOptions,
  attempt: OpenAttempt,
  held: readonly string[],
  signal: AbortSignal,
  { finish: _, ...steps }: RunSteps,
): JobContext {
  const recent = recentOf(semel, run);
  return {
    ...info,
    ...steps,
    weekday: weekdayOf(info.date),
    attempt: attempt.attempt,
    fence: attempt.fence,
    signal,
    seed: createSeed(semel, run, recent),
    recent,
    get env() {
      return {
        ...runEnv(semel, run.text, slot, run.id.ids, terms.windowMs),
        ...attemptEnv(semel, facts, attempt, true, held),
      };
    },
  };
}
