// Somebody who looks after the doubts while the storm goes on: mostly says what the target shows, now and then accepts
// a repeat or gives up.

import { isSemelError, type Resolution, type Semel } from '../../../src/index.ts';
import type { Chance } from '../../processes/chance.ts';
import type { LandedEffect } from '../../support/effect-server/index.ts';

export interface Person {
  /** Looks at everything that is in doubt now; answers how much of it was decided. */
  look(): Promise<number>;
}

export function somebody(
  semel: Semel,
  effects: () => readonly LandedEffect[],
  chance: Chance | null,
): Person {
  return {
    async look() {
      let decided = 0;
      try {
        const { items } = await semel.doubts.list({ limit: 1_000 });
        for (const { ref, args, inDoubt, generation } of items) {
          if (!inDoubt) continue;
          const { intent } = args as { intent: string };
          // A verdict is judged by when it is given: whoever gives it has looked just now, not before the last ten.
          const latest = effects().findLast((effect) => effect.intent === intent);
          // Where there is no window, an earlier generation has left its effect too: it does not answer for this one.
          const isOfThis = latest !== undefined && (latest.fence ?? 0) >= generation;
          if (await decide(ref, judge(isOfThis ? latest.seq : undefined))) decided += 1;
        }
      } catch (error) {
        // Looks again when it is back.
        if (!isSemelError(error, 'STORE_UNAVAILABLE')) throw error;
      }
      return decided;
    },
  };

  async function decide(ref: string, resolution: Resolution): Promise<boolean> {
    try {
      await semel.doubts.resolve(ref, resolution, { by: 'somebody' });
      return true;
    } catch (error) {
      // It has changed since it was looked at, or it is too early to say "not landed".
      if (!isSemelError(error, 'RESOLVE_STALE')) throw error;
      return false;
    }
  }

  function judge(seq: number | undefined): Resolution {
    if (chance?.is(0.04)) return 'runAgain';
    if (chance?.is(0.04)) return { abandon: 'nobody needs it any more' };
    return seq === undefined ? 'notLanded' : { landed: { effect: seq } };
  }
}
