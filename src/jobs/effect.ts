// One guarded effect: a command that is run once for its name and id. Its stdout is what later calls get. A command that
// failed may have done it, so that is in doubt, unless its exit code, a verifier or a person says more.

import type { Result } from '../call/index.ts';
import type { Per } from '../core/contract/period.ts';
import type { SemelError } from '../core/errors.ts';
import { shortDigest } from '../core/key/key.ts';
import type { CallOptions, RecordInfo, ToolFunction } from '../semel/index.ts';
import { type Asked, type Claimed, claim } from './claim.ts';
import { commonEnv } from './context.ts';
import { noteEnding, outlived, told } from './ending.ts';
import { claimingOf, type Guarding, verifying } from './guarding.ts';
import { type ChildEnding, mostBytes, runChild } from './life/child.ts';
import { type Holder, holderOf } from './life/holder.ts';
import { beginLife, lifeFolder } from './life/liveness.ts';
import { textOrBytes } from './output.ts';
import { isReserved } from './slots/run-id.ts';

interface EffectOptions extends Guarding {
  readonly contract: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly per: Per;
  readonly callOptions: CallOptions;
  readonly env: Readonly<Record<string, string>>;
  /** A step is done again after any failure; of an effect nobody knows. */
  readonly ifUnknown: 'hold' | 'rerun' | 'free';
  readonly notLandedExits: readonly number[];
  readonly windowMs: number | undefined;
  /** Whether stdout goes on to ours, besides being kept. */
  readonly passOn: boolean;
}

export type EffectReport =
  | {
      readonly kind: 'ran';
      readonly ending: ChildEnding;
      readonly key: string;
      readonly attempt: number;
    }
  /** It failed, and what it started still lives: the key stays with that. */
  | { readonly kind: 'left behind'; readonly ending: ChildEnding; readonly key: string }
  /** `ending` is that of this very call, where the verifier found afterwards that it had landed. */
  | {
      readonly kind: 'done';
      readonly value: EffectValue;
      readonly record: RecordInfo;
      /** It was done by another command line. */
      readonly isOther?: boolean;
      readonly ending?: ChildEnding;
    }
  | { readonly kind: 'busy'; readonly holder: Holder }
  | { readonly kind: 'refused'; readonly error: SemelError; readonly ending?: ChildEnding };

/** What is stored of an effect, or what a person said that it would have been. */
export type EffectValue =
  | { readonly stdout?: string | Uint8Array; readonly bytes?: number; readonly verified?: boolean }
  | string
  | undefined;

