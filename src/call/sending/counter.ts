// Counts the HTTP requests that a run makes with any client of `fetch`, undici or node:http, and their answers. No request
// says nothing: what these channels do not report (HTTP/2, plain sockets) is not counted.

import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import { readFate } from '../../core/contract/one-request.ts';

interface Counter {
  count: number;
  hasSuccess: boolean;
  /** Status of the last answer to a request that is not a lookup. */
  status: number | undefined;
  /** One of them that is not a lookup was sent and got no answer: what has a status then is the answer to another one. */
  hasLostAnswer: boolean;
  /** A call inside another run belongs to both. */
  readonly outer: Counter | undefined;
}

/** What was counted so far. */
export type Counted = Readonly<Pick<Counter, 'count' | 'hasSuccess' | 'status' | 'hasLostAnswer'>>;

/** A request with one of these methods asks, and changes nothing. */
export const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

const current = new AsyncLocalStorage<Counter>();
/** Whose request it is: its answer may arrive in the context of another. */
const counters = new WeakMap<object, Counter>();
const answered = new WeakSet<object>();
let isListening = false;

/** Runs `work` and counts the requests that it and what it starts make. */
export function countRequests<T>(work: () => T): { readonly value: T; readonly counted: Counted } {
  listen();
  const none = { count: 0, hasSuccess: false, status: undefined, hasLostAnswer: false };
  const counter: Counter = { ...none, outer: current.getStore() };
  return { value: current.run(counter, work), counted: counter };
}

/** For the life of the process, from the first tool that needs it: others pay nothing. */
function listen(): void {
  if (isListening) return;
  isListening = true;
  for (const channel of ['undici:request:create', 'http.client.request.created']) subscribe(channel, add);
  for (const channel of ['undici:request:headers', 'http.client.response.finish']) subscribe(channel, see);
  for (const channel of ['undici:request:error', 'http.client.request.error']) subscribe(channel, lose);
}

interface Message {
  readonly request: { readonly method?: string };
  readonly response?: { readonly statusCode?: number };
  readonly error?: unknown;
}

function add(message: unknown): void {
  const own = current.getStore();
  if (own !== undefined) counters.set((message as Message).request, own);
  for (let counter = own; counter !== undefined; counter = counter.outer) counter.count += 1;
}

function see(message: unknown): void {
  const { request, response } = message as Message;
  const status = response?.statusCode ?? 0;
  const isLookup = isLookupRequest(request);
  if (status >= 200) answered.add(request);
  for (let counter = counters.get(request); counter !== undefined; counter = counter.outer) {
    if (status >= 200 && status <= 299) counter.hasSuccess = true;
    if (!isLookup) counter.status = status;
  }
}

/** A client may send it again outside of this context, on a connection that another call has opened: then it is not counted. */
function lose(message: unknown): void {
  const { request, error } = message as Message;
  if (answered.has(request) || isLookupRequest(request) || readFate(error) === 'not sent') return;
  for (let counter = counters.get(request); counter !== undefined; counter = counter.outer)
    counter.hasLostAnswer = true;
}

function isLookupRequest({ method = 'GET' }: Message['request']): boolean {
  return safeMethods.has(method);
}
