// The steps of a run: `step` remembers what was computed, `once` lands an effect once, `artifact` leaves a file. Each is a
// record through the pipeline, and each has its place in the run's order.

import { AsyncLocalStorage } from 'node:async_hooks';
import { type AttemptContext, currentCall, type Result } from '../../call/index.ts';
import { SemelError } from '../../core/errors.ts';
import { canonicalJson } from '../../core/key/canonical-json.ts';
import { shortDigest } from '../../core/key/key.ts';
import { isGeneratorFunction } from '../../core/plain.ts';
import { isSignal, NotLanded } from '../../core/signals.ts';
import { checkText } from '../../core/text.ts';
import { checkOnceId, forgetTool, type OnceOptions, type Semel, warnerOf } from '../../semel/index.ts';
import type { RunContext } from '../context.ts';
import { contractName, isReserved } from '../slots/run-id.ts';
import {
  type Artifact,
  type ArtifactOptions,
  artifactParts,
  findProblem,
  lostArtifact,
  type Produce,
} from './artifact.ts';
import type { Entry, Order, Sequence } from './order.ts';

type OnceEffect<Value> = (ctx: AttemptContext<undefined>) => Value | Promise<Value>;

export interface Steps {
  /**
   * Computes a value once per run, and remembers it: a later attempt of the run gets the same. If the process dies in the middle, or
   * it throws, it runs again. Steps may contain steps, and run side by side.
   */
  step<Value>(name: string, compute: () => Value | Promise<Value>): Promise<Awaited<Value>>;
  /** `args` are what it depends on: with other args, the step is another one. */
  step<Args, Value>(
    name: string,
    args: Args,
    compute: (args: Args) => Value | Promise<Value>,
  ): Promise<Awaited<Value>>;
  /** The run's plan: the first one is kept. */
  plan<Value>(make: () => Value | Promise<Value>): Promise<Awaited<Value>>;
  /**
   * An effect that lands once per run; with an `id`, once ever. What may have landed is in doubt and is not repeated, as with
   * `semel.once`.
   */
  once<Value>(name: string, effect: OnceEffect<Value>): Promise<Awaited<Value>>;
  once<Value>(name: string, id: unknown, effect: OnceEffect<Value>): Promise<Awaited<Value>>;
  once<Value, Id = unknown>(
    name: string,
    id: Id,
    options: OnceOptions<NoInfer<Id>, NoInfer<Awaited<Value>>>,
    effect: OnceEffect<Value>,
  ): Promise<Awaited<Value>>;
  /**
   * A file that is there whole or not at all, produced once per run. A later attempt finds it by its hash. A path that ends with a
   * slash names a folder: the file is then named after the job, the slot and the ids.
   */
  artifact(path: string, produce: Produce, options?: ArtifactOptions): Promise<Artifact>;
}

interface StepsOptions {
  readonly semel: Semel;
  readonly run: RunContext;
  readonly label: string;
  readonly leaseMs: number;
  readonly order: Order;
  readonly signal: AbortSignal;
  /** Throws if the run has lost its lock or its slot. */
  readonly ensure: () => Promise<void>;
}

export interface RunSteps extends Steps {
  /** Throws if steps are missing that an earlier attempt made. */
  finish(): Promise<void>;
}

