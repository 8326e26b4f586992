// A guarded run: the job's turn (never two at a time, across slots), then its slot (done once), then the command.

import type { SemelError } from '../core/errors.ts';
import type { OpenAttempt, RecordInfo, Semel } from '../semel/index.ts';
import type { StoreFacts } from '../store/store.ts';
import { type ChildEnding, runChild } from './child.ts';
import { type Asked, type Claimed, claim, type IfBusy } from './claim.ts';
import { commonEnv, runEnv } from './context.ts';
import { noteEnding, told } from './ending.ts';
import { type Holder, holderOf } from './holder.ts';
import { beginLife, type Life, lifeFolder } from './life.ts';
import { checkRun, contractName, type Ids } from './run-id.ts';
import type { JobSlot } from './slot.ts';
import { askVerifier } from './verifier.ts';

export interface JobOptions {
  readonly semel: Semel;
  readonly facts: StoreFacts;
  /** Names the pipe that tells whether this guard and its command live. */
  readonly mark: string;
  readonly isNamespaceChosen: boolean;
  readonly job: string;
  readonly ids: Ids;
  readonly slot: JobSlot;
  /** Tells two runs of `--per none` apart. */
  readonly start: string | undefined;
  readonly command: readonly string[];
  readonly again: string | undefined;
  readonly ifBusy: IfBusy;
  readonly waitMs: number;
  readonly verify: string | undefined;
  readonly verifyAfterMs: number;
  /** What a failure means: run again, or nobody knows. */
  readonly afterFailure: 'rerun' | 'hold';
  readonly retries: number;
  readonly backoffMs: number;
  readonly leaseMs: number;
  readonly windowMs: number;
  readonly timeoutMs: number;
  readonly graceMs: number;
  readonly say: (message: string) => void;
}

export type JobReport =
  | { readonly kind: 'ran'; readonly ending: ChildEnding; readonly attempt: number; readonly key: string }
  | { readonly kind: 'skipped'; readonly record: RecordInfo; readonly isVerified: boolean }
  | { readonly kind: 'busy'; readonly holder: Holder }
  | { readonly kind: 'refused'; readonly error: SemelError; readonly ending?: ChildEnding };

