// Runs a tool that `tool({…})` made. Such a tool turns what `execute` throws into text, so this file has to tell error texts
// from values, and args that the SDK refused from effects.

import { MaybeLanded } from '../../core/signals.ts';
import type { FunctionTool } from './function-tool.ts';

/** The SDK refused the args and did not call `execute`. `said` is its answer for the model. */
export class NotStarted extends Error {
  readonly said: unknown;
  constructor(said: unknown) {
    super('The tool was not started.');
    this.said = said;
  }
}

/** The SDK's default text for every error. */
const hiddenErrorText = 'An error occurred while running the tool. Please try again.';

/** The SDK's text for a timeout. */
function timeoutText({ name, timeoutMs }: FunctionTool): string {
  return `Tool '${name}' timed out after ${timeoutMs}ms.`;
}

export async function runMadeTool(
  tool: FunctionTool,
  context: unknown,
  input: string,
  details: object | undefined,
  warn: (message: string) => void,
): Promise<unknown> {
  const isStarted = watchStart(details);
  const failure = watchFailure(details);
  const startedAt = performance.now();
  const value = await tool.invoke(context, input, failure.details);
  if (!isStarted()) throw new NotStarted(value);
  if (value === hiddenErrorText || failure.isSeen()) {
    warn(
      `${tool.name} threw, but the SDK hid the error, so the call is in doubt. Give it \`errorFunction: null\`, or guard ` +
        'what `tool` takes (docs/guides/openai-agents.md).',
    );
    throw new MaybeLanded(
      typeof value === 'string' && value !== hiddenErrorText
        ? value
        : `${tool.name} threw an error that the SDK hid.`,
    );
  }
  if (hasTimedOut(tool, performance.now() - startedAt, details)) throw new MaybeLanded(timeoutText(tool));
  return value;
}

/** Before the SDK asks an `errorFunction` of one's own for a text, it reads whether the error may be traced. */
function watchFailure(details: object = {}): { details: object; isSeen: () => boolean } {
  let isSeen = false;
  const watched = new Proxy(details, {
    get(target, name) {
      if (typeof name === 'symbol' && name.description === 'functionToolTraceIncludeSensitiveData')
        isSeen = true;
      return Reflect.get(target, name);
    },
  });
  return { details: watched, isSeen: () => isSeen };
}

/**
 * Outside the SDK's runner the tool enforces its own timeout, inside the guard, and answers in words of its own choice: what
 * comes then is never the value of `execute`.
 */
function hasTimedOut({ timeoutMs }: FunctionTool, tookMs: number, details: object | undefined): boolean {
  const isEnforcedByRunner = Object.getOwnPropertySymbols(details ?? {}).some(
    ({ description }) => description === 'functionToolTimeoutAlreadyEnforced',
  );
  return timeoutMs !== undefined && !isEnforcedByRunner && tookMs >= timeoutMs - earlyMs;
}

/** Timers may fire early by this much. */
const earlyMs = 2;

/** The SDK's runner passes a callback that is called just before `execute`. Without it, assume that the tool started. */
function watchStart(details: object | undefined): () => boolean {
  const callbacks = details as Record<symbol, ((input: unknown) => void) | undefined> | undefined;
  const symbol = Object.getOwnPropertySymbols(details ?? {}).find(
    ({ description }) => description === 'openai.agents.functionToolParsedInputCallback',
  );
  if (callbacks === undefined || symbol === undefined) return () => true;
  const callback = callbacks[symbol];
  let isStarted = false;
  callbacks[symbol] = (input) => {
    isStarted = true;
    callback?.(input);
  };
  return () => isStarted;
}
