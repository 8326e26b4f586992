// The handler of one tool in an MCP server of your own, version 1 or 2 of the SDK:
// `server.registerTool('charge', config, guard(semel, 'charge', policy, handler))`.

import { digestCaller, type HeaderValues } from '../core/caller.ts';
import type { Effect } from '../core/contract/words.ts';
import { SemelError } from '../core/errors.ts';
import { headerEntries } from '../core/header-entries.ts';
import { createGuard, type PolicyTerms } from '../guard/index.ts';
import { namedCaller, type Semel } from '../semel/index.ts';
import { type ErrorMeaning, errorMeanings, usualErrors, usualWeakWindow } from './policy/policies.ts';
import { fieldsOf, type ToolCall, type ToolResult } from './protocol/messages.ts';
import { isUnfinished } from './proxy/outcome.ts';
import { createRunAgain, type RunAgain, runAgainTool, unknownRef } from './proxy/run-again.ts';
import { toolGuard } from './proxy/tool-calls.ts';

export { currentAttempt, isToolError, type Policy, type PolicyTerms } from '../guard/index.ts';
export type { ErrorMeaning } from './policy/policies.ts';

/** The terms of a tool, and what a result of it means that is marked as an error. */
export interface HandlerTerms<Args> extends PolicyTerms<Args> {
  /** @default 'ask'; 'in-doubt' where the effect is irreversible or the stakes are high */
  readonly errors?: ErrorMeaning;
}

/** What the SDK passes: args and extra, or extra alone where the tool has no schema. */
type ArgsIn<Params extends readonly unknown[]> = Params extends readonly [infer Args, unknown]
  ? Args
  : unknown;

/** A handler whose effect lands once; of the same type as the one that is given. */
export function guard<Params extends readonly unknown[], Result>(
  semel: Semel,
  name: string,
  policy: Effect | HandlerTerms<ArgsIn<NoInfer<Params>>>,
  handler: (...given: Params) => Result | Promise<Result>,
): (...given: Params) => Result | Promise<Result> {
  const { errors: said, ...terms } = typeof policy === 'string' ? { effect: policy } : policy;
  const errors = said ?? usualErrors(terms);
  if (typeof handler !== 'function')
    refuse(String(name), 'there is no handler.', "Write guard(semel, 'refund', policy, handler).");
  if (!errorMeanings.includes(errors))
    refuse(name, `\`errors\` is ${JSON.stringify(errors)}.`, `Write one of ${errorMeanings.join(', ')}.`);
  const usual = { weakWindow: usualWeakWindow, ...terms } as PolicyTerms;
  const guarding = createGuard(semel, name, usual, {
    isControlFlow: (error) => isUnfinished(error) || isVisit(error),
  });
  if (guarding === undefined) return handler;
  const { answer } = toolGuard(semel, guarding, { errors, runAgain: repeatsOf(semel).runAgain });
  return async (...given: Params): Promise<Result> => {
    // Without a schema the SDK passes no args.
    const [args, extra] = given.length > 1 ? given : [{}, given[0]];
    const call = callOf(name, args, extra);
    const caller = callerIn(extra);
    const whose = namedCaller() === undefined ? caller : undefined;
    const by = { scope: scopeOf(caller), caller: whose, identity: {} };
    const reply = await answer(call, by, async (_key, _signal, first) => {
      const words = given.length > 1 && first !== undefined ? ([first, extra] as const) : given;
      const result = ((await handler(...(words as Params))) ?? {}) as ToolResult;
      return { jsonrpc: '2.0', id: call.id, result };
    });
    if ('result' in reply) return reply.result as Result;
    const { message: text, data } = reply.error;
    return { content: [{ type: 'text', text }], isError: true, _meta: data } as Result;
  };
}

/** The tool that `runAgain` is the handler of. */
export const runAgainName: string = runAgainTool.name;
export const runAgainDescription: string = runAgainTool.description;

/**
 * The handler of the tool by which a model says that it means a repeat as a new action: register it as `runAgainName`, with
 * the one argument `ref`. Without it such a repeat waits for a person.
 */
export function runAgain(
  semel: Semel,
): (
  args: { readonly ref: string },
  extra: unknown,
) => Promise<{ content: { type: 'text'; text: string }[] }> {
  const repeats = repeatsOf(semel);
  repeats.isAnswerable = true;
  return async (args, extra) => {
    const result = await repeats.runAgain.allow(scopeOf(callerIn(extra)), args);
    return (result ?? unknownRef()) as { content: { type: 'text'; text: string }[] };
  };
}

interface Repeats {
  readonly runAgain: RunAgain;
  isAnswerable: boolean;
}

/** All guards of one semel share them. */
const known = new WeakMap<Semel, Repeats>();

function repeatsOf(semel: Semel): Repeats {
  let repeats = known.get(semel);
  if (repeats === undefined) {
    const made: Repeats = { runAgain: createRunAgain(semel, () => made.isAnswerable), isAnswerable: false };
    repeats = made;
    known.set(semel, made);
  }
  return repeats;
}

function scopeOf(caller: string | undefined): string {
  return namedCaller() ?? caller ?? 'local';
}

function refuse(path: string, happened: string, next: string): never {
  throw new SemelError('CONTRACT_INVALID', `${path}: ${happened}`, { path, next });
}

/** First a page has to be visited: nothing was run, and the SDK tells the client by this error. */
function isVisit(error: unknown): boolean {
  return fieldsOf(error).code === -32042;
}

/** Version 2 has some of its facts one level deeper. Asked for one by one: an SDK may keep them as getters of a class. */
function factIn(extra: unknown, name: string): unknown {
  const given = fieldsOf(extra);
  return fieldsOf(given.mcpReq)[name] ?? given[name];
}

function callOf(name: string, args: unknown, extra: unknown): ToolCall {
  const inputResponses = factIn(extra, 'inputResponses');
  const requestState = factIn(extra, 'requestState');
  const state: unknown = typeof requestState === 'function' ? requestState() : requestState;
  const params = {
    name,
    arguments: args,
    _meta: fieldsOf(factIn(extra, '_meta')),
    ...(inputResponses === undefined ? {} : { inputResponses }),
    ...(state === undefined ? {} : { requestState: state }),
  };
  return { jsonrpc: '2.0', id: 0, method: 'tools/call', params };
}

/**
 * Undefined: there is one client, by standard input or in this process, and nothing came over HTTP. A session is not a caller: a client that lost it
 * comes back with another one, and asks for the same again.
 */
function callerIn(extra: unknown): string | undefined {
  const authInfo = factIn(extra, 'authInfo');
  const requestInfo = factIn(extra, 'requestInfo');
  const http = factIn(extra, 'http');
  const verified = fieldsOf(authInfo ?? fieldsOf(http).authInfo);
  const request = fieldsOf(requestInfo ?? fieldsOf(http).req);
  if (authInfo === undefined && requestInfo === undefined && http === undefined) return undefined;
  return digestCaller({ verified, headers: headersIn(request.headers), query: queryIn(request.url) });
}

/** One that is there twice counts twice: neither value may hide the other. */
function headersIn(headers: unknown): HeaderValues {
  const values = new Map<string, string | string[]>();
  for (const [name, value] of headerEntries(headers)) {
    const before = values.get(name);
    values.set(name, before === undefined ? (value as string) : [before, value as string].flat());
  }
  return Object.fromEntries(values);
}

function queryIn(url: unknown): string {
  // Some transports give the path alone, as Node.js does.
  const text = String(url ?? '');
  const base = 'http://localhost';
  return URL.canParse(text, base) ? new URL(text, base).search : text;
}
