// Keeps a lease alive while an attempt runs. The holder counts its lease from the moment it asked, on its own
// monotonic clock, so it never believes in more than the store granted.

import type { Clock } from '../core/clock.ts';
import type { RenewAnswer } from '../store/store.ts';

export interface Heartbeat {
  /** How long the lease is sure to last. */
  leftMs(): number;
  /** Renews at once; false: somebody else holds the key, or nobody can say. */
  renew(): Promise<boolean>;
  stop(): void;
}

export interface HeartbeatOptions {
  readonly clock: Clock;
  readonly leaseMs: number;
  /** When the claim was asked for. */
  readonly askedAt: number;
  readonly renew: () => Promise<RenewAnswer>;
  /** Called once: the store refused a renewal. */
  readonly onLost: () => void;
}

export function startHeartbeat({ clock, leaseMs, askedAt, renew, onLost }: HeartbeatOptions): Heartbeat {
  let until = askedAt + leaseMs;
  let stopped = false;
  let timer = clock.setTimeout(beat, leaseMs / 3, 'background');

  async function renewOnce(): Promise<boolean> {
    const asked = clock.mono();
    const { held } = await renew();
    if (held) until = asked + leaseMs;
    else if (!stopped) {
      stop();
      onLost();
    }
    return held;
  }

  function beat(): void {
    renewOnce()
      // A store that does not answer now may answer at the next beat; the lease runs out by itself.
      .catch(() => undefined)
      .finally(() => {
        if (!stopped) timer = clock.setTimeout(beat, leaseMs / 3, 'background');
      });
  }

  function stop(): void {
    stopped = true;
    clock.clearTimeout(timer);
  }

  return { leftMs: () => until - clock.mono(), renew: renewOnce, stop };
}
