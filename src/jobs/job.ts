// A guarded run: the job's turn (never two at a time, across slots), then its slot (done once), then the command.

import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '../core/clock.ts';
import { formatDuration } from '../core/contract/duration.ts';
import { minute } from '../core/contract/period.ts';
import type { SemelError } from '../core/errors.ts';
import { sleep } from '../ledger/index.ts';
import type { OpenAttempt, RecordInfo } from '../semel/index.ts';
import { type Asked, type Claimed, claim, insideItself } from './claim.ts';
import { commonEnv, heldAbove, runEnv } from './context.ts';
import { lastEnding, neverStartedWords, noteEnding, notesWritten, outlived, told } from './ending.ts';
import { claimingOf, type Guarding, verifying } from './guarding.ts';
import { type ChildEnding, runChild } from './life/child.ts';
import { type Holder, holderOf, unlessStale } from './life/holder.ts';
import { beginLife, type Life, lifeFolder } from './life/liveness.ts';
import { recordsOf } from './slots/pick.ts';
import { checkRun, contractName, type Ids } from './slots/run-id.ts';
import type { JobSlot } from './slots/slot.ts';

interface JobOptions extends Guarding {
  readonly job: string;
  /** Job, slot and ids, for people. */
  readonly label: string;
  readonly ids: Ids;
  readonly slot: JobSlot;
  readonly again: string | undefined;
  /** What a failure means: run again, or nobody knows. */
  readonly afterFailure: 'rerun' | 'hold';
  readonly retries: number;
  readonly backoffMs: number;
  readonly windowMs: number;
  /** Said at the job's first run. */
  readonly hint: string | undefined;
}

export type JobReport = (
  | { readonly kind: 'ran'; readonly ending: ChildEnding; readonly attempt: number; readonly key: string }
  | { readonly kind: 'skipped'; readonly record: RecordInfo; readonly isVerified: boolean }
  | { readonly kind: 'busy'; readonly holder: Holder }
  | { readonly kind: 'refused'; readonly error: SemelError }
) & {
  /** Of the command, where this call ran it. */
  readonly ending?: ChildEnding;
  /** What the command started still lives, and holds the job's turn. */
  readonly leftBehind?: boolean;
};