export async function runEffect(options: EffectOptions): Promise<EffectReport> {
  const { semel, facts, mark, callOptions, ifBusy, say } = options;
  // A digest: a command line may hold secrets.
  const identity = Object.keys(options.args).length === 0 ? { effect: options.contract } : options.args;
  const args = { ...identity, [commandField]: shortDigest('command', ...options.command) };
  const folder = lifeFolder(facts.kind, facts.location);
  const asked: Asked = { since: undefined };
  const tool = toolOf(options, asked);
  const { key, id } = await semel.keyOf(tool, args, callOptions);
  // Pipes are made only where something may have to be run.
  const known = await semel.records.get(key);
  if (known?.status === 'running' && ifBusy !== 'wait') {
    const { holder } = await holderOf(semel, folder, key);
    if (holder !== undefined) return { kind: 'busy', holder };
  }
  if (known?.status === 'succeeded' && !known.expired) {
    const replay = await semel.begin(tool, args, callOptions);
    if (!replay.execute) return replayed(replay.result, known);
    await replay.attempt.release();
  }
  const life = await beginLife(folder, mark);
  const claimed = await claim({ ...claimingOf(options, folder), tool, args, options: callOptions, asked });
  const report = claimed.kind === 'execute' ? await execute(claimed) : answer(claimed);
  const isOpen =
    report.kind === 'left behind' || (report.kind === 'refused' && report.error.code === 'UNRECORDED');
  if (!isOpen) life.end();
  return report;

  async function execute({ attempt }: Extract<Claimed, { kind: 'execute' }>): Promise<EffectReport> {
    const ending = await runChild({
      command: options.command,
      env: { ...options.env, ...commonEnv(semel, facts, attempt, options.isNamespaceChosen, [id]) },
      life,
      keep: 'all',
      passOn: options.passOn,
      timeoutMs: options.timeoutMs,
      graceMs: options.graceMs,
      signals: [attempt.signal],
      say,
    });
    const isTooLong = ending.exit === 0 && ending.stdout === undefined;
    const words = isTooLong ? 'printed more than is kept' : told(ending, options.timeoutMs);
    const failure = new Error(words);
    const didNotLand =
      ending.neverStarted ||
      options.ifUnknown === 'free' ||
      (options.notLandedExits.includes(ending.exit) && !ending.wasToldToEnd);
    // What it started may still do it: as long as that lives, nobody can say that it did not land.
    if (ending.exit !== 0 && !ending.neverStarted && (await outlived(ending, options.graceMs))) {
      await noteEnding(semel, key, attempt.attempt, ending);
      await ending.recorded();
      return { kind: 'left behind', ending, key };
    }
    // A step is what it printed: without that it is to be run again.
    const isDone = ending.exit === 0 && !(isTooLong && options.ifUnknown === 'free');
    const result = isDone
      ? await attempt.succeed(storedOf(ending))
      : await (didNotLand ? attempt.release(failure) : attempt.unknown(failure));
    await noteEnding(semel, key, attempt.attempt, ending);
    await ending.recorded();
    if (result.ok || (didNotLand && result.error.code === 'NOT_LANDED'))
      return { kind: 'ran', ending, key, attempt: attempt.attempt };
    return result.error.code === 'IN_DOUBT' && options.verify !== undefined
      ? askAtOnce(result.error, ending)
      : { kind: 'refused', error: result.error, ending };
  }

  /** "It landed" can be believed at once; "it did not" only later, and nothing is run a second time here. */
  async function askAtOnce(error: SemelError, ending: ChildEnding): Promise<EffectReport> {
    const asked = await semel.begin(tool, args, callOptions);
    if (asked.execute) {
      await asked.attempt.release(new Error('the verifier says that it did not land'));
      return { kind: 'ran', ending, key, attempt: asked.attempt.attempt };
    }
    // The command has run: a ledger that is away now must not be told as if it had not.
    const record = await semel.records.get(key).catch(() => undefined);
    if (asked.result.ok && record !== undefined)
      return { kind: 'done', value: asked.result.value as EffectValue, record, ending };
    return { kind: 'refused', error: asked.result.ok ? error : asked.result.error, ending };
  }
}

function answer(claimed: Exclude<Claimed, { kind: 'execute' }>): EffectReport {
  if (claimed.kind === 'done') return { ...claimed, value: claimed.value as EffectValue };
  return claimed;
}

type Fields = Readonly<Record<string, unknown>>;

/** What was kept no longer, or was never told, is done all the same. */
function replayed(result: Result, record: RecordInfo): EffectReport {
  const isOther = result.receipt.drift.includes(commandField);
  if (result.ok) return { kind: 'done', value: result.value as EffectValue, record, isOther };
  if (result.error.code === 'RESULT_OMITTED') return { kind: 'done', value: undefined, record, isOther };
  return { kind: 'refused', error: result.error };
}

/** Not part of the identity: another command line for the same intent is told, not run. */
const commandField = '$command';

function storedOf({ stdout, stdoutBytes }: ChildEnding): EffectValue {
  return stdout === undefined ? { bytes: stdoutBytes } : { stdout: textOrBytes(stdout) };
}

function toolOf(options: EffectOptions, asked: Asked): ToolFunction<Fields, unknown> {
  const { semel, contract, per, leaseMs, windowMs, ifUnknown, env } = options;
  return semel.tool({
    name: contract,
    effect: 'irreversible',
    per,
    lease: leaseMs,
    timeout: 'none',
    ifBusy: 'fail',
    onDoubt: ifUnknown === 'hold' ? 'hold' : 'rerun',
    content: [commandField],
    // A run and its steps are the job's, whoever starts it.
    share: isReserved(contract),
    run: (_: Fields) => undefined as unknown,
    ...(windowMs === undefined ? {} : { window: windowMs }),
    ...verifying(options, () => env, asked),
  });
}

/** Room for the longest output, encoded. */
export const resultBytes = 2 * mostBytes;
