// A guarded run: the job's lock (never two at a time, across slots), then its slot (done once), then its work: the command of
// `semel run`, or the function of `semel.job`.

import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '../core/clock.ts';
import { formatDuration } from '../core/contract/duration.ts';
import { minute } from '../core/contract/period.ts';
import { sleep } from '../ledger/index.ts';
import {
  ensureLease,
  type OpenAttempt,
  type RecordInfo,
  type Semel,
  type ToolFunction,
} from '../semel/index.ts';
import { withoutMark } from '../store/process-life.ts';
import { type Claimed, claim, insideItself, type VerifierStart, withTool } from './claim.ts';
import { idsHeldAbove } from './context.ts';
import { describePrevious, describesNoStart, flushNotes } from './ending.ts';
import {
  claimOptions,
  type GuardTerms,
  type Report,
  type RunEnding,
  replay,
  reportVerified,
  type Verify,
  verifierTerms,
  type Work,
} from './guarded-command.ts';
import { findHolder, type Holder, ignoreStale } from './liveness/holder.ts';
import { livenessFolder } from './liveness/liveness.ts';
import { claimLock, keepLock, lockTool } from './lock.ts';
import { listRecords } from './slots/pick.ts';
import { checkedRunText, contractName, type Ids } from './slots/run-id.ts';
import { isOver, type JobSlot, longestSlotMs } from './slots/slot.ts';

export interface JobTerms extends GuardTerms {
  readonly job: string;
  /** Job, slot and ids, for people. */
  readonly label: string;
  readonly ids: Ids;
  readonly slot: JobSlot;
  readonly again: string | undefined;
  /** What a failure means: run the job again, or hold it in doubt. */
  readonly afterFailure: 'rerun' | 'hold';
  readonly retries: number;
  readonly backoffMs: number;
  readonly windowMs: number;
  /** How long the lock is held from the start of a run, even if the run is over sooner. */
  readonly atLeastMs: number;
  readonly verify: Verify | undefined;
  /** Printed at the job's first run. */
  readonly hint: string | undefined;
}

