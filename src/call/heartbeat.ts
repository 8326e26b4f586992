// Renews a lease while an attempt runs. The holder counts the lease from when it sent the request, so it never
// assumes more than the store granted; on the monotonic clock, and on the wall clock, since the former stops while the machine
// sleeps.

import { type Clock, Moment } from '../core/clock.ts';
import type { Timer, TimerList, Timers } from '../ledger/index.ts';
import type { RenewAnswer } from '../store/store.ts';

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
  /** When the present lease was requested. */
  #sentAt: Moment;
  #isStopped = false;
  /** A long lease is checked more often than each third of it, when it is renewed: timers stop while a machine sleeps. */
  readonly #checkMs: number;

  /** `sentAt`: when the claim was sent. */
  constructor(clock: Clock, timers: Timers, lease: Lease, sentAt: Moment, now: number) {
    this.#clock = clock;
    this.#timers = timers;
    this.#lease = lease;
    this.#sentAt = sentAt;
    const thirdMs = lease.leaseMs / 3;
    this.#checkMs = thirdMs / Math.ceil(thirdMs / maxCheckMs);
    this.#schedule(now);
  }

  /** How long the lease surely lasts. A wall clock that is set forward costs one renewal. */
  leftMs(): number {
    return this.#lease.leaseMs - this.#sentAt.passedMs(this.#clock);
  }

  /** Renews now; false: the lease is lost. */
  async renew(): Promise<boolean> {
    const sentAt = new Moment(this.#clock);
    const { held } = await this.#lease.renewLease();
    if (held) this.#sentAt = sentAt;
    else if (!this.#isStopped) {
      this.stop();
      this.#lease.onLeaseLost();
    }
    return held;
  }

  get isStopped(): boolean {
    return this.#isStopped;
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
      // A store that does not answer now may answer at the next beat; meanwhile the lease runs out by itself.
      .catch(() => undefined)
      .finally(() => {
        if (!this.#isStopped) this.#schedule();
      });
  }

  get #isDue(): boolean {
    const { leaseMs } = this.#lease;
    // With tolerance: a timer that fires a little early would otherwise wait for one more check.
    return leaseMs - this.leftMs() > leaseMs / 3 - this.#checkMs / 2;
  }

  #schedule(now?: number): void {
    this.#timers.start(this.#checkMs, this, now);
  }
}

/** After a machine wakes up, its effects may run this long under a lost lease. */
const maxCheckMs = 10_000;
