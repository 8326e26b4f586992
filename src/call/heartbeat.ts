// Keeps a lease alive while an attempt runs. The holder counts its lease from the moment it asked, on its own monotonic
// clock, so it never believes in more than the store granted; and on its wall clock, since the other one stands still while
// the machine sleeps.

import type { Clock } from '../core/clock.ts';
import type { Timer, TimerList, Timers } from '../ledger/index.ts';
import type { RenewAnswer } from '../store/store.ts';

/** One moment, by both clocks. */
export interface Moment {
  readonly mono: number;
  readonly wall: number;
}

export function momentOf(clock: Clock): Moment {
  return { mono: clock.mono(), wall: clock.now() };
}

export interface Lease {
  readonly leaseMs: number;
  renewLease(): Promise<RenewAnswer>;
  /** Called once: the store refused a renewal. */
  onLeaseLost(): void;
}

export class Heartbeat implements Timer {
  dueAt = 0;
  previous: Timer | undefined = undefined;
  next: Timer | undefined = undefined;
  list: TimerList | undefined = undefined;
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #lease: Lease;
  /** When the lease was asked for that is held now. */
  #askedAt: Moment;
  #isStopped = false;

  /** `askedAt`: when the claim was asked for. */
  constructor(clock: Clock, timers: Timers, lease: Lease, askedAt: Moment) {
    this.#clock = clock;
    this.#timers = timers;
    this.#lease = lease;
    this.#askedAt = askedAt;
    this.#schedule();
  }

  /** How long the lease is sure to last. A wall clock that is set forward costs one renewal. */
  leftMs(): number {
    const { mono, wall } = this.#askedAt;
    const passedMs = Math.max(this.#clock.mono() - mono, this.#clock.now() - wall);
    return this.#lease.leaseMs - passedMs;
  }

  /** Renews at once; false: somebody else holds the key, or nobody can say. */
  async renew(): Promise<boolean> {
    const askedAt = momentOf(this.#clock);
    const { held } = await this.#lease.renewLease();
    if (held) this.#askedAt = askedAt;
    else if (!this.#isStopped) {
      this.stop();
      this.#lease.onLeaseLost();
    }
    return held;
  }

  stop(): void {
    this.#isStopped = true;
    this.list?.remove(this);
  }

  onDue(): void {
    if (!this.#isDue) {
      this.#schedule();
      return;
    }
    this.renew()
      // A store that does not answer now may answer at the next beat; the lease runs out by itself.
      .catch(() => undefined)
      .finally(() => {
        if (!this.#isStopped) this.#schedule();
      });
  }

  get #isDue(): boolean {
    const { leaseMs } = this.#lease;
    // Not to the millisecond: a timer that came too early would wait for one look more.
    return leaseMs - this.leftMs() > leaseMs / 3 - this.#lookMs / 2;
  }

  /** Renewed at each third of the lease, which is looked at more often where it is long: timers do not run in a machine's sleep. */
  get #lookMs(): number {
    const thirdMs = this.#lease.leaseMs / 3;
    return thirdMs / Math.ceil(thirdMs / longestLookMs);
  }

  #schedule(): void {
    this.#timers.start(this.#lookMs, this);
  }
}

/** How long after a machine has woken up its effects may go on under leases that are over. */
const longestLookMs = 10_000;
