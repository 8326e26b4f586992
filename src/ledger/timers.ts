// Many timers of few lengths: those of one length are due in the order in which they were started, so one system timer
// serves them all. A system timer per call would cost more than its claim.

import { AsyncLocalStorage } from 'node:async_hooks';
import { onAbort } from '../core/abort.ts';
import type { Clock } from '../core/clock.ts';
import { type Link, LinkedList } from '../core/linked-list.ts';

export interface Timers {
  /** Does not keep the process alive. `now`: on the monotonic clock. */
  start(ms: number, timer: Timer, now?: number): void;
}

/** Anything with a time limit; it is its own link in the list of its length. */
export interface Timer extends Link<Timer> {
  dueAt: number;
  list: TimerList | undefined;
  onDue(): void;
}

export class CallbackTimer implements Timer {
  dueAt = 0;
  previous: Timer | undefined = undefined;
  next: Timer | undefined = undefined;
  list: TimerList | undefined = undefined;
  readonly onDue: () => void;

  constructor(onDue: () => void) {
    this.onDue = onDue;
  }
}

/** Sleeps until the timeout or the first abort. */
export function sleep(
  clock: Clock,
  ms: number,
  signals: readonly (AbortSignal | undefined)[] = [],
  background?: 'background',
): Promise<void> {
  return new Promise((resolve) => {
    if (signals.some((signal) => signal?.aborted)) return resolve();
    const end = () => {
      clock.clearTimeout(timer);
      for (const unlisten of unlisteners) unlisten();
      resolve();
    };
    const timer = clock.setTimeout(end, ms, background);
    const unlisteners = signals.map((signal) => onAbort(signal, end));
  });
}

/** So many lengths are kept whether they are used or not. */
const keptLengths = 100;

export function createTimers(clock: Clock): Timers {
  const lists = new Map<number, TimerList>();
  let most = keptLengths;

  /** Clients choose lengths: those that nobody uses any more must not fill the memory. */
  function endUnused(): void {
    for (const [ms, list] of lists) if (list.endIfEmpty()) lists.delete(ms);
    most = Math.max(keptLengths, 2 * lists.size);
  }

  return {
    start(ms, timer, now) {
      let list = lists.get(ms);
      if (list === undefined) {
        if (lists.size >= most) endUnused();
        list = new TimerList(clock, ms);
        lists.set(ms, list);
      }
      list.start(timer, now);
    },
  };
}

const withoutContext = AsyncLocalStorage.snapshot();

export class TimerList {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #timers: LinkedList<Timer> = new LinkedList();
  /** The system timer, while it runs. Removing a timer leaves it alone: it finds the next one, or nothing to do. */
  #armed: unknown;
  /** What starts meanwhile is due after all others: only the first of them says when to fire again. */
  #isFiring = false;

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
  }

  start(timer: Timer, now: number = this.#clock.mono()): void {
    timer.dueAt = now + this.#ms;
    timer.list = this;
    this.#timers.add(timer);
    if (this.#armed === undefined && !this.#isFiring) this.#arm(this.#ms);
  }

  remove(timer: Timer): void {
    timer.list = undefined;
    this.#timers.remove(timer);
  }

  endIfEmpty(): boolean {
    if (!this.#timers.isEmpty) return false;
    this.#clock.clearTimeout(this.#armed);
    this.#armed = undefined;
    return true;
  }

  #arm(ms: number): void {
    // Rounded up: a clock that counts whole milliseconds would fire too early, again and again. Outside of any async context:
    // the call that happens to arm it must not pass its own to the others.
    this.#armed = withoutContext(() =>
      this.#clock.setTimeout(() => this.#fire(), Math.ceil(ms), 'background'),
    );
  }

  #fire(): void {
    this.#armed = undefined;
    this.#isFiring = true;
    const now = this.#clock.mono();
    try {
      for (
        let { first } = this.#timers;
        first !== undefined && first.dueAt <= now;
        { first } = this.#timers
      ) {
        this.remove(first);
        first.onDue();
      }
    } finally {
      this.#isFiring = false;
      const { first } = this.#timers;
      if (first !== undefined && this.#armed === undefined) this.#arm(first.dueAt - now);
    }
  }
}