export function createSteps({ semel, run, label, leaseMs, order, signal, ensure }: StepsOptions): RunSteps {
  const own: Place = { sequence: order.sequence([]), call: currentCall() };
  const inside = new AsyncLocalStorage<Place>();
  /** The step that first called each `once`: it lands once per run, wherever it is called. */
  const askedIn = new Map<string, string>();

  const steps: Steps = {
    async step<Value>(name: string, ...rest: readonly unknown[]) {
      const [args, compute] = rest.length === 1 ? [undefined, rest[0]] : rest;
      checkFunction('step', name, compute);
      return remember<Value>({ kind: 'step', name, args }, (identity, inner) =>
        callStep(identity, inner, { run: () => (compute as (args: unknown) => Value)(args) }),
      );
    },
    plan: (make) =>
      remember({ kind: 'step', name: 'plan', args: undefined }, (identity, inner) => {
        checkFunction('plan', 'plan', make);
        return callStep(identity, inner, { run: make });
      }),
    async once<Value>(name: string, ...rest: readonly unknown[]) {
      const effect = rest.at(-1);
      checkFunction('once', name, effect);
      const [id, options = {}] = rest.slice(0, -1) as [unknown, OnceOptions<unknown, never> | undefined];
      if (isReserved(name))
        throw new SemelError(
          'INVALID_ARGS',
          `${name}: names that start with run., lock., step., pick. or step-order. are reserved for jobs.`,
          { path: 'name', next: 'Use another name.' },
        );
      if (rest.length === 2) checkGivenId(name, id);
      const contract = contractName(undefined, name);
      return remember<Value>({ kind: 'once', name, args: id }, (_, inner) =>
        semel.once(
          contract,
          // As `semel once` does without ids.
          id ?? { effect: contract },
          {
            // Remembered as long as the steps, not just for a day.
            ...(options.per === undefined
              ? { per: id === undefined ? 'run' : 'ever', window: run.windowMs }
              : {}),
            signal,
            ...options,
            run: run.text,
          },
          // Its work is done, so it need not repeat the steps of an earlier attempt.
          async (ctx) => {
            const value = await within(inner, () => (effect as OnceEffect<Value>)(ctx));
            await inner.watch.finish();
            return value;
          },
        ),
      );
    },
    async artifact(path, produce, options = {}) {
      checkFunction('artifact', path, produce, true);
      const parts = artifactParts(path, run, produce);
      return remember<Artifact>(
        { kind: 'artifact', name: path, args: undefined },
        async (identity, inner) => {
          const found = await callStep<Artifact>(identity, inner, parts);
          const problem = await findProblem(parts.path, found);
          if (problem === undefined) return found;
          if (options.repeatable !== true) throw lostArtifact(label, path, found, problem);
          await forgetStep(identity);
          return callStep<Artifact>(identity, inner, parts);
        },
      );
    },
  };
  /** An error that the function does not wait for is that of its run, or of the step around it. */
  const watched = <Take extends (...given: never[]) => Promise<unknown>>(take: Take) =>
    ((...given) => (inside.getStore() ?? own).sequence.watch.of(take(...given))) as Take;
  return {
    step: watched(steps.step),
    plan: watched(steps.plan),
    once: watched(steps.once),
    artifact: watched(steps.artifact),
    finish: () => own.sequence.finish(),
  };

  /** Gives a step its place in the order, then lets `perform` claim it. */
  async function remember<Value>(
    { kind, name, args }: Pick<Entry, 'kind' | 'name'> & { readonly args: unknown },
    perform: (identity: StepIdentity, inner: Sequence) => Promise<unknown>,
  ): Promise<Awaited<Value>> {
    checkText('name', name);
    if (signal.aborted) throw runIsOver(label, name, signal);
    order.check();
    const place = inside.getStore() ?? own;
    const outer = place.sequence;
    const isApart = outer.isApart || isInAnotherCall(place);
    const identity: StepIdentity = {
      step: name,
      ...(kind === 'artifact' ? { artifact: true } : {}),
      ...(outer.path.length === 0 ? {} : { in: outer.path }),
      ...(args === undefined ? {} : { args }),
    };
    const digest = shortDigest('args', args === undefined ? '' : canonicalJson(args));
    const step = { kind, name, args: digest };
    const { isInOrder, isRepeated, settle } = isApart
      ? outer.askApart(step)
      : outer.ask(step, kind === 'once' ? undefined : () => keyOfStep(identity));
    try {
      // If the run ends meanwhile, the call is refused by its signal.
      await isInOrder;
      await ensure();
      if (isRepeated || (kind === 'once' && isAskedElsewhere(`${digest} ${name}`, outer.path)))
        warnOfRepeat(name);
      return (await perform(identity, order.sequence([...outer.path, name], isApart))) as Awaited<Value>;
    } finally {
      settle();
    }
  }

  function within<T>(sequence: Sequence, work: () => T): T {
    return inside.run({ sequence, call: currentCall() }, work);
  }

  /** Runs a step's code: steps it calls are nested in it. */
  async function enter<T>(inner: Sequence, { attempt }: { attempt: number }, work: () => T | Promise<T>) {
    const value = await within(inner, work);
    // At its first attempt nothing can be recorded inside it.
    await (attempt > 1 || !inner.isEmpty ? inner : inner.watch).finish();
    return value;
  }

  async function callStep<Value>(
    identity: StepIdentity,
    inner: Sequence,
    { run: compute, prepare }: StepParts,
  ): Promise<Awaited<Value>> {
    let thrown: { readonly error: unknown } | undefined;
    /** Whatever it throws, a step may run again; its own error reaches the caller as it is. */
    const freely = async <T>(work: () => Promise<T>): Promise<T> => {
      try {
        return await work();
      } catch (error) {
        thrown = { error };
        throw new NotLanded(error instanceof Error ? error.message : String(error), { cause: error });
      }
    };
    const tool = stepTool(
      identity,
      (ctx) => freely(() => enter(inner, ctx, () => compute(ctx.prepared, ctx))),
      prepare && ((ctx) => freely(async () => prepare(ctx))),
    );
    const calling: Promise<Result> = tool.try(identity, { run: run.text, signal });
    const warn = warnerOf(tool);
    forgetTool(tool);
    const result = await calling;
    if (result.ok) {
      if (result.receipt.omitted !== undefined)
        warn?.(
          `${label}: what the step ${identity.step} returned cannot be stored (${result.receipt.omitted}), so a later attempt of the run computes it again.`,
        );
      return result.value as Awaited<Value>;
    }
    if (result.error.code === 'RESULT_OMITTED') {
      await forgetStep(identity);
      return callStep(identity, inner, { run: compute, prepare });
    }
    // A word of the step's code about the step must not be taken for one about the effect around it.
    throw thrown === undefined || isSignal(thrown.error) ? result.error : thrown.error;
  }

  function stepTool(
    identity: StepIdentity,
    compute: (ctx: AttemptContext<unknown>) => Promise<unknown>,
    prepare?: (ctx: AttemptContext<unknown>) => Promise<unknown>,
  ) {
    return semel.tool({
      ...stepTerms(identity.step, leaseMs, run.windowMs),
      run: (_: StepIdentity, ctx: AttemptContext<unknown>) => compute(ctx),
      ...(prepare === undefined
        ? {}
        : { prepare: (_: StepIdentity, ctx: AttemptContext<unknown>) => prepare(ctx) }),
    });
  }

  async function keyOfStep(identity: StepIdentity): Promise<string> {
    const tool = stepTool(identity, async () => undefined);
    const finding = semel.keyOf(tool, identity, { run: run.text });
    forgetTool(tool);
    return (await finding).key;
  }

  /** Its result is gone: the next call runs it. */
  async function forgetStep(identity: StepIdentity): Promise<void> {
    const record = await semel.records.get(await keyOfStep(identity));
    if (record?.status === 'succeeded')
      await semel.records.forget(record.ref, { by: 'semel job', note: 'its result is gone' });
  }

  function isAskedElsewhere(effect: string, path: readonly string[]): boolean {
    const place = JSON.stringify(path);
    const first = askedIn.get(effect) ?? place;
    askedIn.set(effect, first);
    return first !== place;
  }

  /** In a loop, two calls of one name are a mistake that would go unnoticed. */
  function warnOfRepeat(name: string): void {
    const tool = stepTool({ step: name }, async () => undefined);
    warnerOf(tool)?.(
      `${run.id.job}: ${name} was called twice in one run, and the second call got the first one's result. Give each its own name or args, if they differ.`,
    );
    forgetTool(tool);
  }
}