export async function runJob(options: JobOptions): Promise<JobReport> {
  const { semel, facts, mark, job, ids, slot, start, again, ifBusy, waitMs, say } = options;
  const folder = lifeFolder(facts.kind, facts.location);
  const args = { job, ...(Object.keys(ids).length === 0 ? {} : { ids }) };
  const slotArgs = start === undefined ? args : { ...args, start };
  const slotOptions = { at: slot.at, ...(again === undefined ? {} : { again }) };
  const turnTool = turnOf(options);
  const asked: Asked = { since: undefined };
  const slotTool = slotToolOf(options, asked);

  // What is done needs no turn, and what is under way no pipes.
  const slotKey = (await semel.keyOf(slotTool, slotArgs, slotOptions)).key;
  const known = await semel.records.get(slotKey);
  if (known?.status === 'succeeded') {
    const replay = await semel.begin(slotTool, slotArgs, slotOptions);
    if (!replay.execute && replay.result.ok) return { kind: 'skipped', record: known, isVerified: false };
    if (replay.execute) await replay.attempt.release();
  }
  const turnKey = (await semel.keyOf(turnTool, args)).key;
  if (ifBusy !== 'wait') {
    const { holder } = await holderOf(semel, folder, turnKey);
    if (holder !== undefined) return { kind: 'busy', holder };
  }

  const life = await beginLife(folder, mark);
  const claiming = {
    semel,
    folder,
    ifBusy,
    waitMs,
    onWait: (holder: Holder) => say(waiting(holder)),
  };
  const turn = await claim({ ...claiming, tool: turnTool, args, options: {} });
  if (turn.kind !== 'execute') {
    life.end();
    return refusalOf(turn);
  }
  if (slot.isNearBoundary && turn.before === undefined)
    say(
      `${slot.name} has just begun: a late start of the slot before would look the same; --cron or --at tells them apart`,
    );
  const report = await inTurn(turn.attempt);
  const given = await turn.attempt.release();
  const isTold = given.ok || given.error.code === 'NOT_LANDED';
  // Where the ledger could not be told, the next one learns from the pipe that nobody is left.
  if (isTold && !(report.kind === 'refused' && report.error.code === 'UNRECORDED')) life.end();
  return report;

  async function inTurn(held: OpenAttempt): Promise<JobReport> {
    for (let tried = 0; ; tried += 1) {
      const claimed = await claim({
        ...claiming,
        asked,
        tool: slotTool,
        args: slotArgs,
        options: slotOptions,
      });
      if (claimed.kind !== 'execute') return refusalOf(claimed);
      const report = await attemptOnce(options, life, claimed, held, slotKey);
      const mayTryAgain =
        report.kind === 'ran' &&
        report.ending.exit !== 0 &&
        report.ending.interruptedBy === undefined &&
        tried < options.retries;
      if (!mayTryAgain) return report;
      const pauseMs = Math.min(longestBackoffMs, options.backoffMs * 2 ** tried);
      say(
        `${job} ${slot.name} ${told(report.ending, options.timeoutMs)}; it is tried again in ${Math.ceil(pauseMs / 1000)}s`,
      );
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}

const longestBackoffMs = 3_600_000;

async function attemptOnce(
  options: JobOptions,
  life: Life,
  { attempt, before }: Extract<Claimed, { kind: 'execute' }>,
  turn: OpenAttempt,
  key: string,
): Promise<JobReport> {
  const { semel, facts, job, ids, slot, command, timeoutMs, graceMs, verify, afterFailure, say } = options;
  if (attempt.attempt > 1)
    say(
      `attempt ${attempt.attempt} of ${job} ${slot.name}; attempt ${attempt.attempt - 1} ${lastEnding(before)}; effects not under \`semel once\` may repeat`,
    );
  const run = checkRun({ job, slot: slot.name, ids, again: options.again });
  const ending = await runChild({
    command,
    env: { ...commonEnv(semel, facts, attempt, options.isNamespaceChosen), ...runEnv(semel, run, slot) },
    life,
    keep: 'tail',
    timeoutMs,
    graceMs,
    signal: AbortSignal.any([attempt.signal, turn.signal]),
  });
  await noteEnding(semel, key, attempt.attempt, ending);
  const isOpen = !ending.neverStarted && (verify !== undefined || afterFailure === 'hold');
  const failure = () => new Error(told(ending, timeoutMs));
  const result =
    ending.exit === 0
      ? await attempt.succeed({ exit: 0, tookMs: Math.round(ending.tookMs) })
      : await (isOpen ? attempt.unknown(failure()) : attempt.release(failure()));
  const isExpected = result.ok || result.error.code === 'NOT_LANDED' || result.error.code === 'FAILED';
  if (isExpected) return { kind: 'ran', ending, attempt: attempt.attempt, key };
  return { kind: 'refused', error: result.error, ending };
}

function lastEnding(before: RecordInfo | undefined): string {
  if (before?.error?.code === 'DIED' || before?.error === undefined) return 'died';
  return before.error.message;
}

function refusalOf(claimed: Exclude<Claimed, { kind: 'execute' }>): JobReport {
  if (claimed.kind === 'done') {
    const isVerified = (claimed.value as { verified?: unknown } | undefined)?.verified === true;
    return { kind: 'skipped', record: claimed.record, isVerified };
  }
  return claimed;
}

export function waiting({ record }: Holder): string {
  return `waiting for ${record.owner.replace(/#.*/, '')}, which has been at it since ${record.updatedAt.toISOString()}`;
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
    run: (_: object) => undefined,
  });
}

function slotToolOf(
  { semel, facts, job, slot, leaseMs, windowMs, verify, verifyAfterMs, afterFailure, ...rest }: JobOptions,
  asked: Asked,
) {
  return semel.tool({
    name: contractName('run', job),
    effect: 'irreversible',
    per: slot.per,
    lease: leaseMs,
    window: windowMs,
    timeout: 'none',
    ifBusy: 'fail',
    onDoubt: afterFailure === 'rerun' && verify === undefined ? 'rerun' : 'hold',
    run: (_: object) => undefined as unknown,
    ...(verify === undefined
      ? {}
      : {
          // The command had ended, or was seen to be gone.
          verifyAfter: leaseMs + verifyAfterMs,
          verify: (_: object, ctx) => {
            asked.since ??= performance.now();
            const attempt = { attempt: ctx.attempts, fence: '', key: ctx.key };
            const run = checkRun({ job, slot: slot.name, ids: rest.ids, again: rest.again });
            const env = {
              ...commonEnv(semel, facts, attempt, rest.isNamespaceChosen),
              ...runEnv(semel, run, slot),
            };
            return askVerifier(verify, env, ctx.signal);
          },
        }),
  });
}
