// The shapes of function tools in the OpenAI Agents SDK, as far as they concern us, and what their types say of a policy.

import type { SchemaOutput, StandardSchema } from '../../core/contract/standard-schema.ts';
import type { ErrorValue } from '../../core/errors.ts';
import type { Policy } from '../../guard/index.ts';
import type { ToolFunction } from '../../semel/index.ts';

// biome-ignore lint/suspicious/noExplicitAny: of any context, input and output; what is unknown would not fit.
type Any = any;
export type AnyFunction = (...args: Any[]) => unknown;

/** What `tool({…})` makes. */
export interface FunctionTool {
  readonly type: 'function';
  readonly name: string;
  readonly description: string;
  readonly parameters: unknown;
  readonly invoke: (context: Any, input: string, details?: Any) => Promise<unknown>;
  readonly needsApproval: AnyFunction;
  readonly outputSchema?: unknown;
  readonly errorFunction?: AnyFunction | null;
  readonly timeoutMs?: number | undefined;
}

/** What `tool({…})` takes. */
export interface ToolOptions {
  readonly name?: string;
  readonly description?: string;
  readonly parameters?: unknown;
  readonly execute: AnyFunction;
  readonly outputSchema?: unknown;
}

/** A tool that `semel.tool` made, as the SDK wants it. It is not strict: semel checks the args itself. */
export interface OwnTool<Value> {
  type: 'function';
  name: string;
  description: string;
  parameters: Any;
  strict: false;
  /** An error is a value for the model: tell it apart with `isToolError`. */
  invoke: (context: Any, input: string, details?: Any) => Promise<Value | ErrorValue>;
  needsApproval: () => Promise<boolean>;
  isEnabled: () => Promise<boolean>;
}

/** What the SDK passes with a call. */
export interface CallDetails {
  readonly toolCall?: { readonly callId?: string };
  readonly signal?: AbortSignal;
}

/** What `execute` gets: as the SDK infers it. */
export type Parsed<Parameters> = Parameters extends StandardSchema ? SchemaOutput<Parameters> : Any;

/** The options of a tool, with the input that its schema has. */
export interface TypedOptions<Parameters> {
  readonly parameters: Parameters;
  readonly execute: (input: Parsed<Parameters>, context?: Any, details?: Any) => unknown;
  /** Whatever else `tool` takes. Without it the compiler would blame `name` for a mistake in the policy. */
  readonly [option: string]: Any;
}

/** They stay what they are; a result may be an error now. */
export type GuardedOptions<Parameters, Options> = Omit<Options, 'parameters' | 'execute'> & {
  parameters: Parameters;
  execute: (input: Parsed<Parameters>, context?: Any, details?: Any) => Promise<OrError<Options>>;
};

/** An output schema has room only for the value: with one, errors are thrown. */
type OrError<Options> = Options extends { execute: (...args: Any[]) => infer Result }
  ? Awaited<Result> | (Options extends { outputSchema: object } ? never : ErrorValue)
  : Any;

/** What `tool({…})` made, with the error that may come instead of its result. */
export type GuardedTool<Tool> = Tool extends { invoke: (...args: infer Args) => Promise<infer Result> }
  ? Omit<Tool, 'invoke'> & {
      /** An error is a value for the model: tell it apart with `isToolError`. */
      invoke: (...args: Args) => Promise<Result | ErrorValue>;
    }
  : Tool;

/** The input is nowhere but in the type of the approval. */
export type InputOf<Tool> = Tool extends { needsApproval: (context: Any, input: infer Input) => unknown }
  ? Input
  : unknown;

/** A tool of the SDK, one that it hosts, or one that `semel.tool` made. */
export type AnyTool = ToolFunction<never, unknown> | { readonly type: string };

type NeedsPolicy<Tool> =
  Tool extends ToolFunction<never, unknown> ? false : Tool extends FunctionTool ? true : false;

/** One policy for each tool that runs here, typed by its own input. */
export type Policies<Tools> = {
  readonly [Name in keyof Tools as NeedsPolicy<Tools[Name]> extends true ? Name : never]: Policy<
    InputOf<Tools[Name]>
  >;
};

/** A tool stays what it is, except for its result; one that `semel.tool` made becomes a function tool. */
export type Guarded<Tool> =
  Tool extends ToolFunction<never, infer Value> ? OwnTool<Value> : GuardedTool<Tool>;
