// The two halves of a call, for frameworks with a hook before and one after: begin gives the verdict, and the
// attempt is settled by what the framework saw.

import {
  type AttemptContext,
  type Call,
  meaningOf,
  type Result,
  type Runner,
  type Try,
} from '../runner/index.ts';

export interface OpenAttempt<Value = unknown> extends Omit<AttemptContext, 'prepared'> {
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
    const result = runner.runWith(call, (attempt) => {
      const { ctx, log } = attempt.context();
      return new Promise<Try>((settle) => {
        const end = (ending: Try['ending'], thrown: unknown): Promise<Result<Value>> => {
          settle({ ending, thrown });
          return result as Promise<Result<Value>>;
        };
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
          args: attempt.args,
          succeed: (value) => end({ outcome: 'succeeded', value }, undefined),
          fail: (error) => end({ outcome: 'failed', because: 'the caller says so' }, error),
          release: (error) => end({ outcome: 'released', because: 'the caller says so' }, error),
          unknown: (error) => end({ outcome: 'unknown', because: 'the caller says so' }, error),
          threw: (error) => end(meaningOf(attempt, error, log.fates), error),
        };
        resolve({ execute: true, attempt: open });
      });
    });
    result.then((done) => resolve({ execute: false, result: done as Result<Value> }), reject);
  });
}