export async function runJob(options: JobOptions): Promise<JobReport> {
  const { semel, facts, mark, job, ids, slot, again, ifBusy, say } = options;
  const { start } = slot;
  const folder = lifeFolder(facts.kind, facts.location);
  const args = { job, ...(Object.keys(ids).length === 0 ? {} : { ids }) };
  // A slot is an instant and a length: the name of its zone may be spelt in many ways.
  const slotArgs = { ...args, per: slot.unit, slot: slot.name, ...(start === undefined ? {} : { start }) };
  const slotOptions = { at: slot.span?.startsAt ?? 0, ...(again === undefined ? {} : { again }) };
  // Whatever is wrong with the names is told before anything is claimed.
  runOf(options);
  const turnTool = turnOf(options);

  const asked: Asked = { since: undefined };
  const slotTool = slotToolOf(options, asked);
  const { key: slotKey, id: slotId } = await semel.keyOf(slotTool, slotArgs, slotOptions);
  const known = await semel.records.get(slotKey);
  // What is done needs no turn, and what is under way no pipes.
  if (known?.status === 'succeeded' && !known.expired) {
    const replay = await semel.begin(slotTool, slotArgs, slotOptions);
    if (!replay.execute) {
      const { result } = replay;
      // What it returned may be gone by now; that it was done is not.
      const isDone = result.ok || result.error.code === 'RESULT_OMITTED';
      return isDone
        ? { kind: 'skipped', record: known, isVerified: false }
        : { kind: 'refused', error: result.error };
    }
    await replay.attempt.release();
  }
  const { key: turnKey, id: turnId } = await semel.keyOf(turnTool, args);
  if (heldAbove().includes(turnId)) return { kind: 'refused', error: insideItself(job) };
  if (ifBusy !== 'wait') {
    const { holder } = await holderOf(semel, folder, turnKey);
    if (holder !== undefined) return { kind: 'busy', holder };
  }

  const life = await beginLife(folder, mark);
  const claiming = claimingOf(options, folder);
  const turn = await claimTurn();
  if (turn.kind !== 'execute') {
    life.end();
    return refusalOf(turn);
  }
  if (options.hint !== undefined && turn.before === undefined) say(options.hint);
  const report = await begin(turn.attempt).catch(async (error) => {
    await turn.attempt.release();
    life.end();
    throw error;
  });
  // The turn stays with what the command left behind: nobody else begins until that is gone.
  if (report.ending?.descendants.lives()) return { ...report, leftBehind: true };
  // What was noted of the attempt goes to the disk with it.
  const [given] = await Promise.all([turn.attempt.release(), notesWritten(semel, slotKey)]);
  const isTold = given.ok || given.error.code === 'NOT_LANDED';
  // Where the ledger could not be told, the next one learns from the pipe that nobody is left.
  if (isTold && !(report.kind === 'refused' && report.error.code === 'UNRECORDED')) life.end();
  return report;

  async function begin(held: OpenAttempt): Promise<JobReport> {
    if (slot.unit === 'none') await closeCrashed(options, folder);
    return inTurn(held);
  }

  async function inTurn(held: OpenAttempt): Promise<JobReport> {
    let last: (JobReport & { readonly ending: ChildEnding }) | undefined;
    for (let tries = 1; ; tries += 1) {
      const mayRun = tries === 1 || (tries <= options.retries + 1 && !(await stillLives(last?.ending)));
      if (last !== undefined && mayRun) await backOff(last.ending, tries - 1);
      try {
        const claimed = await claimSlot(last !== undefined && mayRun);
        // What the last try left behind is asked about, however this one ends.
        if (claimed.kind !== 'execute')
          return last === undefined ? refusalOf(claimed) : { ending: last.ending, ...refusalOf(claimed) };
        if (last !== undefined && !mayRun) {
          // The verifier says that it is not done, and that was the last try.
          await claimed.attempt.release(new Error(told(last.ending, options.timeoutMs)));
          return { kind: 'ran', ending: last.ending, attempt: claimed.attempt.attempt, key: slotKey };
        }
        const report = await attemptOnce(options, life, claimed, held, {
          key: slotKey,
          held: [turnId, slotId],
        });
        const ending = failureIn(report);
        const isLast = tries > options.retries && options.verify === undefined;
        if (ending === undefined || isLast) return report;
        last = { ...report, ending };
      } catch (error) {
        if (last === undefined) throw error;
        // A command has run, and the ledger knows: that it cannot be tried again now does not make it undone.
        say(`${options.label} is not tried again: ${(error as Error).message}`);
        return last;
      }
    }
  }

  async function backOff(failed: ChildEnding, times: number): Promise<void> {
    const pauseMs = Math.min(longestBackoffMs, options.backoffMs * 2 ** (times - 1));
    const again = `it is tried again in ${formatDuration(pauseMs)}`;
    say(`${options.label} ${told(failed, options.timeoutMs)}; ${again}`);
    await sleep(systemClock, pauseMs);
  }

  async function stillLives(failed: ChildEnding | undefined): Promise<boolean> {
    if (failed === undefined || !(await outlived(failed, options.graceMs))) return false;
    say(`${options.label}: what the command started still runs`);
    return true;
  }

  /** A turn means nothing once it is over: whoever settled it, by hand or by an import, does not stop the job. */
  async function claimTurn(): Promise<Claimed> {
    for (;;) {
      const claimed = await claim({ ...claiming, tool: turnTool, args, options: {} });
      const record =
        claimed.kind === 'done' || claimed.kind === 'refused' ? await semel.records.get(turnKey) : undefined;
      if (record === undefined) return claimed;
      const by = { by: 'semel run', note: 'a turn is never done' };
      const isSettled = record.status === 'succeeded' || record.status === 'failed';
      if (!record.inDoubt && !isSettled) return claimed;
      await unlessStale(
        isSettled
          ? semel.records.forget(record.ref, by)
          : semel.doubts.resolve(record.ref, 'notLanded', { ...by, force: true }),
      );
    }
  }

  /** Asks the verifier, where there is one and something to ask; `isPatient` waits until "not done" can be believed. */
  async function claimSlot(isPatient: boolean): Promise<Claimed> {
    for (;;) {
      const claimed = await claim({
        ...claiming,
        asked,
        tool: slotTool,
        args: slotArgs,
        options: slotOptions,
      });
      if (claimed.kind !== 'refused' || claimed.error.code !== 'IN_DOUBT') return claimed;
      if (await runsAgain(options, slotKey)) continue;
      const { retryAfterMs } = claimed.error;
      if (!isPatient || retryAfterMs === undefined) return claimed;
      say(`${options.label}: whether it is done can be told in ${formatDuration(retryAfterMs)}`);
      await sleep(systemClock, retryAfterMs);
    }
  }
}

/** A command that ran and failed, and that nobody interrupted. */
function failureIn(report: JobReport): ChildEnding | undefined {
  if (report.kind !== 'ran' && report.kind !== 'refused') return undefined;
  if (report.kind === 'refused' && report.error.code !== 'IN_DOUBT') return undefined;
  const { ending } = report;
  return ending === undefined || ending.exit === 0 || ending.interruptedBy !== undefined ? undefined : ending;
}

const longestBackoffMs = 3_600_000;

