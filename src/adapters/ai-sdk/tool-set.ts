// The shapes of tools in the AI SDK, versions 6 and 7, as far as they concern us, and what their types say of a policy.

import type { ErrorValue } from '../../core/errors.ts';
import type { Policy, PolicyTerms } from '../../guard/index.ts';
import type { ToolFunction } from '../../semel/index.ts';

// biome-ignore lint/suspicious/noExplicitAny: a tool of any input, output and context; `unknown` would not be assignable.
type Any = any;
export type AnyFunction = (...args: Any[]) => unknown;

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

/** Refuses what `Given extends Policies<Tools>` alone lets pass: the compiler looks for unknown names in fixed types only. */
export type KnownNames<Tools, Given> = {
  readonly [Name in keyof Given]: Name extends keyof Policies<Tools>
    ? Given[Name] extends object
      ? {
          readonly [Field in keyof Given[Name]]: Field extends keyof PolicyTerms
            ? unknown
            : 'is not a policy field';
        }
      : unknown
    : 'is not the name of a tool that runs here';
};

/** A tool of the AI SDK stays what it is, except for its result; one that `semel.tool` made becomes a tool of the AI SDK. */
export type Guarded<Tools, Given = unknown> = {
  [Name in keyof Tools]: Tools[Name] extends ToolFunction<infer Input, infer Value>
    ? {
        readonly description: string | undefined;
        readonly inputSchema: NonNullable<Tools[Name]['input']>;
        /** An error is a value for the model: tell it apart with `isToolError`. */
        execute(input: Input, options: ExecuteOptions): Promise<Value | ErrorValue>;
      }
    : NeedsPolicy<Tools[Name]> extends true
      ? IsRead<Given, Name> extends true
        ? Tools[Name]
        : WithErrors<Tools[Name]>
      : Tools[Name];
};

/** A read runs unguarded. */
type IsRead<Given, Name> = Name extends keyof Given
  ? Given[Name] extends 'read' | { readonly effect: 'read' }
    ? true
    : false
  : false;

/** Distributes: one tool of the AI SDK is a union of shapes, and not all of them run here. */
type WithErrors<Tool> = Tool extends { execute?: infer Execute }
  ? [NonNullable<Execute>] extends [never]
    ? Tool
    : Omit<Tool, 'execute' | 'toModelOutput'> & {
        /** An error is a value for the model: tell it apart with `isToolError`. */
        execute: NonNullable<Execute> extends (...args: infer Args) => infer Result
          ? (...args: Args) => OrError<Result>
          : never;
      } & ShowsErrors<Tool>
  : Tool;

/** What `execute` may return, with the error that may come instead. */
type OrError<Result> =
  Result extends AsyncIterable<infer Part>
    ? AsyncIterable<Part | ErrorValue>
    : Promise<Awaited<Result> | ErrorValue>;

/** The tool's own `toModelOutput` never sees an error: the guard shows it. */
type ShowsErrors<Tool> = Tool extends { toModelOutput?: infer Show }
  ? NonNullable<Show> extends (result: infer Result) => infer Shown
    ? {
        toModelOutput?: (
          result: { [Field in keyof Result]: Field extends 'output' ? Any : Result[Field] },
        ) => Shown;
      }
    : unknown
  : unknown;
