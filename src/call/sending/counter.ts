// Counts the HTTP requests that a run makes with any client of `fetch`, undici or node:http. Only more than one says
// something: what these channels do not report (HTTP/2, plain sockets) is not counted.

import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';

interface Counter {
  count: number;
  /** A call inside another run belongs to both. */
  readonly outer: Counter | undefined;
}

const current = new AsyncLocalStorage<Counter>();
let isListening = false;

/** Runs `work`; returns how many requests it and what it started have made so far. */
export function countRequests<T>(work: () => T): { readonly value: T; readonly count: () => number } {
  listen();
  const counter: Counter = { count: 0, outer: current.getStore() };
  const value = current.run(counter, work);
  return { value, count: () => counter.count };
}

/** For the life of the process, from the first tool that needs it: others pay nothing. */
function listen(): void {
  if (isListening) return;
  isListening = true;
  for (const channel of ['undici:request:create', 'http.client.request.created']) subscribe(channel, add);
}

function add(): void {
  for (let counter = current.getStore(); counter !== undefined; counter = counter.outer) counter.count += 1;
}