export async function runJob<Ending extends RunEnding>(
  options: JobTerms,
  work: Work<Ending>,
): Promise<Report<Ending>> {
  const { semel, facts, job, slot, ifBusy, signal, say } = options;
  const folder = livenessFolder(facts.kind, facts.location);
  const { args, slotArgs, slotOptions } = argsOf(options);
  // Refuses bad names before anything is claimed.
  nameRun(options);
  const lock = () => lockTool(options);
  const verifier: VerifierStart = { startedAt: undefined };
  const slotRun = () => slotTool(options, verifier);
  const { key: slotKey, id: slotId } = await withTool(slotRun, (tool) =>
    semel.keyOf(tool, slotArgs, slotOptions),
  );
  // A slot that is done needs no lock, and a job that is running needs no pipes.
  const known = await semel.records.get(slotKey);
  const replayed = await replay(semel, slotRun, slotArgs, slotOptions, known);
  if (replayed !== undefined) return replayed;
  const { key: lockKey, id: lockId } = await withTool(lock, (tool) => semel.keyOf(tool, args));
  if (idsHeldAbove().includes(lockId)) return { kind: 'refused', error: insideItself(job) };
  if (ifBusy !== 'wait') {
    const { holder } = await findHolder(semel, folder, lockKey);
    if (holder !== undefined) return { kind: 'busy', holder };
  }

  const liveness = await work.begin();
  const claiming = claimOptions(options, folder);
  const locked = await claimLock(lock, args, lockKey, claiming, options.atLeastMs);
  const lockedAt = systemClock.mono();
  if (locked.kind !== 'execute') {
    liveness.end();
    return locked;
  }
  if (options.hint !== undefined && locked.before === undefined) say(options.hint);
  const report = await runLocked(locked.attempt).catch(async (error) => {
    await locked.attempt.release();
    liveness.end();
    throw error;
  });
  // What was left behind keeps the lock: no other run starts until it is gone.
  if (report.ending?.descendants.areAlive()) {
    work.leave?.(report.ending, () => locked.attempt.release());
    return { ...report, leftBehind: true };
  }
  const isUnrecorded = report.kind === 'refused' && report.error.code === 'UNRECORDED';
  const hasRun = report.ending !== undefined && !report.ending.neverStarted;
  const term = { atLeastMs: options.atLeastMs, heldMs: systemClock.mono() - lockedAt };
  if (hasRun && !isUnrecorded && (await keepLock(semel, lockKey, locked.attempt, term))) {
    // Without a pipe only the lease counts; with one, its holder would be known to be dead.
    liveness.end();
    return report;
  }
  // In parallel, so that the notes share the release's commit.
  const [released] = await Promise.all([locked.attempt.release(), flushNotes(semel, slotKey)]);
  const isRecorded = released.ok || released.error.code === 'NOT_LANDED';
  // If the ledger could not be updated, the pipe shows the next run that no process is left.
  if (isRecorded && !isUnrecorded) liveness.end();
  return report;

  async function runLocked(held: OpenAttempt): Promise<Report<Ending>> {
    if (slot.unit === 'none' || slot.unit === 'boot') await closeCrashed(options, folder);
    let last: (Report<Ending> & { readonly ending: Ending }) | undefined;
    for (let tries = 1; ; tries += 1) {
      if (last !== undefined) await backOff(last.ending, tries - 1);
      if (last !== undefined && signal?.aborted) return last;
      try {
        const claimed = await claimSlot(last !== undefined);
        // Carry the last ending along: its descendants decide whether the lock can be released.
        if (claimed.kind !== 'execute')
          return last === undefined ? claimed : { ending: last.ending, ...claimed };
        const report = await runOnce(claimed, held);
        const ending = failureIn(report);
        if (ending === undefined || tries > options.retries || (await isStillAlive(ending))) return report;
        last = { ...report, ending };
      } catch (error) {
        if (last === undefined) throw error;
        // The command has run and the ledger knows how it ended: failing to retry does not undo that.
        say(`${options.label} is not tried again: ${(error as Error).message}`);
        return last;
      }
    }
  }

  async function runOnce(
    { attempt, before }: Extract<Claimed, { kind: 'execute' }>,
    held: OpenAttempt,
  ): Promise<Report<Ending>> {
    const { verify, afterFailure, label } = options;
    if (attempt.attempt > 1) {
      const repeats = describesNoStart(before?.error?.message)
        ? ''
        : '; effects not under `semel once` may repeat';
      const previous = await describePrevious(semel, before);
      say(`attempt ${attempt.attempt} of ${label}; attempt ${attempt.attempt - 1} ${previous}${repeats}`);
    }
    const isHeld = ({ neverStarted }: Ending) =>
      !neverStarted && (verify !== undefined || afterFailure === 'hold');
    const { ending, result } = await work.execute(attempt, {
      key: slotKey,
      held: [lockId, slotId],
      signals: [attempt.signal, held.signal],
      async ensure() {
        await Promise.all([held, attempt].map(ensureLease));
      },
      async settle(ending) {
        if (ending.exit === 0) return attempt.succeed(work.resultOf(ending));
        const words = work.describe(ending);
        return isHeld(ending)
          ? attempt.unknown(new Error(`${words}${heldSuffix}`))
          : attempt.release(new Error(words));
      },
    });
    const ran = { kind: 'ran', ending, attempt: attempt.attempt } as const;
    if (result?.ok && ending.exit !== 0) return reportVerified(semel, result, ran);
    if (result === undefined || result.ok || result.error.code === 'NOT_LANDED') return ran;
    // An earlier attempt that died leaves its doubt; where runs are repeated, that is not worth a question.
    const isOld = result.error.code === 'IN_DOUBT' && !isHeld(ending);
    if (isOld && (await allowRerun(options, slotKey))) return ran;
    return { kind: 'refused', error: result.error, ending };
  }

  async function backOff(failed: Ending, times: number): Promise<void> {
    const pauseMs = Math.min(maxBackoffMs, options.backoffMs * 2 ** (times - 1));
    say(`${options.label} ${work.describe(failed)}; trying again in ${formatDuration(pauseMs)}`);
    await sleep(systemClock, pauseMs, [signal]);
  }

  async function isStillAlive(failed: Ending): Promise<boolean> {
    if (!(await work.hasOutlived(failed))) return false;
    say(`${options.label}: what it started is still running`);
    return true;
  }

  /** Asks the verifier if the slot is in doubt; `isPatient` waits until its "not done" can be trusted. */
  async function claimSlot(isPatient: boolean): Promise<Claimed> {
    for (;;) {
      const claimed = await claim({
        ...claiming,
        verifier,
        tool: slotRun,
        args: slotArgs,
        options: slotOptions,
      });
      if (claimed.kind !== 'refused' || claimed.error.code !== 'IN_DOUBT') return claimed;
      if (await allowRerun(options, slotKey)) continue;
      const { retryAfterMs } = claimed.error;
      if (!isPatient || retryAfterMs === undefined) return claimed;
      say(`${options.label}: the verifier can decide in ${formatDuration(retryAfterMs)}`);
      await sleep(systemClock, retryAfterMs, [signal]);
      if (signal?.aborted) return claimed;
    }
  }
}

/** What its lock and its slot are claimed with. */
export function argsOf(options: JobTerms) {
  const { job, ids, slot, again } = options;
  const { start } = slot;
  const args = { job, ...(Object.keys(ids).length === 0 ? {} : { ids }) };
  // A slot is an instant and a length: the name of its zone may be spelt in many ways.
  const slotArgs = {
    ...args,
    per: slot.unit,
    slot: slot.name,
    ...(start === undefined ? {} : { start }),
    // For `semel doubt`: if this run dies, the next start does not run it again before somebody decides.
    ...(mayRerun(options) ? {} : { held: true }),
  };
  const slotOptions = { at: slot.span?.startsAt ?? 0, ...(again === undefined ? {} : { again }) };
  return { args, slotArgs, slotOptions };
}

