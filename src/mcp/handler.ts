// Guards one tool's handler in your own MCP server, with version 1 or 2 of the SDK:
// `server.registerTool('charge', config, guard(semel, 'charge', policy, handler))`.

import { digestCaller, digestEnvironment, type HeaderValues } from '../core/caller.ts';
import type { Effect } from '../core/contract/words.ts';
import { SemelError } from '../core/errors.ts';
import { headerEntries } from '../core/header-entries.ts';
import { createGuard, type PolicyTerms } from '../guard/index.ts';
import { namedCaller, type Semel } from '../semel/index.ts';
import { defaultErrors, defaultWeakWindow, type ErrorMeaning, errorMeanings } from './policy/policies.ts';
import { asRecord, type ToolCall, type ToolResult } from './protocol/messages.ts';
import { isUnfinished } from './proxy/outcome.ts';
import { createRunAgain, type RunAgain, runAgainTool, unknownRefResult } from './proxy/run-again.ts';
import { createToolGuard } from './proxy/tool-calls.ts';

export { currentAttempt, isToolError, type Policy, type PolicyTerms } from '../guard/index.ts';
export type { ErrorMeaning } from './policy/policies.ts';

/** A tool's terms, and what its error results mean. */
export interface HandlerTerms<Args> extends PolicyTerms<Args> {
  /** @default 'ask'; 'in-doubt' for an irreversible effect or high stakes */
  readonly errors?: ErrorMeaning;
}

/** The SDK passes args and extra, or extra alone if the tool has no schema. */
type ArgsIn<Params extends readonly unknown[]> = Params extends readonly [infer Args, unknown]
  ? Args
  : unknown;

/** Returns a handler of the same type whose effect lands once. */
export function guard<Params extends readonly unknown[], Result>(
  semel: Semel,
  name: string,
  policy: Effect | HandlerTerms<ArgsIn<NoInfer<Params>>>,
  handler: (...params: Params) => Result | Promise<Result>,
): (...params: Params) => Result | Promise<Result> {
  const { errors: ownMeaning, ...terms } = typeof policy === 'string' ? { effect: policy } : policy;
  const errors = ownMeaning ?? defaultErrors(terms);
  if (typeof handler !== 'function')
    refuse(String(name), 'the handler is missing.', "Write guard(semel, 'refund', policy, handler).");
  if (!errorMeanings.includes(errors))
    refuse(name, `\`errors\` is ${JSON.stringify(errors)}.`, `Write one of ${errorMeanings.join(', ')}.`);
  const policyTerms = { weakWindow: defaultWeakWindow, ...terms } as PolicyTerms;
  const guardedTool = createGuard(semel, name, policyTerms, {
    isControlFlow: (error) => isUnfinished(error) || isVisitRequest(error),
  });
  if (guardedTool === undefined) return handler;
  const { answer } = createToolGuard(semel, guardedTool, { errors, runAgain: repeatsFor(semel).runAgain });
  return async (...params: Params): Promise<Result> => {
    // Without a schema the SDK passes no args. Your own code may pass args alone: taken for `extra`, all calls would be equal.
    const hasArgs = params.length > 1 || !isExtra(params[0]);
    const [args = {}, extra] = hasArgs ? params : [{}, params[0]];
    const call = toToolCall(name, args, extra);
    const own = readCaller(extra);
    const isNamed = namedCaller() !== undefined;
    const caller = {
      scope: scopeOf(own),
      caller: isNamed ? undefined : own,
      // Two processes with two accounts may use one ledger.
      account: isNamed || own !== undefined ? undefined : digestEnvironment(process.env),
      identity: {},
    };
    const reply = await answer(call, caller, async (_key, _signal, firstArgs) => {
      const sent = hasArgs && firstArgs !== undefined ? [firstArgs, ...params.slice(1)] : params;
      const result = ((await handler(...(sent as Params))) ?? {}) as ToolResult;
      return { jsonrpc: '2.0', id: call.id, result };
    });
    if ('result' in reply) return reply.result as Result;
    const { message: text, data } = reply.error;
    return { content: [{ type: 'text', text }], isError: true, _meta: data } as Result;
  };
}

