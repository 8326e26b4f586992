// Somebody who looks after an outbox in a storm: decides doubts by what the target shows, delivers dead rows again or drops
// them, and remembers what they chose. Says so if a row is dead although its effect is at the target.

import { isSemelError, type Resolution, type Semel } from '../../../src/index.ts';
import type { Outbox } from '../../../src/store/outbox.ts';
import type { Chance } from '../../processes/chance.ts';
import type { LandedEffect } from '../../support/effect-server/index.ts';
import { forgetful } from './terms.ts';

export interface Person {
  /** Looks at everything that is in doubt or dead now; answers how much was decided. */
  look(): Promise<number>;
  /**
   * Looks at rows that were started and whose record is gone. Only when no process is left: until then, what is not at the
   * target may still land.
   */
  lookAtOrphans(): Promise<void>;
  /** Intents for which a repeat was accepted. */
  readonly accepted: ReadonlySet<string>;
  /** Intents that were given up or dropped. */
  readonly givenUp: ReadonlySet<string>;
  readonly deadThoughLanded: ReadonlySet<string>;
  readonly seen: { doubts: number; dead: number };
}

export function somebody(
  semel: Semel,
  outbox: Outbox,
  effects: () => readonly LandedEffect[],
  chance: Chance | null,
): Person {
  const accepted = new Set<string>();
  const givenUp = new Set<string>();
  const deadThoughLanded = new Set<string>();
  const seen = { doubts: 0, dead: 0 };
  const find = (intent: string) => effects().findLast((effect) => effect.intent === intent);

  async function lookAtDoubts(): Promise<number> {
    let decided = 0;
    for (const { ref, args, inDoubt } of (await semel.doubts.list({ limit: 1_000 })).items) {
      if (!inDoubt) continue;
      seen.doubts += 1;
      const { intent } = args as { intent: string };
      const resolution = judge(intent);
      try {
        await semel.doubts.resolve(ref, resolution, { by: 'somebody' });
        decided += 1;
        if (resolution === 'runAgain') accepted.add(intent);
        if (typeof resolution === 'object' && 'abandon' in resolution) givenUp.add(intent);
      } catch (error) {
        // It has changed since, or it is too early to say "not landed".
        if (!isSemelError(error, 'RESOLVE_STALE')) throw error;
      }
    }
    return decided;
  }

  function judge(intent: string): Resolution {
    // Nothing tells afterwards what became of a record that is gone.
    if (!intent.startsWith(forgetful) && chance?.is(0.04)) return 'runAgain';
    if (chance?.is(0.04)) return { abandon: 'nobody needs it any more' };
    const latest = find(intent);
    return latest === undefined ? 'notLanded' : { landed: { effect: latest.seq } };
  }

  async function lookAtDead(): Promise<number> {
    const rows = await outbox.list({ state: 'dead', limit: 1_000 });
    for (const { n, call } of rows) {
      const { args } = JSON.parse(call) as { args: string };
      const { intent } = JSON.parse(args) as { intent: string };
      seen.dead += 1;
      if (!givenUp.has(intent) && !accepted.has(intent) && find(intent) !== undefined)
        deadThoughLanded.add(intent);
      if (chance?.is(0.5)) {
        // What was given up may have landed: to deliver it again is to accept a repeat.
        if (givenUp.has(intent)) accepted.add(intent);
        await outbox.retry(n);
      } else if (await outbox.drop(n)) givenUp.add(intent);
    }
    return rows.length;
  }

  async function lookAtOrphans(): Promise<void> {
    for (const { n, key, call } of await outbox.list({ state: 'in doubt', limit: 1_000 })) {
      if ((await semel.records.get(key)) !== undefined) continue;
      const { args } = JSON.parse(call) as { args: string };
      const { intent } = JSON.parse(args) as { intent: string };
      if (find(intent) === undefined) await outbox.retry(n);
      else await outbox.drop(n);
    }
  }

  return {
    lookAtOrphans,
    accepted,
    givenUp,
    deadThoughLanded,
    seen,
    async look() {
      try {
        return (await lookAtDoubts()) + (await lookAtDead());
      } catch (error) {
        if (isSemelError(error, 'STORE_UNAVAILABLE')) return 0;
        throw error;
      }
    },
  };
}
