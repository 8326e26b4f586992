// The `ctx` of an effect: its key for the provider, a fetch that tracks each request, the signal, and `dispatch`. Most
// effects use little of it: keys and signals are made on demand.

import { markText } from '../../core/key/key.ts';
import { Watched } from '../../core/watched.ts';
import type { StepOptions, StepWork } from '../steps.ts';
import { type RequestSource, Requests } from './requests.ts';

export interface AttemptContext<Prepared = unknown> {
  /** The key for the provider, in the form that it wants; the same for every attempt at this intent. */
  readonly key: string;
  /** The key of a second request of the same run, by a name of its own. */
  readonly keyFor: (part: string) => string;
  /**
   * A short text to leave on what is created (metadata, a tag, a hidden comment), by which `verify` finds it: the same for
   * every attempt at this intent. `part` tells several effects of one run apart.
   */
  readonly mark: (part?: string) => string;
  /** `fetch` that adds the key for the contract's provider and tracks what became of each request. */
  readonly fetch: typeof globalThis.fetch;
  /** Grows with every claim: for targets that can refuse a stale one. */
  readonly fence: number;
  readonly attempt: number;
  /** Aborts when the lease is lost, the timeout is over, or the only caller gave up. */
  readonly signal: AbortSignal;
  /** Marks the point from which the effect may land. Needed with `dispatch: 'explicit'`. */
  readonly dispatch: () => Promise<void>;
  /**
   * Stores the provider's own id for what was sent, at once: after a crash, `verify` and people get it. Resolves to true
   * when it is stored, and to false if it is only kept for the end of the attempt; never rejects, and need not be awaited.
   */
  readonly note: (remoteRef: string) => Promise<boolean>;
  /**
   * An effect with a record of its own: a retry replays the steps that landed and goes on after them. With `via: 'steps'` in the
   * contract, all effects are steps.
   */
  readonly step: {
    <Value>(name: string, work: StepWork<Value>): Promise<Awaited<Value>>;
    <Value>(
      name: string,
      options: StepOptions<NoInfer<Awaited<Value>>>,
      work: StepWork<Value>,
    ): Promise<Awaited<Value>>;
  };
  /** What `prepare` returned in the first attempt that was dispatched. */
  readonly prepared: Prepared;
  /** The transaction that was passed to `inTransaction`, or the driver's handle for its savepoint; otherwise undefined. */
  readonly tx?: unknown;
}

/** What one try needs from its attempt. */
export interface ContextSource extends RequestSource {
  readonly fence: number;
  readonly attempt: number;
  readonly prepared: unknown;
  /** @default providerKeyFence */
  readonly markFence?: number;
  note(remoteRef: string): Promise<boolean>;
  takeStep(name: string, ...rest: unknown[]): Promise<unknown>;
}

/** One per try: requests of a later try get the same keys again, in the same order. */
export function createContext(source: ContextSource): { ctx: AttemptContext; requests: Requests } {
  const requests = new Requests(source);
  return { ctx: new Context(source, requests) as unknown as AttemptContext, requests };
}

const requestsSymbol = Symbol('requests');

/**
 * All properties are the object's own, since effects spread it. The getters are what costs to make, or says something by
 * being read: a key that was never read cannot have been sent.
 */
class Context {
  readonly keyFor: AttemptContext['keyFor'];
  readonly mark: AttemptContext['mark'];
  readonly fetch: AttemptContext['fetch'];
  readonly fence: number;
  readonly attempt: number;
  readonly dispatch: AttemptContext['dispatch'];
  readonly note: AttemptContext['note'];
  readonly step: (name: string, ...rest: unknown[]) => Promise<unknown>;
  prepared: unknown;
  declare readonly [requestsSymbol]: Requests;

  constructor(source: ContextSource, requests: Requests) {
    this.keyFor = (part) => requests.keyFor(part);
    this.mark = (part) =>
      markText(source.namespace, source.recordKey, source.markFence ?? source.providerKeyFence, part);
    this.fetch = (input, init) => requests.fetch(input, init);
    this.fence = source.fence;
    this.attempt = source.attempt;
    this.dispatch = () => requests.dispatch();
    this.note = (remoteRef) => source.note(remoteRef);
    this.step = (name, ...rest) =>
      // The attempt can no longer report it.
      requests.isOver ? Watched.of(requests.refuse()) : source.takeStep(name, ...rest);
    this.prepared = source.prepared;
    Object.defineProperty(this, requestsSymbol, { value: requests });
    // Shared descriptors: with its own getters, each context would become a dictionary, which costs four times as much.
    Object.defineProperty(this, 'key', key);
    Object.defineProperty(this, 'signal', signal);
  }
}

const key = lazyProperty((requests) => requests.keyFor());
const signal = lazyProperty((requests) => requests.signal);

function lazyProperty(read: (requests: Requests) => unknown): PropertyDescriptor & ThisType<Context> {
  return {
    get() {
      return read(this[requestsSymbol]);
    },
    enumerable: true,
    configurable: true,
  };
}

/** `prepare` has returned: what comes next gets its output. */
export function setPrepared(ctx: AttemptContext, output: unknown): void {
  (ctx as { prepared: unknown }).prepared = output;
}
