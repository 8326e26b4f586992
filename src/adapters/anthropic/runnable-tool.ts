// The shapes of tools in the Anthropic SDK, as far as they concern us, and what their types say of a policy.

import type { Policy } from '../../guard/index.ts';
import type { ToolFunction } from '../../semel/index.ts';

// biome-ignore lint/suspicious/noExplicitAny: of any input and any content block; what is unknown would not fit.
export type Any = any;

/** What `betaZodTool`, `betaTool` and their like make, or the same written by hand. */
export interface RunnableTool {
  readonly name: string;
  readonly description?: unknown;
  readonly input_schema?: unknown;
  readonly run: (args: Any, context?: Any) => unknown;
  readonly parse?: (content: unknown) => unknown;
}

/** A tool that `semel.tool` made, as the SDK wants it. */
export interface OwnTool<Input> {
  type: 'custom';
  name: string;
  description: string;
  input_schema: { type: 'object'; [field: string]: unknown };
  run: (args: Input, context?: Any) => Promise<Content>;
  parse: (content: unknown) => Input;
}

/** What a model is given of a result: a text, or blocks. */
export type Content = string | Any[];

/** What the SDK tells of a call. */
export interface RunContext {
  readonly toolUse?: { readonly id?: string };
  readonly signal?: AbortSignal | null | undefined;
  /** The conversation so far, in a loop of your own. */
  readonly messages?: unknown;
  /** In a loop of your own: the first call of the reply that contains this call. */
  readonly first?: string;
}

/** A result that is not a block yet: the tool runner takes only the content. */
export interface Outcome {
  readonly content: Content;
  readonly isError: boolean;
}

/** Where a guarded tool has its outcome: no JSON has it. */
export const outcome: unique symbol = Symbol('semel.outcome');

export interface GuardedTool extends RunnableTool {
  readonly [outcome]: (args: unknown, context?: RunContext) => Promise<Outcome>;
}

export type InputOf<Tool> = Tool extends { run: (args: infer Input, context?: Any) => unknown }
  ? Input
  : unknown;

/** A tool that runs here, a definition alone, or a tool that `semel.tool` made. */
export type AnyTool = ToolFunction<never, unknown> | object;

type NeedsPolicy<Tool> =
  Tool extends ToolFunction<never, unknown> ? false : Tool extends RunnableTool ? true : false;

/** One policy for each tool that runs here, typed by its own input. */
export type Policies<Tools> = {
  readonly [Name in keyof Tools as NeedsPolicy<Tools[Name]> extends true ? Name : never]: Policy<
    InputOf<Tools[Name]>
  >;
};

/** A tool stays what it is; one that `semel.tool` made becomes a tool of the SDK. */
export type Guarded<Tool> = Tool extends ToolFunction<infer Input, unknown> ? OwnTool<Input> : Tool;
