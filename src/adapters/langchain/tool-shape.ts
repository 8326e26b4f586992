// The shapes of LangChain's tools and calls that semel uses, and what their types say about a policy.

import { SemelError } from '../../core/errors.ts';

// biome-ignore lint/suspicious/noExplicitAny: a tool of any input, output and config; what is unknown would not fit.
export type AnyFunction = (...args: any[]) => any;

/** What `tool` of LangChain makes, or an instance of a class of its own. */
export interface AnyTool {
  readonly name: string;
  readonly schema: unknown;
  readonly invoke: AnyFunction;
}

/** Every tool of LangChain runs by `call`, which checks the args, asks `_call`, and makes the message of its result. */
export interface LangChainTool extends AnyTool {
  readonly description?: unknown;
  readonly responseFormat?: unknown;
  readonly call: AnyFunction;
  readonly _call: AnyFunction;
  readonly func?: AnyFunction;
}

/** What a tool hears of its call: see ToolRuntime of LangChain. */
export interface CallConfig {
  readonly toolCall?: { readonly id?: string; readonly args?: unknown };
  readonly toolCallId?: string;
  readonly signal?: AbortSignal;
  readonly state?: unknown;
  readonly configurable?: Readonly<Record<string, unknown>>;
  /** When LangGraph writes its checkpoints. */
  readonly durability?: unknown;
  /** Its older form: false is `exit`. */
  readonly checkpointDuring?: unknown;
}

/** As its function gets it, after its schema. */
export type InputOf<Tool> = Tool extends { func: (input: infer Input, ...rest: never) => unknown }
  ? Input
  : unknown;

export function checkTool(tool: unknown): LangChainTool {
  const { name, call, _call } = (tool ?? {}) as Partial<LangChainTool>;
  if (typeof name === 'string' && typeof call === 'function' && typeof _call === 'function')
    return tool as LangChainTool;
  const who = typeof name === 'string' ? name : 'This';
  throw new SemelError('CONTRACT_INVALID', `${who} is not a LangChain tool that runs here.`, {
    path: 'tool',
    next: 'Pass one tool that `tool(fn, { name, schema })` created. For several, use guardMiddleware. Tools that the provider runs need no guard.',
  });
}
