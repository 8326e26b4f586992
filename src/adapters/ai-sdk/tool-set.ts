// The shapes of tools in the AI SDK, versions 6 and 7, as far as they concern us, and what their types say of a policy.

import type { ErrorValue } from '../../core/errors.ts';
import type { Policy } from '../../guard/index.ts';
import type { ToolFunction } from '../../semel/index.ts';

// biome-ignore lint/suspicious/noExplicitAny: a tool of any input, output and context; `unknown` would not be assignable.
export type AnyFunction = (...args: any[]) => unknown;

/** A tool of the AI SDK, or one that `semel.tool` made. */
export type AnyTool = ToolFunction<never, unknown> | object;

export interface AiTool {
  readonly description?: unknown;
  readonly inputSchema?: unknown;
  readonly execute?: AnyFunction | undefined;
  readonly toModelOutput?: AnyFunction | undefined;
}

/** What the AI SDK passes to `execute`. */
export interface ExecuteOptions {
  readonly toolCallId?: string;
  readonly messages?: unknown;
  readonly abortSignal?: AbortSignal;
}

/** What a model is given of a result: see ToolResultOutput of the AI SDK. */
export type ModelOutput =
  | { readonly type: 'text' | 'error-text'; readonly value: string }
  | { readonly type: 'json' | 'error-json'; readonly value: unknown }
  | { readonly type: 'content'; readonly value: readonly unknown[] };

type InputOf<Tool> = Tool extends { execute?: infer Execute }
  ? [NonNullable<Execute>] extends [never]
    ? never
    : NonNullable<Execute> extends (input: infer Input, ...rest: never) => unknown
      ? Input
      : never
  : never;

/** Does not distribute over a union: one tool of the AI SDK is a union of shapes. */
type NeedsPolicy<Tool> = [Tool] extends [ToolFunction<never, unknown>]
  ? false
  : [InputOf<Tool>] extends [never]
    ? false
    : true;

/** One policy for each tool that runs here, typed by its own input. */
export type Policies<Tools> = {
  readonly [Name in keyof Tools as NeedsPolicy<Tools[Name]> extends true ? Name : never]: Policy<
    InputOf<Tools[Name]>
  >;
};

/** Tools keep their types, though `execute` may answer an error (see `isToolError`); one that `semel.tool` made becomes a tool of the AI SDK. */
export type Guarded<Tools> = {
  [Name in keyof Tools]: Tools[Name] extends ToolFunction<infer Input, infer Value>
    ? {
        readonly description: string | undefined;
        readonly inputSchema: NonNullable<Tools[Name]['input']>;
        /** An error is a value for the model: tell it apart with `isToolError`. */
        execute(input: Input, options: ExecuteOptions): Promise<Value | ErrorValue>;
      }
    : Tools[Name];
};
