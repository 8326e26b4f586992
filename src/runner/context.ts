// What the effect gets: its key for the provider, a fetch that knows what became of each request, the signal,
// and the line.

import { fateOfError, fateOfStatus, type RequestFate } from '../core/classify.ts';
import type { Provider } from '../core/contract.ts';
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
}

interface ContextSource {
  readonly namespace: string;
  readonly recordKey: string;
  readonly keyFence: () => number;
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

  async function fetchWithKey(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const request = new Request(input, init);
    if (safeMethods.has(request.method)) return fetch(request, { signal: joined(request.signal) });
    source.stop.throwIfAsked();
    await source.cross();
    const nth = fates.length;
    // Until it is known what became of it, nobody knows.
    fates.push('ambiguous');
    const headers = new Headers(request.headers);
    const header = provider?.header ?? 'Idempotency-Key';
    if (provider !== undefined && mayKnowKey(provider, request.url) && !headers.has(header)) {
      headers.set(header, nth === 0 ? keyFor() : keyFor(String(nth + 1)));
    }
    try {
      const response = await fetch(new Request(request, { headers }), { signal: joined(request.signal) });
      fates[nth] = fateOfStatus(response.status);
      return response;
    } catch (error) {
      fates[nth] = fateOfError(error);
      throw error;
    }
  }

  function joined(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, source.stop.signal]);
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
      return source.stop.signal;
    },
    dispatch: source.cross,
    note: source.note,
    get prepared() {
      return source.prepared();
    },
  };
  return { ctx, log: { fates } };
}

/** A key is a capability to replay an answer: it goes to the provider's own hosts only. */
function mayKnowKey(provider: Provider, url: string): boolean {
  const { host, hostname } = new URL(url);
  return (provider.hosts ?? []).some(
    (allowed) => allowed === host || allowed === hostname || hostname.endsWith(`.${allowed}`),
  );
}
