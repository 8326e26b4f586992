// Many timers of few lengths: those of one length are due in the order in which they were started, so one timer of the
// clock serves them all. A timer of the clock for each call would cost more than its claim.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '../core/clock.ts';

export interface Timers {
  /** In the background: it does not keep the process alive. */
  start(ms: number, timed: Timed): void;
}

/** Something that has a time limit; it is its own link in the list of its length. */
export interface Timed {
  dueAt: number;
  before: Timed | undefined;
  after: Timed | undefined;
  list: TimerList | undefined;
  /** Its time is over. */
  due(): void;
}

/** One that calls a function. */
export class Alarm implements Timed {
  dueAt = 0;
  before: Timed | undefined = undefined;
  after: Timed | undefined = undefined;
  list: TimerList | undefined = undefined;
  readonly due: () => void;

  constructor(due: () => void) {
    this.due = due;
  }
}

export function createTimers(clock: Clock): Timers {
  const lists = new Map<number, TimerList>();

  return {
    start(ms, timed) {
      let list = lists.get(ms);
      if (list === undefined) {
        list = new TimerList(clock, ms);
        lists.set(ms, list);
      }
      list.start(timed);
    },
  };
}

const outside = AsyncLocalStorage.snapshot();

export class TimerList {
  readonly #clock: Clock;
  readonly #ms: number;
  #first: Timed | undefined;
  #last: Timed | undefined;
  /** Stopping a timer leaves the clock's alone: it finds the next one, or nothing to do. */
  #isArmed = false;

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
  }

  start(timed: Timed, now: number = this.#clock.mono()): void {
    timed.dueAt = now + this.#ms;
    timed.list = this;
    timed.before = this.#last;
    if (this.#last === undefined) this.#first = timed;
    else this.#last.after = timed;
    this.#last = timed;
    if (!this.#isArmed) this.#arm(this.#ms);
  }

  remove(timed: Timed): void {
    if (timed.before === undefined) this.#first = timed.after;
    else timed.before.after = timed.after;
    if (timed.after === undefined) this.#last = timed.before;
    else timed.after.before = timed.before;
    timed.list = undefined;
    // A removed link in the old generation would keep its young neighbours, and they theirs, with all of their calls.
    timed.before = undefined;
    timed.after = undefined;
  }

  #arm(ms: number): void {
    this.#isArmed = true;
    // Rounded up: a clock that counts whole milliseconds would wake it too early, again and again. The call that happens to
    // arm it must not lend its context to the others.
    outside(() => this.#clock.setTimeout(() => this.#fire(), Math.ceil(ms), 'background'));
  }

  #fire(): void {
    this.#isArmed = false;
    const now = this.#clock.mono();
    for (let timed = this.#first; timed !== undefined && timed.dueAt <= now; timed = this.#first) {
      this.remove(timed);
      timed.due();
    }
    if (this.#first !== undefined && !this.#isArmed) this.#arm(this.#first.dueAt - now);
  }
}
