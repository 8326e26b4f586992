// The path of everything that is guarded: replay what is done, otherwise claim, execute and record how it ended. What a
// claim stands for, and what a failure means, is up to the job and the effect; what is executed is a command here, and a function
// in src/jobs/library.

import type { Result } from '../call/index.ts';
import { systemClock } from '../core/clock.ts';
import type { SemelError } from '../core/errors.ts';
import type { Verification, VerifyContext } from '../core/verification.ts';
import type { CallOptions, OpenAttempt, RecordInfo, Semel } from '../semel/index.ts';
import type { StoreFacts } from '../store/store.ts';
import { type IfBusy, type MakeTool, type VerifierStart, withTool } from './claim.ts';
import { attemptEnv } from './context.ts';
import { describeEnding, hasOutlived, noteEnding } from './ending.ts';
import { type ChildEnding, type ChildOptions, runChild } from './liveness/child.ts';
import { describeWait, type Holder } from './liveness/holder.ts';
import { beginLiveness, type Liveness, livenessFolder } from './liveness/liveness.ts';
import { askVerifier } from './verifier.ts';

/** What a command and a function are guarded with. */
export interface GuardTerms {
  readonly semel: Semel;
  readonly facts: StoreFacts;
  readonly ifBusy: IfBusy;
  readonly waitMs: number;
  readonly leaseMs: number;
  readonly verifyAfterMs: number;
  /** Ends waits. */
  readonly signal?: AbortSignal | undefined;
  readonly say: (message: string) => void;
}

export interface GuardOptions extends GuardTerms {
  /** The pipe that shows whether this guard and its command are alive. */
  readonly pipeName: string;
  readonly isNamespaceChosen: boolean;
  readonly command: readonly string[];
  /** The shell command that checks whether the effect landed. */
  readonly verify: string | undefined;
  readonly timeoutMs: number;
  /** From TERM to KILL; also how long to wait for processes that the command left behind. */
  readonly graceMs: number;
}

/** The stored result of a command or a job, or the one that a person gave for it. */
export type StoredValue =
  | {
      readonly stdout?: string | Uint8Array;
      readonly bytes?: number;
      readonly verified?: boolean;
      /** What the function of a job returned. */
      readonly value?: unknown;
    }
  | string
  | undefined;

export type Report<Ending = ChildEnding> = (
  | { readonly kind: 'ran'; readonly ending: Ending; readonly attempt: number }
  | {
      readonly kind: 'done';
      readonly value: StoredValue;
      readonly record: RecordInfo;
      /** Fields in which the earlier call differed from this one. */
      readonly drift?: readonly string[];
    }
  | { readonly kind: 'busy'; readonly holder: Holder }
  | { readonly kind: 'refused'; readonly error: SemelError }
) & {
  /** Set if this call executed something. */
  readonly ending?: Ending;
  /** What was executed is still alive, and keeps the claim. */
  readonly leftBehind?: boolean;
};

/** How one execution ended, as far as a job has to know. */
export interface RunEnding {
  /** 0: it succeeded. */
  readonly exit: number;
  readonly neverStarted: boolean;
  /** Why it must not be tried again within this run. */
  readonly interruptedBy: string | undefined;
  readonly tookMs: number;
  readonly descendants: { areAlive(): boolean };
}

/** What a job does under its claims: run a command, or call a function. */
export interface Work<Ending extends RunEnding> {
  /** Begins to show that this process is alive. */
  begin(): Promise<Pick<Liveness, 'end'>>;
  execute(attempt: OpenAttempt, under: Under<Ending>): Promise<Executed<Ending>>;
  /** The same failure always gets the same words. */
  describe(ending: Ending): string;
  /** What is stored of a success. */
  resultOf(ending: Ending): object;
  /** Waits a while for what was left behind; true if it is still alive. */
  hasOutlived(ending: Ending): Promise<boolean>;
  /** It is still alive: `release` frees the lock, for work that can tell when it is gone. */
  leave?(ending: Ending, release: () => Promise<unknown>): void;
}

/** The claims that must hold while an execution runs. */
export interface Under<Ending> {
  readonly key: string;
  /** Ids of the records that are held. */
  readonly held: readonly string[];
  readonly signals: readonly AbortSignal[];
  /** Throws if one of them is lost. */
  ensure(): Promise<void>;
  /** Undefined leaves the claim with what was left behind. */
  settle(ending: Ending): Promise<Result | undefined>;
}

export interface Executed<Ending> {
  readonly ending: Ending;
  readonly result: Result | undefined;
}