async function attemptOnce(
  options: JobOptions,
  life: Life,
  { attempt, before }: Extract<Claimed, { kind: 'execute' }>,
  turn: OpenAttempt,
  { key, held }: { readonly key: string; readonly held: readonly string[] },
): Promise<JobReport> {
  const { semel, facts, ids, slot, command, timeoutMs, graceMs, verify, afterFailure, say } = options;
  if (attempt.attempt > 1) {
    const repeats = neverStartedWords.includes(before?.error?.message ?? '')
      ? ''
      : '; effects not under `semel once` may repeat';
    const ended = await lastEnding(semel, before);
    say(`attempt ${attempt.attempt} of ${options.label}; attempt ${attempt.attempt - 1} ${ended}${repeats}`);
  }
  const ending = await runChild({
    command,
    env: {
      ...commonEnv(semel, facts, attempt, options.isNamespaceChosen, held),
      ...runEnv(semel, runOf(options), slot, ids),
    },
    life,
    keep: 'tail',
    timeoutMs,
    graceMs,
    signals: [attempt.signal, turn.signal],
    say,
  }).catch(async (error) => {
    // It was not started, so nobody is left in doubt about it.
    await attempt.release(error);
    throw error;
  });
  const isOpen = !ending.neverStarted && (verify !== undefined || afterFailure === 'hold');
  const failure = () => new Error(`${told(ending, timeoutMs)}${isOpen ? heldWord : ''}`);
  const result =
    ending.exit === 0
      ? await attempt.succeed({ exit: 0, tookMs: Math.round(ending.tookMs) })
      : await (isOpen ? attempt.unknown(failure()) : attempt.release(failure()));
  await noteEnding(semel, key, attempt.attempt, ending);
  await ending.recorded();
  // An earlier attempt that died leaves its doubt; where runs are repeated, that is no reason to ask anybody.
  const isExpected =
    result.ok || result.error.code === 'NOT_LANDED' || (!isOpen && result.error.code === 'IN_DOUBT');
  if (isExpected) return { kind: 'ran', ending, attempt: attempt.attempt, key };
  return { kind: 'refused', error: result.error, ending };
}

function runOf({ job, slot, ids, again }: JobOptions): string {
  return checkRun({
    job,
    slot: slot.name,
    startsAt: slot.span?.startsAt,
    ids,
    again,
    start: slot.start,
  });
}

/**
 * No later start has the key of a run without a slot: whoever holds the job's turn next closes the one that crashed, or
 * it would be in doubt for good. A failure that somebody wanted to be asked about stays open.
 */
async function closeCrashed({ semel, job, ids }: JobOptions, folder: string): Promise<void> {
  const contract = contractName('run', job);
  for (const status of ['running', 'unknown'] as const) {
    for await (const { key, args } of recordsOf(semel, { contract, status })) {
      const run = args as { per?: unknown; ids?: Ids } | undefined;
      if (run?.per !== 'none' || !isDeepStrictEqual(run.ids ?? {}, ids)) continue;
      const { holder, record } = await holderOf(semel, folder, key);
      const isCrashed = record?.inDoubt && (record.error ?? died).code === died.code;
      if (holder !== undefined || !isCrashed) continue;
      const by = { by: 'semel run', note: 'the next run has the turn' };
      await unlessStale(semel.doubts.resolve(record.ref, { abandon: 'its processes are gone' }, by));
    }
  }
}

const died = { code: 'DIED' };

function refusalOf(claimed: Exclude<Claimed, { kind: 'execute' }>): JobReport {
  if (claimed.kind === 'done') {
    const isVerified = (claimed.value as { verified?: unknown } | undefined)?.verified === true;
    return { kind: 'skipped', record: claimed.record, isVerified };
  }
  return claimed;
}

/** In the words of the record: whoever starts the job without the option later does not run it again by that. */
const heldWord = '; held';

/** What died is run again, as what failed is; not what somebody wanted to be held, or to be asked about. */
async function runsAgain({ semel, afterFailure, verify }: JobOptions, key: string): Promise<boolean> {
  const record = await semel.records.get(key);
  if (record === undefined || afterFailure === 'hold' || verify !== undefined) return false;
  if (!record.inDoubt || record.error?.message.endsWith(heldWord)) return false;
  await unlessStale(
    semel.doubts.resolve(record.ref, 'runAgain', { by: 'semel run', note: 'a run may be repeated' }),
  );
  return true;
}

/** Mutual exclusion only: nothing of it is ever dispatched, so a turn that is over, or whose holder is gone, is free. */
function turnOf({ semel, job, leaseMs }: JobOptions) {
  return semel.tool({
    name: contractName('turn', job),
    effect: 'write-non-idempotent',
    per: 'ever',
    dispatch: 'explicit',
    lease: leaseMs,
    timeout: 'none',
    ifBusy: 'fail',
    maxAttempts: Number.MAX_SAFE_INTEGER,
    share: true,
    run: (_: object) => undefined,
  });
}

function slotToolOf(options: JobOptions, asked: Asked) {
  const { semel, job, slot, ids, leaseMs, windowMs } = options;
  // Counted from the end of the slot, which the key does not know.
  const lengthMs = slot.span === undefined ? 0 : slot.span.endsAt - slot.span.startsAt;
  return semel.tool({
    name: contractName('run', job),
    effect: 'irreversible',
    per: slot.span === undefined ? 'ever' : minute('UTC'),
    lease: leaseMs,
    window: windowMs + lengthMs,
    // A job that failed at night is still known in the morning, and its attempts go on being counted.
    failureWindow: windowMs + lengthMs,
    timeout: 'none',
    ifBusy: 'fail',
    // Its name is for people.
    content: ['slot'],
    share: true,
    run: (_: { slot: string }) => undefined as unknown,
    ...verifying(options, () => runEnv(semel, runOf(options), slot, ids), asked),
  });
}
