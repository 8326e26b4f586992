// One guarded effect: a command that runs once for its name and id. Its stdout is the result that later calls get. A
// command that failed may have landed, so it is in doubt unless its exit code, a verifier or a person says more.

import type { Per } from '../core/contract/period.ts';
import { commandField } from '../core/contract/words.ts';
import { shortDigest } from '../core/key/key.ts';
import type { CallOptions, OpenAttempt, ToolFunction } from '../semel/index.ts';
import { claim, type VerifierStart, withTool } from './claim.ts';
import { describeEnding, hasOutlived } from './ending.ts';
import {
  claimOptions,
  commandVerifier,
  type GuardOptions,
  type Report,
  replay,
  reportVerified,
  runAttempt,
  type StoredValue,
  verifierTerms,
} from './guarded-command.ts';
import { type ChildEnding, maxOutputBytes } from './liveness/child.ts';
import { findHolder } from './liveness/holder.ts';
import { beginLiveness, livenessFolder } from './liveness/liveness.ts';
import { textOrBytes } from './output.ts';
import { type Ids, isReserved } from './slots/run-id.ts';

interface EffectOptions extends GuardOptions {
  readonly contract: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** What may be worded differently. */
  readonly content?: Ids;
  readonly per: Per;
  readonly callOptions: CallOptions;
  readonly env: Readonly<Record<string, string>>;
  /** `free`: a step runs again after any failure. */
  readonly ifUnknown: 'hold' | 'rerun' | 'free';
  readonly notLandedExits: readonly number[];
  readonly windowMs: number | undefined;
  /** Whether stdout is passed on as well as kept. */
  readonly passOn: boolean;
}

export async function runEffect(options: EffectOptions): Promise<Report> {
  const { semel, facts, pipeName, callOptions, ifBusy } = options;
  const identity = Object.keys(options.args).length === 0 ? { effect: options.contract } : options.args;
  // A digest: a command line may hold secrets.
  const args = {
    ...identity,
    ...options.content,
    [commandField]: shortDigest('command', ...options.command),
  };
  const folder = livenessFolder(facts.kind, facts.location);
  const verifier: VerifierStart = { startedAt: undefined };
  const tool = () => effectTool(options, verifier);
  const { key, id } = await withTool(tool, (made) => semel.keyOf(made, args, callOptions));
  // Making pipes is slow, so first see whether anything has to run.
  const known = await semel.records.get(key);
  if (known?.status === 'running' && ifBusy !== 'wait') {
    const { holder } = await findHolder(semel, folder, key);
    if (holder !== undefined) return { kind: 'busy', holder };
  }
  const replayed = await replay(semel, tool, args, callOptions, known);
  if (replayed !== undefined) return replayed;
  const liveness = await beginLiveness(folder, pipeName);
  const claimed = await claim({
    ...claimOptions(options, folder),
    tool,
    args,
    options: callOptions,
    verifier,
  });
  const report: Report = claimed.kind === 'execute' ? await execute(claimed.attempt) : claimed;
  const isOpen = report.leftBehind || (report.kind === 'refused' && report.error.code === 'UNRECORDED');
  if (!isOpen) liveness.end();
  return report;

  async function execute(attempt: OpenAttempt): Promise<Report> {
    let didNotLand = false;
    const { ending, result } = await runAttempt(options, attempt, {
      key,
      held: [id],
      env: options.env,
      liveness,
      keep: 'all',
      passOn: options.passOn,
      signals: [attempt.signal],
      async settle(ending) {
        // While processes that it started are alive, they may still do it.
        if (ending.exit !== 0 && !ending.neverStarted && (await hasOutlived(ending, options.graceMs)))
          return undefined;
        const isTooLong = ending.exit === 0 && ending.stdout === undefined;
        const failure = new Error(
          isTooLong ? 'printed more than can be stored' : describeEnding(ending, options.timeoutMs),
        );
        didNotLand =
          ending.neverStarted ||
          options.ifUnknown === 'free' ||
          (options.notLandedExits.includes(ending.exit) && !ending.wasToldToEnd);
        // A step is what it printed: if that is not kept, the step has to run again.
        const isDone = ending.exit === 0 && !(isTooLong && options.ifUnknown === 'free');
        if (isDone) return attempt.succeed(storedValue(ending));
        return didNotLand ? attempt.release(failure) : attempt.unknown(failure);
      },
    });
    const ran = { kind: 'ran', ending, attempt: attempt.attempt } as const;
    if (result === undefined) return { ...ran, leftBehind: true };
    if (result.ok && ending.exit !== 0) return reportVerified(semel, result, ran);
    // "Did not land" also from the verifier, where it counts at once.
    if (result.ok || result.error.code === 'NOT_LANDED') return ran;
    return { kind: 'refused', error: result.error, ending };
  }
}

type Fields = Readonly<Record<string, unknown>>;

function storedValue({ stdout, stdoutBytes }: ChildEnding): StoredValue {
  return stdout === undefined ? { bytes: stdoutBytes } : { stdout: textOrBytes(stdout) };
}

function effectTool(options: EffectOptions, verifier: VerifierStart): ToolFunction<Fields, unknown> {
  const { semel, contract, content = {}, per, leaseMs, windowMs, ifUnknown, env } = options;
  return semel.tool({
    name: contract,
    effect: 'irreversible',
    per,
    lease: leaseMs,
    timeout: 'none',
    ifBusy: 'fail',
    onDoubt: ifUnknown === 'hold' ? 'hold' : 'rerun',
    content: [commandField, ...Object.keys(content)],
    // A run and its steps belong to the job, whichever caller starts it.
    share: isReserved(contract),
    run: (_: Fields) => undefined as unknown,
    ...(windowMs === undefined ? {} : { window: windowMs }),
    ...verifierTerms(commandVerifier(options, env), options, verifier),
  });
}

/** Room for the longest output, encoded. */
export const resultBytes = 2 * maxOutputBytes;
