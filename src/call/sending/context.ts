// What the effect gets: its key for the provider, a fetch that knows what became of each request, the signal, and the
// line. Most effects use little of it: keys and signals are made when they are asked for.

import { type RequestSource, Requests } from './requests.ts';

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

/** What the effect of one try needs of its attempt. */
export interface ContextSource extends RequestSource {
  readonly fence: number;
  readonly attempt: number;
  readonly prepared: unknown;
  note(remoteRef: string): void;
}

/** One per try: requests of a later try get the same keys again, in the same order. */
export function contextFor(source: ContextSource): { ctx: AttemptContext; requests: Requests } {
  const requests = new Requests(source);
  return { ctx: new Context(source, requests) as unknown as AttemptContext, requests };
}

const from = Symbol('source');
const by = Symbol('requests');

/** All of it lies in the object itself: effects spread it. What is rarely wanted is made when it is read. */
class Context {
  readonly keyFor: AttemptContext['keyFor'];
  readonly fetch: AttemptContext['fetch'];
  readonly fence: number;
  readonly attempt: number;
  readonly dispatch: AttemptContext['dispatch'];
  readonly note: AttemptContext['note'];
  declare readonly [from]: ContextSource;
  declare readonly [by]: Requests;

  constructor(source: ContextSource, requests: Requests) {
    this.keyFor = (part) => requests.keyFor(part);
    this.fetch = (input, init) => requests.fetch(input, init);
    this.fence = source.fence;
    this.attempt = source.attempt;
    this.dispatch = () => requests.dispatch();
    this.note = (remoteRef) => source.note(remoteRef);
    Object.defineProperty(this, from, { value: source });
    Object.defineProperty(this, by, { value: requests });
    // The same getters for all: with some of its own, each context would be a dictionary, which costs four times as much.
    Object.defineProperty(this, 'key', key);
    Object.defineProperty(this, 'signal', signal);
    Object.defineProperty(this, 'prepared', prepared);
  }
}

const key = lazily(({ [by]: requests }) => requests.keyFor());
const signal = lazily(({ [from]: source }) => source.stop.signal);
const prepared = lazily(({ [from]: source }) => source.prepared);

function lazily(read: (context: Context) => unknown): PropertyDescriptor & ThisType<Context> {
  return {
    get() {
      return read(this);
    },
    enumerable: true,
    configurable: true,
  };
}
