// A call in two halves, for frameworks with a hook before and one after: `begin` decides whether to execute, and the framework
// settles the attempt.

import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type AttemptContext,
  type Body,
  type Call,
  classifyThrown,
  describeError,
  emptyReceipt,
  judgeTry,
  neverDispatched,
  type Pipeline,
  prepareAndDispatch,
  type Result,
  type Try,
  tellPartial,
  threwError,
  timeoutError,
} from '../call/index.ts';
import { onAbort } from '../core/abort.ts';
import type { Clock } from '../core/clock.ts';
import { makeReadable } from '../core/contract/classify.ts';
import { isSemelError } from '../core/errors.ts';
import { deferred } from '../core/older-node.ts';
import { MaybeLanded, NotLanded, Rejected } from '../core/signals.ts';
import { ensureKey, enterKey, leaveKey } from './tool-internals.ts';

export interface OpenAttempt<Value = unknown> extends AttemptContext {
  /** The args to run with: the first wording, where a provider may have seen it. */
  readonly args: unknown;
  succeed(value: Value): Promise<Result<Value>>;
  /** Definitely refused. */
  fail(error?: unknown): Promise<Result<Value>>;
  /** Definitely did not land. */
  release(error?: unknown): Promise<Result<Value>>;
  /** Nobody knows. */
  unknown(error?: unknown): Promise<Result<Value>>;
  /** Let the contract say what this error means. */
  threw(error: unknown): Promise<Result<Value>>;
}

export type Begun<Value = unknown> =
  | { readonly execute: true; readonly attempt: OpenAttempt<Value> }
  | { readonly execute: false; readonly result: Result<Value> };

/** `endsWithProcess`: this process executes the attempt by itself. */
export function begin<Value>(
  pipeline: Pipeline,
  clock: Clock,
  call: Call,
  endsWithProcess = false,
): Promise<Begun<Value>> {
  return call.tool.contract.mode === 'enforce'
    ? beginGuarded(pipeline, clock, call, endsWithProcess)
    : beginObserved(pipeline, clock, call);
}

function beginGuarded<Value>(
  pipeline: Pipeline,
  clock: Clock,
  call: Call,
  endsWithProcess: boolean,
): Promise<Begun<Value>> {
  return new Promise((resolve, reject) => {
    const body: Body = async (attempt) => {
      const { ctx, requests } = attempt.context();
      const { tool } = call;
      const threw = (given: unknown): Try => {
        const thrown = tellPartial(attempt, makeReadable(given));
        return { ending: classifyThrown(attempt, thrown, requests), thrown };
      };
      try {
        await attempt.ensureLease();
        const args = attempt.args as never;
        await prepareAndDispatch(tool, args, ctx, attempt);
      } catch (given) {
        await requests.close();
        return judgeTry(attempt, threw(given));
      }
      return new Promise<Try>((settle) => {
        const { promise: recorded, resolve: onSettled } = deferred<Result>();
        const end = async (ended: () => Try): Promise<Result<Value>> => {
          await requests.close();
          settle({ ...judgeTry(attempt, ended()), onSettled });
          return recorded as Promise<Result<Value>>;
        };
        const says = (outcome: 'failed' | 'released' | 'unknown', Signal: SignalClass) => (given?: unknown) =>
          end(() =>
            // The steps say what landed: the caller's word counts only where none did.
            attempt.isStepsOnly
              ? threw(toSignal(Signal, given))
              : { ending: { outcome, because: 'the caller says so' }, thrown: makeReadable(given) },
          );
        const open = openAttempt<Value>(ctx, attempt.args, {
          succeed: async (value) => {
            // The call is not done before its steps are.
            const failed = await attempt.steps?.finish().then(
              () => undefined,
              (error: unknown) => ({ error }),
            );
            return end(() => {
              if (failed !== undefined) return threw(failed.error);
              return attempt.record.dispatched
                ? { ending: { outcome: 'succeeded', value }, thrown: undefined }
                : neverDispatched(tool.contract.name);
            });
          },
          fail: says('failed', Rejected),
          release: says('released', NotLanded),
          unknown: says('unknown', MaybeLanded),
          threw: (given) => end(() => threw(given)),
        });
        const leave = async (leaseMs: number) => {
          if (!(await attempt.renewLast(leaseMs))) return false;
          settle({
            ending: { outcome: 'released', because: 'left to its lease' },
            thrown: undefined,
            left: true,
          });
          return true;
        };
        const enter = AsyncLocalStorage.snapshot();
        const ensure = () => attempt.ensureLease();
        const own = { [leaveKey]: leave, [enterKey]: enter, [ensureKey]: ensure };
        resolve({ execute: true, attempt: Object.assign(open, own) });
      });
    };
    const runExternally = createExternalRun<Value>(pipeline, clock, call, resolve, () => result);
    const result = pipeline.runWith(call, Object.assign(body, { runExternally, endsWithProcess })) as Promise<
      Result<Value>
    >;
    result.then((done) => resolve({ execute: false, result: done }), reject);
  });
}

