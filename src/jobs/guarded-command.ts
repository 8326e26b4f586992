// The path that every guarded command takes: replay what is done, otherwise claim, run the command and record how it
// ended. What a claim stands for, and what a failure means, is up to the job and the effect.

import type { Result } from '../call/index.ts';
import { systemClock } from '../core/clock.ts';
import type { SemelError } from '../core/errors.ts';
import type { VerifyContext } from '../core/verification.ts';
import type { CallOptions, OpenAttempt, RecordInfo, Semel, ToolFunction } from '../semel/index.ts';
import type { StoreFacts } from '../store/store.ts';
import type { IfBusy, VerifierStart } from './claim.ts';
import { attemptEnv } from './context.ts';
import { noteEnding } from './ending.ts';
import { type ChildEnding, type ChildOptions, runChild } from './liveness/child.ts';
import { describeWait, type Holder } from './liveness/holder.ts';
import { askVerifier } from './verifier.ts';

export interface GuardOptions {
  readonly semel: Semel;
  readonly facts: StoreFacts;
  /** The pipe that shows whether this guard and its command are alive. */
  readonly pipeName: string;
  readonly isNamespaceChosen: boolean;
  readonly command: readonly string[];
  readonly ifBusy: IfBusy;
  readonly waitMs: number;
  /** The shell command that checks whether the effect landed. */
  readonly verify: string | undefined;
  readonly verifyAfterMs: number;
  readonly leaseMs: number;
  readonly timeoutMs: number;
  /** From TERM to KILL; also how long to wait for processes that the command left behind. */
  readonly graceMs: number;
  readonly say: (message: string) => void;
}

/** The stored result of a command, or the one that a person gave for it. */
export type StoredValue =
  | { readonly stdout?: string | Uint8Array; readonly bytes?: number; readonly verified?: boolean }
  | string
  | undefined;

export type Report = (
  | { readonly kind: 'ran'; readonly ending: ChildEnding; readonly attempt: number }
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
  /** Set if this call ran the command. */
  readonly ending?: ChildEnding;
  /** Processes that the command started are still alive, and keep the claim. */
  readonly leftBehind?: boolean;
  /** The lock is left to its lease: closing the ledger would release it. */
  readonly isLockKept?: boolean;
};

export function claimOptions({ semel, ifBusy, waitMs, say }: GuardOptions, folder: string) {
  return { semel, folder, ifBusy, waitMs, onWait: (holder: Holder) => say(describeWait(holder)) };
}

/** The part of a contract that runs the verifier, if there is one. */
export function verifierTerms(
  { semel, facts, isNamespaceChosen, verify, verifyAfterMs }: GuardOptions,
  env: () => Readonly<Record<string, string>>,
  verifier: VerifierStart,
) {
  if (verify === undefined) return {};
  return {
    verifyAfter: verifyAfterMs,
    verify: (_: unknown, ctx: VerifyContext) => {
      verifier.startedAt ??= systemClock.mono();
      const attempt = { attempt: ctx.attempts, fence: '', key: ctx.key };
      return askVerifier(
        verify,
        { ...env(), ...attemptEnv(semel, facts, attempt, isNamespaceChosen) },
        ctx.signal,
      );
    },
  };
}

/** Answers from a record that succeeded, without pipes or a claim. Undefined: the command has to run. */
export async function replay<Args>(
  semel: Semel,
  tool: ToolFunction<Args, unknown>,
  args: Args,
  options: CallOptions,
  record: RecordInfo | undefined,
): Promise<Report | undefined> {
  if (record?.status !== 'succeeded' || record.expired) return undefined;
  const begun = await semel.begin(tool, args, options);
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

/** The command failed, and the verifier found that its effect had landed. */
export async function reportVerified(
  semel: Semel,
  { value, receipt }: Extract<Result, { ok: true }>,
  ran: Extract<Report, { kind: 'ran' }>,
): Promise<Report> {
  // The command has run: an unreachable ledger must not make it look as if it had not.
  const record = await semel.records.get(receipt.key).catch(() => undefined);
  return record === undefined
    ? ran
    : { kind: 'done', value: value as StoredValue, record, ending: ran.ending };
}

interface Attempt extends Pick<ChildOptions, 'env' | 'liveness' | 'keep' | 'passOn'> {
  readonly key: string;
  /** Ids of the records that this guard holds. */
  readonly held: readonly string[];
  readonly signals: readonly AbortSignal[];
  /** Undefined leaves the claim with the processes that the command left behind. */
  settle(ending: ChildEnding): Promise<Result | undefined>;
}

/** Runs the command under a claim, settles the claim, and notes the ending in the record's history. */
export async function runAttempt(
  options: GuardOptions,
  attempt: OpenAttempt,
  { key, held, env, settle, ...child }: Attempt,
): Promise<{ readonly ending: ChildEnding; readonly result: Result | undefined }> {
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
