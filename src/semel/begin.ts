// The two halves of a call, for frameworks with a hook before and one after: begin gives the verdict, and the
// attempt is settled by what the framework saw.

import {
  type AttemptContext,
  type Call,
  meaningOf,
  neverCrossed,
  type Result,
  type Runner,
  type Try,
} from '../runner/index.ts';

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

export function begin<Value>(runner: Runner, call: Call): Promise<Begun<Value>> {
  return new Promise((resolve, reject) => {
    const result = runner.runWith(call, async (attempt) => {
      const { ctx, log } = attempt.context();
      const { tool } = call;
      try {
        await attempt.ready();
        const args = attempt.args as never;
        if (tool.prepare !== undefined && !attempt.hasPrepared)
          attempt.prepare(await tool.prepare(args, ctx));
        if (tool.contract.dispatch === 'prepared') await attempt.cross();
      } catch (thrown) {
        await log.close();
        return { ending: meaningOf(attempt, thrown, log.fates), thrown };
      }
      return new Promise<Try>((settle) => {
        const end = async (ended: () => Try): Promise<Result<Value>> => {
          await log.close();
          settle(ended());
          return result as Promise<Result<Value>>;
        };
        const says = (outcome: 'failed' | 'released' | 'unknown') => (thrown?: unknown) =>
          end(() => ({ ending: { outcome, because: 'the caller says so' }, thrown }));
        const open: OpenAttempt<Value> = {
          get key() {
            return ctx.key;
          },
          keyFor: ctx.keyFor,
          fetch: ctx.fetch,
          fence: ctx.fence,
          attempt: ctx.attempt,
          get signal() {
            return ctx.signal;
          },
          dispatch: ctx.dispatch,
          note: ctx.note,
          prepared: ctx.prepared,
          args: attempt.args,
          succeed: (value) =>
            end(() =>
              attempt.dispatched
                ? { ending: { outcome: 'succeeded', value }, thrown: undefined }
                : neverCrossed(tool.contract.name),
            ),
          fail: says('failed'),
          release: says('released'),
          unknown: says('unknown'),
          threw: (thrown) => end(() => ({ ending: meaningOf(attempt, thrown, log.fates), thrown })),
        };
        resolve({ execute: true, attempt: open });
      });
    });
    result.then((done) => resolve({ execute: false, result: done as Result<Value> }), reject);
  });
}