/** Register `runAgain` under this name. */
export const runAgainName: string = runAgainTool.name;
export const runAgainDescription: string = runAgainTool.description;

/**
 * The handler of the tool that a model calls to confirm a repeat as a new action. Register it as `runAgainName` with one
 * argument, `ref`. Without it a person has to confirm such a repeat.
 */
export function runAgain(
  semel: Semel,
): (
  args: { readonly ref: string },
  extra: unknown,
) => Promise<{ content: { type: 'text'; text: string }[] }> {
  const repeats = repeatsFor(semel);
  repeats.isAnswerable = true;
  return async (args, extra) => {
    const result = await repeats.runAgain.allow(scopeOf(readCaller(extra)), args);
    return (result ?? unknownRefResult()) as { content: { type: 'text'; text: string }[] };
  };
}

interface Repeats {
  readonly runAgain: RunAgain;
  isAnswerable: boolean;
}

/** All guards of a Semel instance share them. */
const known = new WeakMap<Semel, Repeats>();

function repeatsFor(semel: Semel): Repeats {
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

/** The user has to visit a page first. Nothing ran; the SDK passes this error to the client. */
function isVisitRequest(error: unknown): boolean {
  return asRecord(error).code === -32042;
}

/** Version 2 keeps some facts in `mcpReq`. Read one by one: an SDK may define them as getters. */
function readFact(extra: unknown, name: string): unknown {
  const params = asRecord(extra);
  return asRecord(params.mcpReq)[name] ?? params[name];
}

/** What either version of the SDK passes with a request: its signal, which no args from a client can have. */
function isExtra(param: unknown): boolean {
  return typeof asRecord(readFact(param, 'signal')).addEventListener === 'function';
}

function toToolCall(name: string, args: unknown, extra: unknown): ToolCall {
  const inputResponses = readFact(extra, 'inputResponses');
  const requestState = readFact(extra, 'requestState');
  const state: unknown = typeof requestState === 'function' ? requestState() : requestState;
  const params = {
    name,
    arguments: args,
    _meta: asRecord(readFact(extra, '_meta')),
    ...(inputResponses === undefined ? {} : { inputResponses }),
    ...(state === undefined ? {} : { requestState: state }),
  };
  return { jsonrpc: '2.0', id: 0, method: 'tools/call', params };
}

/**
 * Undefined without HTTP: the process has only one client. A session does not identify a caller: a client that lost its session
 * comes back with another one and repeats its calls.
 */
function readCaller(extra: unknown): string | undefined {
  const authInfo = readFact(extra, 'authInfo');
  const requestInfo = readFact(extra, 'requestInfo');
  const http = readFact(extra, 'http');
  const verified = asRecord(authInfo ?? asRecord(http).authInfo);
  const request = asRecord(requestInfo ?? asRecord(http).req);
  if (authInfo === undefined && requestInfo === undefined && http === undefined) return undefined;
  return digestCaller({ verified, headers: collectHeaders(request.headers), query: readQuery(request.url) });
}

/** Keeps both values of a repeated header: neither may hide the other. */
function collectHeaders(headers: unknown): HeaderValues {
  const values = new Map<string, string | string[]>();
  for (const [name, value] of headerEntries(headers)) {
    const before = values.get(name);
    values.set(name, before === undefined ? (value as string) : [before, value as string].flat());
  }
  return Object.fromEntries(values);
}

function readQuery(url: unknown): string {
  // Some transports give only the path, as Node.js does.
  const text = String(url ?? '');
  const base = 'http://localhost';
  return URL.canParse(text, base) ? new URL(text, base).search : text;
}
