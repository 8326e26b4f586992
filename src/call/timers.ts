// Many timers of few lengths: those of one length are due in the order in which they were started, so one timer of the clock
// serves them all. A timer of the clock for each call would cost more than its claim.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '../core/clock.ts';

export interface Timers {
  /** In the background: it does not keep the process alive. */
  start(ms: number, run: () => void): Timer;
}

/** A link in the list of its length. */
export interface Timer {
  stop(): void;
}

export function createTimers(clock: Clock): Timers {
  const lists = new Map<number, TimerList>();

  return {
    start(ms, run) {
      let list = lists.get(ms);
      if (list === undefined) {
        list = new TimerList(clock, ms);
        lists.set(ms, list);
      }
      return list.start(run);
    },
  };
}

const outside = AsyncLocalStorage.snapshot();

class Link implements Timer {
  readonly dueAt: number;
  readonly run: () => void;
  before: Link | undefined;
  after: Link | undefined;
  list: TimerList | undefined;

  constructor(dueAt: number, run: () => void) {
    this.dueAt = dueAt;
    this.run = run;
  }

  stop(): void {
    this.list?.remove(this);
  }
}

class TimerList {
  readonly #clock: Clock;
  readonly #ms: number;
  #first: Link | undefined;
  #last: Link | undefined;
  /** Stopping a timer leaves the clock's alone: it finds the next one, or nothing to do. */
  #isArmed = false;

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
  }

  start(run: () => void): Timer {
    const link = new Link(this.#clock.mono() + this.#ms, run);
    link.list = this;
    link.before = this.#last;
    if (this.#last === undefined) this.#first = link;
    else this.#last.after = link;
    this.#last = link;
    if (!this.#isArmed) this.#arm(this.#ms);
    return link;
  }

  remove(link: Link): void {
    link.list = undefined;
    if (link.before === undefined) this.#first = link.after;
    else link.before.after = link.after;
    if (link.after === undefined) this.#last = link.before;
    else link.after.before = link.before;
    // A removed link in the old generation would keep its young neighbours, and they theirs, with all of their calls.
    link.before = undefined;
    link.after = undefined;
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
    for (let link = this.#first; link !== undefined && link.dueAt <= now; link = this.#first) {
      this.remove(link);
      link.run();
    }
    if (this.#first !== undefined && !this.#isArmed) this.#arm(this.#first.dueAt - now);
  }
}
