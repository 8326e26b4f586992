// How the ledger asks a store that may not answer: again, with the same token, for a bounded time. A store's every method
// is safe to repeat, so a lost reply costs nothing but the question. Our own stores give up by themselves, earlier and
// with a better reason; a store of one's own may never answer.

import type { Clock, Random } from '../core/clock.ts';
import { isSemelError, SemelError } from '../core/errors.ts';
import { createCircuit } from './circuit.ts';
import type { EventHub } from './events.ts';
import { pause } from './pause.ts';
import { type Timed, TimerList } from './timers.ts';

/** A store can take long to answer; its asker may have left by then, and what the store did must not be lost. */
export interface Asker<Answer> {
  /** Set when it asks: ends the wait with this error. True: of the answer, or that there is none, it hears later. */
  leave: ((error: SemelError) => boolean) | undefined;
  /** Hears of an answer that comes after it left. */
  answeredLate(answer: Answer): void;
  /** Hears of every failure: the store may have done what was asked. */
  failed(error: SemelError): void;
}

const maxTries = 4;
const firstPauseMs = 20;
/** A store that took so long to say no has had patience of its own. */
const longMs = 5_000;
const limitMs = 15_000;
/** A timer this late means that the process was stopped or blocked. Answers that came meanwhile are delivered after it. */
const lateMs = 1_000;

/** What all questions of one ledger share. */
export interface Desk {
  readonly clock: Clock;
  readonly random: Random;
  /** Questions that wait for an answer. */
  readonly waiting: TimerList;
  /** Those whose answer may have come while the process was stopped. */
  readonly overdue: TimerList;
  /** Throws while the store is known to be down: new work is refused at once. */
  refuseIfDown(): void;
  up(): void;
  down(error: SemelError): void;
  gaveUp(error: SemelError): void;
}

export function createDesk(clock: Clock, random: Random, events: EventHub): Desk {
  const circuit = createCircuit(clock);
  let downSince: number | undefined;
  return {
    clock,
    random,
    waiting: new TimerList(clock, limitMs),
    overdue: new TimerList(clock, lateMs),
    refuseIfDown: circuit.enter,
    gaveUp: circuit.failed,
    up() {
      circuit.succeeded();
      if (downSince === undefined) return;
      events.emit('storeUp', { downForMs: clock.mono() - downSince });
      downSince = undefined;
    },
    down(error) {
      if (downSince !== undefined) return;
      downSince = clock.mono();
      events.emit('storeDown', { error: error.message });
    },
  };
}

type Hear<Request, Answer, Heard> = (
  answer: Answer,
  question: { readonly request: Request; readonly askedAt: number },
) => Heard;

/**
 * One question, `store[method](request)`, with its deadline, its repetitions and an asker who may leave: one object and
 * one promise for all of that, since every call asks twice. `hear` turns the answer into what the promise gives.
 */
export class Question<Method extends string, Request, Answer, Heard> implements Timed {
  dueAt = 0;
  before: Timed | undefined = undefined;
  after: Timed | undefined = undefined;
  list: TimerList | undefined = undefined;
  readonly request: Request;
  readonly askedAt: number;
  readonly #desk: Desk;
  readonly #store: { readonly [M in Method]: (request: Request) => Promise<Answer> };
  readonly #method: Method;
  readonly #hear: Hear<Request, Answer, Heard>;
  readonly #asker: Asker<Answer> | undefined;
  readonly #isBounded: boolean;
  readonly #promise: PromiseWithResolvers<Heard> = Promise.withResolvers();
  #tries = 0;
  #isWaiting = false;
  #hasLeft = false;
  #isOver = false;

  constructor(
    desk: Desk,
    store: { readonly [M in Method]: (request: Request) => Promise<Answer> },
    method: Method,
    request: Request,
    hear: Hear<Request, Answer, Heard>,
    asker?: Asker<Answer>,
    isBounded = true,
  ) {
    this.#desk = desk;
    this.#store = store;
    this.#method = method;
    this.request = request;
    this.#hear = hear;
    this.#asker = asker;
    this.#isBounded = isBounded;
    this.askedAt = desk.clock.mono();
    if (asker !== undefined) asker.leave = (error) => this.#leave(error);
  }

  ask(): Promise<Heard> {
    this.#tries += 1;
    this.#isWaiting = true;
    if (this.#isBounded) this.#desk.waiting.start(this);
    try {
      this.#store[this.#method](this.request).then(
        (answer) => this.#answered(answer),
        (thrown) => this.#threw(thrown),
      );
    } catch (thrown) {
      this.#threw(thrown);
    }
    return this.#promise.promise;
  }

  due(): void {
    const { clock, overdue } = this.#desk;
    if (clock.mono() - this.dueAt > lateMs) overdue.start(this);
    else this.#threw(noAnswer());
  }

  #leave(error: SemelError): boolean {
    if (this.#isOver) return false;
    this.#hasLeft = true;
    this.#promise.reject(error);
    return true;
  }

  #answered(answer: Answer): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#isOver = true;
    this.list?.remove(this);
    this.#desk.up();
    if (this.#hasLeft) this.#asker?.answeredLate(answer);
    else {
      try {
        this.#promise.resolve(this.#hear(answer, this));
      } catch (error) {
        this.#promise.reject(error);
      }
    }
  }

  #threw(thrown: unknown): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.list?.remove(this);
    const { clock, random, down, gaveUp } = this.#desk;
    const error = asStoreError(thrown);
    // What is wrong with one record says nothing of the store.
    const isOfTheStore = error.retriable && error.code === 'STORE_UNAVAILABLE';
    if (isOfTheStore) down(error);
    if (!isOfTheStore || this.#tries >= maxTries || clock.mono() - this.askedAt > longMs) {
      this.#isOver = true;
      if (isOfTheStore) gaveUp(error);
      this.#asker?.failed(error);
      this.#promise.reject(error);
      return;
    }
    const pauseMs = firstPauseMs * 2 ** this.#tries * (0.5 + random.fraction());
    void pause(clock, pauseMs).then(() => void this.ask());
  }
}

/** For questions that are more than one method of the store. */
export const call = { by: <Answer>(question: () => Promise<Answer>): Promise<Answer> => question() };

/** The answer as it is. */
export const same = <Answer>(answer: Answer): Answer => answer;

/** A store of one's own may throw anything: nothing was recorded, so nothing may run. */
function asStoreError(thrown: unknown): SemelError {
  if (isSemelError(thrown)) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new SemelError('STORE_UNAVAILABLE', `The store failed: ${message}.`, { cause: thrown });
}

function noAnswer(): SemelError {
  return new SemelError('STORE_UNAVAILABLE', `The store has not answered within ${limitMs / 1_000} seconds.`);
}