/** The code of a run, or of one of its steps. */
interface Place {
  readonly sequence: Sequence;
  /** The guarded call that runs it. */
  readonly call: object | undefined;
}

/** Inside a tool, an item of a batch, or what produces an artifact. Code that has lost its context counts as the run's. */
function isInAnotherCall({ call }: Place): boolean {
  const current = currentCall();
  return current !== undefined && current !== call;
}

/** The contract of a step, for this process or for a client that runs it. */
export function stepTerms(name: string, leaseMs: number, windowMs: number) {
  return {
    name: contractName('step', name),
    effect: 'irreversible',
    per: 'run',
    lease: leaseMs,
    timeout: 'none',
    window: windowMs,
    // A step runs again after a crash: effects belong in `once`.
    onDoubt: 'rerun',
    share: true,
  } as const;
}

interface StepParts {
  readonly run: (prepared: unknown, ctx: AttemptContext<unknown>) => unknown;
  readonly prepare?: ((ctx: AttemptContext<unknown>) => unknown) | undefined;
}

interface StepIdentity {
  readonly step: string;
  readonly artifact?: true;
  /** The steps around it. */
  readonly in?: readonly string[];
  readonly args?: unknown;
}

/** Without options, an undefined id is a field that is missing: the effect would land once per run, for whatever it was meant. */
function checkGivenId(name: string, id: unknown): void {
  checkOnceId(name, id);
  if (id !== undefined) return;
  throw new SemelError('NOT_CANONICAL', `job.once(${JSON.stringify(name)}, …): its id is undefined.`, {
    path: 'id',
    next: 'Pass the id; for an effect that lands once per run, leave it out.',
  });
}

function checkFunction(what: string, name: unknown, work: unknown, mayGenerate = false): void {
  if (typeof work === 'function' && (mayGenerate || !isGeneratorFunction(work))) return;
  throw new SemelError(
    'INVALID_ARGS',
    `job.${what}(${JSON.stringify(name)}, …) needs a function as its last argument.`,
    { path: what, next: 'Pass an async function that returns the result.' },
  );
}

/** A function that continues after its run has ended must not do anything more. */
function runIsOver(label: string, name: string, { reason }: AbortSignal): SemelError {
  if (reason instanceof SemelError) return reason;
  return new SemelError('ABORTED', `${label} is stopping, so ${name} was not started.`, {
    cause: reason,
  });
}
