// Sees the requests that one row makes through `fetch`, and can lose the reply of one: the target has done its
// work, the caller gets an error. Other code of the process that uses fetch at the same time is left alone.

import { AsyncLocalStorage } from 'node:async_hooks';
import { lostReply } from './watch.ts';

export interface SeenRequest {
  readonly host: string;
  /** It may change something at the target. */
  readonly unsafe: boolean;
  readonly headers: ReadonlySet<string>;
}

export interface Line {
  readonly requests: SeenRequest[];
  /** The reply to the next unsafe request never arrives. */
  loseNext: boolean;
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);
const lines = new AsyncLocalStorage<Line>();
let users = 0;
let original: typeof globalThis.fetch | undefined;

export function onLine<T>(line: Line, work: () => T): T {
  return lines.run(line, work);
}

/** From now on, and until what it returns is called, `fetch` is listened to. */
export function listen(): () => void {
  users += 1;
  if (users === 1) {
    original = globalThis.fetch;
    globalThis.fetch = listening;
  }
  return () => {
    users -= 1;
    // If other code has replaced fetch meanwhile, its version stays.
    if (users === 0 && original !== undefined && globalThis.fetch === listening) globalThis.fetch = original;
  };
}

async function listening(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const send = original as typeof globalThis.fetch;
  const line = lines.getStore();
  if (line === undefined) return send(input, init);
  const seen = describe(input, init);
  line.requests.push(seen);
  const response = await send(input, init);
  if (!seen.unsafe || !line.loseNext) return response;
  line.loseNext = false;
  await response.body?.cancel();
  throw new TypeError('fetch failed', { cause: lostReply() });
}

function describe(input: string | URL | Request, init: RequestInit | undefined): SeenRequest {
  const isRequest = typeof input === 'object' && 'headers' in input;
  const headers = new Headers(init?.headers ?? (isRequest ? input.headers : undefined));
  const method = (init?.method ?? (isRequest ? input.method : 'GET')).toUpperCase();
  return {
    host: hostOf(isRequest ? input.url : String(input)),
    unsafe: !safeMethods.has(method),
    headers: new Set(headers.keys()),
  };
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : url;
}
