// Sends one request to a store that may not answer: retries it with the same token, for a bounded time. Every method of a
// store is safe to repeat, so a lost reply costs only the retry. Our own stores time out earlier, with a better reason; a
// user's own store may never answer.

import type { Clock, Random } from '../core/clock.ts';
import { isSemelError, SemelError } from '../core/errors.ts';
import { type Circuit, createCircuit } from './circuit.ts';
import type { EventHub } from './events.ts';
import { sleep, type Timer, TimerList } from './timers.ts';

/** The caller of a request. It may stop waiting for the reply, but must not lose what the store did. */
export interface Requester<Reply> {
  /** Set by the request: the request itself. */
  pending: { abandon(error: SemelError): boolean } | undefined;
  /** Called with a reply that comes after the request was abandoned. */
  onLateReply(reply: Reply): void;
  /** Called when the request fails for good: the store may have acted on it. */
  onFailure(error: SemelError): void;
}

const maxTries = 4;
const firstPauseMs = 20;
/** A store that took this long to fail has retried by itself. */
const longMs = 5_000;
const limitMs = 15_000;
/** A timer this late means that the process was stopped or blocked. Replies that arrived meanwhile are delivered after it. */
const lateMs = 1_000;

/** What all requests of one ledger share. */
export interface RequestEnv {
  readonly clock: Clock;
  readonly random: Random;
  readonly circuit: Circuit;
  /** Requests that wait for a reply. */
  readonly waiting: TimerList;
  /** Requests whose reply may have arrived while the process was stopped. */
  readonly overdue: TimerList;
}

export function createRequestEnv(clock: Clock, random: Random, events: EventHub): RequestEnv {
  return {
    clock,
    random,
    circuit: createCircuit(clock, events),
    waiting: new TimerList(clock, limitMs),
    overdue: new TimerList(clock, lateMs),
  };
}

type Receive<Params, Reply, Value> = (
  reply: Reply,
  request: { readonly params: Params; readonly sentAt: number },
) => Value;

/**
 * `store[method](params)` with its deadline, its retries and a requester who may leave: one object and one promise for all
 * of that, since every call makes two requests. `receive` turns the reply into the value of the promise.
 */
export class StoreRequest<Method extends string, Params, Reply, Value> implements Timer {
  dueAt = 0;
  previous: Timer | undefined = undefined;
  next: Timer | undefined = undefined;
  list: TimerList | undefined = undefined;
  readonly params: Params;
  readonly sentAt: number;
  readonly #env: RequestEnv;
  readonly #store: { readonly [M in Method]: (params: Params) => Promise<Reply> };
  readonly #method: Method;
  readonly #receive: Receive<Params, Reply, Value>;
  readonly #requester: Requester<Reply> | undefined;
  readonly #isBounded: boolean;
  readonly #promise: Promise<Value>;
  #resolve!: (value: Value) => void;
  #reject!: (reason: unknown) => void;
  #tries = 0;
  #isWaiting = false;
  #isAbandoned = false;
  #isOver = false;

  constructor(
    env: RequestEnv,
    store: { readonly [M in Method]: (params: Params) => Promise<Reply> },
    method: Method,
    params: Params,
    receive: Receive<Params, Reply, Value>,
    requester?: Requester<Reply>,
    isBounded = true,
  ) {
    this.#env = env;
    this.#store = store;
    this.#method = method;
    this.params = params;
    this.#receive = receive;
    this.#requester = requester;
    this.#isBounded = isBounded;
    this.sentAt = env.clock.mono();
    this.#promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (requester !== undefined) requester.pending = this;
  }

  send(now: number = this.sentAt): Promise<Value> {
    this.#tries += 1;
    this.#isWaiting = true;
    if (this.#isBounded) this.#env.waiting.start(this, now);
    try {
      this.#store[this.#method](this.params).then(
        (reply) => this.#onReply(reply),
        (thrown) => this.#onThrow(thrown),
      );
    } catch (thrown) {
      this.#onThrow(thrown);
    }
    return this.#promise;
  }

  onDue(): void {
    const { clock, overdue } = this.#env;
    if (clock.mono() - this.dueAt > lateMs) overdue.start(this);
    else this.#onThrow(noReplyError());
  }

  /** Ends the wait with this error. True: the reply or the failure is reported later. */
  abandon(error: SemelError): boolean {
    if (this.#isOver) return false;
    this.#isAbandoned = true;
    this.#reject(error);
    return true;
  }

  #onReply(reply: Reply): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#isOver = true;
    this.list?.remove(this);
    this.#env.circuit.succeeded();
    if (this.#isAbandoned) this.#requester?.onLateReply(reply);
    else {
      try {
        this.#resolve(this.#receive(reply, this));
      } catch (error) {
        this.#reject(error);
      }
    }
  }

  #onThrow(thrown: unknown): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.list?.remove(this);
    const { clock, random, circuit } = this.#env;
    const error = toStoreError(thrown);
    // An error about one record says nothing about the store.
    const isOutage = error.retriable && error.code === 'STORE_UNAVAILABLE';
    if (isOutage) circuit.failed(error);
    if (!isOutage || this.#tries >= maxTries || clock.mono() - this.sentAt > longMs) {
      this.#isOver = true;
      if (isOutage) circuit.gaveUp(error);
      this.#requester?.onFailure(error);
      this.#reject(error);
      return;
    }
    const pauseMs = firstPauseMs * 2 ** this.#tries * (0.5 + random.fraction());
    void sleep(clock, pauseMs).then(() => void this.send(clock.mono()));
  }
}

/** For requests that are not one method of the store. */
export const callback = { run: <Reply>(request: () => Promise<Reply>): Promise<Reply> => request() };

/** For replies that need no translation. */
export const identity = <Reply>(reply: Reply): Reply => reply;

/** A user's own store may throw anything: nothing was recorded, so nothing may run. */
function toStoreError(thrown: unknown): SemelError {
  if (isSemelError(thrown)) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new SemelError('STORE_UNAVAILABLE', `The store failed: ${message}.`, { cause: thrown });
}

function noReplyError(): SemelError {
  return new SemelError('STORE_UNAVAILABLE', `The store has not answered within ${limitMs / 1_000} seconds.`);
}
