// What the effect gets: its key for the provider, a fetch that knows what became of each request, the signal,
// and the line.

import { fateOfError, fateOfStatus, type RequestFate } from '../core/classify.ts';
import type { Provider } from '../core/contract.ts';
import { SemelError } from '../core/errors.ts';
import { providerKey } from '../core/key.ts';
import type { Stop } from './stop.ts';

export interface AttemptContext<Prepared = unknown> {
  /** The key for the provider, in the form that it wants; the same for every attempt at this intent. */
  readonly key: string;
  /** The key of a second request of the same run, by a name of its own. */
  readonly keyFor: (part: string) => string;
  /** `fetch` that adds the key for the contract's provider and remembers what became of each request. */
  readonly fetch: typeof globalThis.fetch;
  /** Grows with every claim: for targets that can refuse a stale one. */
  readonly fence: number;
  readonly attempt: number;
  /** Aborts when the lease is lost, the timeout is over, or the only caller gave up. */
  readonly signal: AbortSignal;
  /** Crosses the line: from here on the effect may land. Needed with `dispatch: 'explicit'`. */
  readonly dispatch: () => Promise<void>;
  /** Keeps the provider's own id for what landed. */
  readonly note: (remoteRef: string) => void;
  /** What `prepare` returned, at the first attempt that was dispatched. */
  readonly prepared: Prepared;
}

/** What became of the requests of one try. */
export interface RequestLog {
  readonly fates: readonly RequestFate[];
  /**
   * The try is over: what it left behind may cross no line and send nothing any more, since its ending is judged by
   * what was sent until now. Resolves when no crossing is under way.
   */
  close(): Promise<void>;
}

interface ContextSource {
  readonly namespace: string;
  readonly recordKey: string;
  readonly keyFence: () => number | string;
  readonly provider: Provider | undefined;
  readonly fence: number;
  readonly attempt: number;
  readonly stop: Stop;
  readonly cross: () => Promise<void>;
  readonly note: (remoteRef: string) => void;
  readonly prepared: () => unknown;
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** One per try: requests of a later try get the same keys again, in the same order. */
export function contextFor(source: ContextSource): { ctx: AttemptContext; log: RequestLog } {
  const { namespace, recordKey, provider } = source;
  const format = provider?.format ?? ((uuid: string) => uuid);
  const keyFor = (part?: string) => format(providerKey(namespace, recordKey, source.keyFence(), part));
  const fates: RequestFate[] = [];
  const crossings = new Set<Promise<void>>();
  let isOver = false;

  async function cross(): Promise<void> {
    if (isOver) throw straggler();
    const crossing = source.cross();
    crossings.add(crossing);
    try {
      await crossing;
    } finally {
      crossings.delete(crossing);
    }
    if (isOver) throw straggler();
  }

  async function fetchWithKey(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const method = init?.method ?? (input instanceof Request ? input.method : 'GET');
    // The caller's own, not that of a request made from it: those are tied to it so loosely that it may be collected.
    const signal = joined(init?.signal ?? (input instanceof Request ? input.signal : undefined));
    if (safeMethods.has(method.toUpperCase())) return fetch(new Request(input, init), { signal });
    // Its number is taken before anything is waited for: requests made at once keep their keys on a retry.
    const nth = fates.length;
    fates.push('not sent');
    const request = withKey(new Request(input, init), nth);
    source.stop.throwIfAsked();
    await cross();
    // Until it is known what became of it, nobody knows.
    fates[nth] = 'ambiguous';
    const again = request.clone();
    let response: Response;
    try {
      response = await fetch(request, { signal, redirect: 'manual' });
      fates[nth] = fateOfStatus(response.status);
    } catch (error) {
      fates[nth] = fateOfError(error);
      throw error;
    }
    return follow(response, again, signal);
  }

  /** Where a redirect leads says nothing of the request that was redirected: its fate is known before it is followed. */
  async function follow(response: Response, request: Request, signal: AbortSignal): Promise<Response> {
    const location = response.headers.get('location');
    const isRedirect = response.status >= 301 && response.status <= 308 && location !== null;
    if (!isRedirect || request.redirect !== 'follow') return response;
    const target = new URL(location, request.url);
    if (response.status === 307 || response.status === 308) {
      return fetch(new Request(target, request), { signal });
    }
    return fetch(target, { signal });
  }

  function withKey(request: Request, nth: number): Request {
    if (provider === undefined) return request;
    const header = provider.header ?? 'Idempotency-Key';
    if (request.headers.has(header)) return request;
    if (provider.hosts === undefined) throw hostsMissing(provider);
    if (!mayKnowKey(provider.hosts, request.url)) throw strangeHost(provider, request.url);
    const headers = new Headers(request.headers);
    headers.set(header, nth === 0 ? keyFor() : keyFor(`#${nth + 1}`));
    // `fetch` would carry the key along to wherever it is sent.
    return new Request(request, { headers, redirect: 'manual' });
  }

  function joined(given: AbortSignal | undefined): AbortSignal {
    const signal = source.stop.signal();
    return given === undefined ? signal : AbortSignal.any([given, signal]);
  }

  const ctx: AttemptContext = {
    get key() {
      return keyFor();
    },
    keyFor,
    fetch: fetchWithKey,
    fence: source.fence,
    attempt: source.attempt,
    get signal() {
      return source.stop.signal();
    },
    dispatch: cross,
    note: source.note,
    get prepared() {
      return source.prepared();
    },
  };
  const log: RequestLog = {
    fates,
    async close() {
      isOver = true;
      await Promise.allSettled(crossings);
    },
  };
  return { ctx, log };
}

/** A key is a capability to replay an answer: it goes to the provider's own hosts only. */
function mayKnowKey(hosts: readonly string[], url: string): boolean {
  const { host, hostname } = new URL(url);
  return hosts.some(
    (allowed) => allowed === host || allowed === hostname || hostname.endsWith(`.${allowed}`),
  );
}

function straggler(): SemelError {
  return new SemelError('ABORTED', 'This run is over: nothing may be sent in its name any more.', {
    next: 'Await every request inside `run`.',
    retriable: false,
  });
}

/** Sent without a key, it would be sent again as if it had one. */
function strangeHost({ name }: Provider, url: string): SemelError {
  const { host } = new URL(url);
  return new SemelError(
    'CONTRACT_INVALID',
    `${host} is no host of the provider ${name}, so it would get no key.`,
    {
      path: 'provider.hosts',
      next: 'Give that request a tool of its own, name the host, or send `ctx.keyFor(…)` yourself.',
    },
  );
}

/** Sent without a key, it would be sent again as if it had one. */
function hostsMissing({ name }: Provider): SemelError {
  return new SemelError(
    'CONTRACT_INVALID',
    `The provider ${name} does not say which hosts may get its key.`,
    {
      path: 'provider.hosts',
      next: "Name them, like hosts: ['api.example.com']; or send `ctx.key` yourself.",
    },
  );
}