/** The ending of work that failed without being interrupted. */
function failureIn<Ending extends RunEnding>(report: Report<Ending>): Ending | undefined {
  if (report.kind !== 'ran' && report.kind !== 'refused') return undefined;
  if (report.kind === 'refused' && report.error.code !== 'IN_DOUBT') return undefined;
  const { ending } = report;
  return ending === undefined || ending.exit === 0 || ending.interruptedBy !== undefined ? undefined : ending;
}

const maxBackoffMs = 3_600_000;

/** What the holder of a job's lock is running; undefined if its run has ended and left processes behind. */
export async function findRun(
  semel: Semel,
  job: string,
  { record }: Holder,
): Promise<RecordInfo | undefined> {
  const query = { contract: contractName('run', job), status: 'running' } as const;
  for await (const run of listRecords(semel, query))
    if (withoutMark(run.owner) === withoutMark(record.owner)) return run;
  return undefined;
}

/** The name of the run, for all calls inside it. */
export function nameRun({ job, slot, ids, again }: Pick<JobTerms, 'job' | 'slot' | 'ids' | 'again'>): string {
  const { name, span, start } = slot;
  return checkedRunText({ job, slot: name, startsAt: span?.startsAt, ids, again, start });
}

/**
 * A run without a slot, or of an earlier boot, has a key that no later start has. If it crashed, the next run that gets the
 * lock closes it, or it would be in doubt for good. A failure that was held on purpose stays open.
 */
async function closeCrashed(options: JobTerms, folder: string): Promise<void> {
  const { semel, job, ids, slot, afterFailure } = options;
  // A person decides.
  if (afterFailure === 'hold') return;
  const contract = contractName('run', job);
  for (const status of ['running', 'unknown'] as const) {
    for await (const { key, args } of listRecords(semel, { contract, status })) {
      const run = args as { per?: unknown; slot?: unknown; ids?: Ids } | undefined;
      if (run === undefined || !isOver(run, slot) || !isDeepStrictEqual(run.ids ?? {}, ids)) continue;
      const { holder, record } = await findHolder(semel, folder, key);
      const isCrashed = record?.inDoubt && (record.error?.code ?? 'DIED') === 'DIED';
      if (holder !== undefined || !isCrashed) continue;
      const by = { by: 'semel run', note: 'the next run has the lock' };
      await ignoreStale(semel.doubts.resolve(record.ref, { abandon: 'its processes are gone' }, by));
    }
  }
}

/** Part of the stored error, so that a later start without `--after-failure hold` does not run it again. */
const heldSuffix = '; held';

function mayRerun({ afterFailure, verify }: Pick<JobTerms, 'afterFailure' | 'verify'>): boolean {
  return afterFailure !== 'hold' && verify === undefined;
}

/**
 * This run died. The next start of its job runs it again, or closes it if it has its own key. A start in another
 * slot leaves it alone, so once its slot is over, a person has to look.
 */
export function rerunsByItself(
  { contract, inDoubt, error, args, createdAt }: RecordInfo,
  now: number,
): boolean {
  if (!inDoubt || !contract.startsWith('run.') || (error?.code ?? 'DIED') !== 'DIED') return false;
  const { per, held } = (args ?? {}) as { readonly per?: unknown; readonly held?: unknown };
  return held !== true && typeof per === 'string' && now < createdAt.getTime() + longestSlotMs(per);
}

/** A run that died may run again, as one that failed may; not one that was held or has a verifier. */
export async function allowRerun({ semel, afterFailure, verify }: JobTerms, key: string): Promise<boolean> {
  const record = await semel.records.get(key);
  if (record === undefined || !mayRerun({ afterFailure, verify })) return false;
  if (!record.inDoubt || record.error?.message.endsWith(heldSuffix)) return false;
  await ignoreStale(
    semel.doubts.resolve(record.ref, 'runAgain', { by: 'semel run', note: 'a run may be repeated' }),
  );
  return true;
}

export type SlotTerms = Pick<
  JobTerms,
  'semel' | 'job' | 'leaseMs' | 'windowMs' | 'verify' | 'verifyAfterMs'
> & { readonly slot: Pick<JobSlot, 'span'> };

export function slotTool(
  options: SlotTerms,
  verifier: VerifierStart,
): ToolFunction<{ slot: string }, unknown> {
  const { semel, job, slot, leaseMs, windowMs } = options;
  // The window counts from the end of the slot, which the key does not hold.
  const lengthMs = slot.span === undefined ? 0 : slot.span.endsAt - slot.span.startsAt;
  return semel.tool({
    name: contractName('run', job),
    effect: 'irreversible',
    per: slot.span === undefined ? 'ever' : minute('UTC'),
    lease: leaseMs,
    window: windowMs + lengthMs,
    // A failure at night is still there in the morning, and its attempts keep counting.
    failureWindow: windowMs + lengthMs,
    timeout: 'none',
    ifBusy: 'fail',
    // For people only.
    content: ['slot', 'held'],
    share: true,
    run: (_: { slot: string; held?: boolean }) => undefined as unknown,
    ...verifierTerms(options.verify, options, verifier),
  });
}