/** What the framework does is the effect, as if it were the tool's own: it always runs, whatever semel would have done. */
function beginObserved<Value>(pipeline: Pipeline, clock: Clock, call: Call): Promise<Begun<Value>> {
  return new Promise((resolve) => {
    const run = createExternalRun<Value>(pipeline, clock, call, resolve, () => result);
    const result = settled(call, async () => pipeline.run(call.with({ tool: { ...call.tool, run } })));
    void result.then((done) => resolve({ execute: false, result: done }));
  });

  /** A call that is only observed throws what its effect threw. */
  async function settled({ tool }: Call, work: () => Promise<Result>): Promise<Result<Value>> {
    try {
      return (await work()) as Result<Value>;
    } catch (thrown) {
      const { contract } = tool;
      const error = isSemelError(thrown) ? thrown : threwError(contract, thrown);
      return { ok: false, error, receipt: emptyReceipt(contract.name) };
    }
  }
}

/** A tool's `run` that hands the attempt to the framework and ends as the framework says. No claim is needed for it. */
function createExternalRun<Value>(
  { closing }: Pipeline,
  clock: Clock,
  { tool: { contract } }: Call,
  begun: (begun: Begun<Value>) => void,
  getResult: () => Promise<Result<Value>>,
): (args: never, ctx: AttemptContext) => Promise<Value> {
  return (args, ctx) => {
    const { promise: effect, resolve: succeed, reject: fail } = deferred<Value>();
    forgetAfterAll(effect, fail);
    const says = (end: () => void) => {
      end();
      return getResult();
    };
    const throwing = (Signal: SignalClass) => (cause?: unknown) => says(() => fail(toSignal(Signal, cause)));
    const attempt = openAttempt<Value>(ctx, args, {
      succeed: (value) => says(() => succeed(value)),
      fail: throwing(Rejected),
      release: throwing(NotLanded),
      unknown: throwing(MaybeLanded),
      threw: (error) => says(() => fail(error)),
    });
    begun({ execute: true, attempt });
    return effect;
  };

  /** A framework that never says how it ended is not waited for longer than the contract or the process allows. */
  function forgetAfterAll(effect: Promise<unknown>, fail: (reason: unknown) => void): void {
    const forgotten = () => fail(closing.reason);
    const timer = Number.isFinite(contract.timeoutMs)
      ? clock.setTimeout(() => fail(timeoutError(contract)), contract.timeoutMs, 'background')
      : undefined;
    const unlisten = onAbort(closing, forgotten);
    if (closing.aborted) forgotten();
    const ended = () => {
      clock.clearTimeout(timer);
      unlisten();
    };
    effect.then(ended, ended);
  }
}

type SignalClass = new (message: string, options: ErrorOptions) => Error;

function toSignal(Signal: SignalClass, cause: unknown): Error {
  return new Signal(cause === undefined ? 'the caller says so' : describeError(cause), { cause });
}

type Endings<Value> = Pick<OpenAttempt<Value>, 'succeed' | 'fail' | 'release' | 'unknown' | 'threw'>;

/** A context is read when it is needed: not every effect wants a key or a signal. */
function openAttempt<Value>(ctx: AttemptContext, args: unknown, endings: Endings<Value>): OpenAttempt<Value> {
  return {
    get key() {
      return ctx.key;
    },
    keyFor: ctx.keyFor,
    get mark() {
      return ctx.mark;
    },
    fetch: ctx.fetch,
    fence: ctx.fence,
    attempt: ctx.attempt,
    get signal() {
      return ctx.signal;
    },
    dispatch: ctx.dispatch,
    note: ctx.note,
    get step() {
      return ctx.step;
    },
    prepared: ctx.prepared,
    args,
    ...endings,
  };
}