export function claimOptions({ semel, ifBusy, waitMs, signal, say }: GuardTerms, folder: string) {
  return { semel, folder, ifBusy, waitMs, signal, onWait: (holder: Holder) => say(describeWait(holder)) };
}

export type Verify = (ctx: VerifyContext) => Verification | Promise<Verification>;

/** The part of a contract that runs the verifier, if there is one. */
export function verifierTerms(
  verify: Verify | undefined,
  { verifyAfterMs }: Pick<GuardTerms, 'verifyAfterMs'>,
  verifier: VerifierStart,
) {
  if (verify === undefined) return {};
  return {
    verifyAfter: verifyAfterMs,
    verify: (_: unknown, ctx: VerifyContext) => {
      verifier.startedAt ??= systemClock.mono();
      return verify(ctx);
    },
  };
}

export function commandVerifier(
  { semel, facts, isNamespaceChosen, verify }: GuardOptions,
  env: Readonly<Record<string, string>>,
): Verify | undefined {
  if (verify === undefined) return undefined;
  return (ctx) => {
    const attempt = { attempt: ctx.attempts, fence: '', key: ctx.key };
    return askVerifier(
      verify,
      { ...env, ...attemptEnv(semel, facts, attempt, isNamespaceChosen) },
      ctx.signal,
    );
  };
}

/** Answers from a record that succeeded, without pipes or a claim. Undefined: the command has to run. */
export async function replay<Args>(
  semel: Semel,
  tool: MakeTool<Args>,
  args: Args,
  options: CallOptions,
  record: RecordInfo | undefined,
): Promise<Report<never> | undefined> {
  if (record?.status !== 'succeeded' || record.expired) return undefined;
  const begun = await withTool(tool, (made) => semel.begin(made, args, options));
  if (begun.execute) {
    await begun.attempt.release();
    return undefined;
  }
  const { result } = begun;
  const { drift } = result.receipt;
  if (result.ok) return { kind: 'done', value: result.value as StoredValue, record, drift };
  // The result may be gone by now; that the effect was done is not.
  if (result.error.code === 'RESULT_OMITTED') return { kind: 'done', value: undefined, record, drift };
  return { kind: 'refused', error: result.error };
}

/** It failed, and the verifier found that its effect had landed. */
export async function reportVerified<Ending>(
  semel: Semel,
  { value, receipt }: Extract<Result, { ok: true }>,
  ran: Extract<Report<Ending>, { kind: 'ran' }>,
): Promise<Report<Ending>> {
  // It was executed: an unreachable ledger must not make it look as if it had not.
  const record = await semel.records.get(receipt.key).catch(() => undefined);
  return record === undefined
    ? ran
    : { kind: 'done', value: value as StoredValue, record, ending: ran.ending };
}

/** A job whose work is a command. */
export function commandWork(options: GuardOptions, env: Readonly<Record<string, string>>): Work<ChildEnding> {
  const { facts, pipeName, timeoutMs, graceMs } = options;
  let liveness: Liveness;
  return {
    async begin() {
      liveness = await beginLiveness(livenessFolder(facts.kind, facts.location), pipeName);
      return liveness;
    },
    execute: (attempt, under) => runAttempt(options, attempt, { ...under, env, liveness, keep: 'tail' }),
    describe: (ending) => describeEnding(ending, timeoutMs),
    resultOf: ({ tookMs }) => ({ exit: 0, tookMs: Math.round(tookMs) }),
    hasOutlived: (ending) => hasOutlived(ending, graceMs),
  };
}

interface Attempt
  extends Omit<Under<ChildEnding>, 'ensure'>,
    Pick<ChildOptions, 'env' | 'liveness' | 'keep' | 'passOn'> {}

/** Runs the command under a claim, settles the claim, and notes the ending in the record's history. */
export async function runAttempt(
  options: GuardOptions,
  attempt: OpenAttempt,
  { key, held, env, settle, ...child }: Attempt,
): Promise<Executed<ChildEnding>> {
  const { semel, facts, command, timeoutMs, graceMs, say } = options;
  let hasStarted = false;
  const ending = await runChild({
    ...child,
    command,
    onStart: () => {
      hasStarted = true;
    },
    env: { ...env, ...attemptEnv(semel, facts, attempt, options.isNamespaceChosen, held) },
    timeoutMs,
    graceMs,
    say,
  }).catch(async (error) => {
    // A command that did not start is not in doubt; one that did is, whatever failed here.
    if (!hasStarted) await attempt.release(error);
    throw error;
  });
  const result = await settle(ending);
  await noteEnding(semel, key, attempt.attempt, ending);
  await ending.recorded();
  return { ending, result };
}
