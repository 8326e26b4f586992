// Somebody who looks after an outbox in a storm: decides doubts by what the target shows, delivers dead rows again or drops
// them, and remembers what they chose. Says so if a row is dead although its effect is at the target.

import { isSemelError, type Resolution, type Semel } from '../../../src/index.ts';
import { mayLandTwice } from '../../../src/outbox/index.ts';
import type { Outbox, OutboxRow } from '../../../src/store/outbox.ts';
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
  /** For which intents a repeat was accepted, and how often: each time, one more effect may land. */
  readonly accepted: ReadonlyMap<string, number>;
  /** Intents whose record was given up. */
  readonly givenUp: ReadonlySet<string>;
  /** Intents whose row was dropped. */
  readonly dropped: ReadonlySet<string>;
  readonly deadThoughLanded: ReadonlySet<string>;
  /** `orphans`: dead rows that were delivered again after their record was gone. */
  readonly seen: { doubts: number; dead: number; orphans: number };
}

export function somebody(
  semel: Semel,
  outbox: Outbox,
  effects: () => readonly LandedEffect[],
  chance: Chance | null,
): Person {
  const accepted = new Map<string, number>();
  const givenUp = new Set<string>();
  const dropped = new Set<string>();
  const deadThoughLanded = new Set<string>();
  const seen = { doubts: 0, dead: 0, orphans: 0 };
  const find = (intent: string) => effects().findLast((effect) => effect.intent === intent);

  function accept(intent: string, times = 1): void {
    accepted.set(intent, (accepted.get(intent) ?? 0) + times);
  }

  async function lookAtDoubts(): Promise<number> {
    let decided = 0;
    for (const { ref, args, inDoubt } of (await semel.doubts.list({ limit: 1_000 })).items) {
      if (!inDoubt) continue;
      seen.doubts += 1;
      const { intent } = args as { intent: string };
      const resolution = judge(intent);
      // Before it is said: an answer that is lost does not take it back.
      if (resolution === 'runAgain') accept(intent);
      try {
        await semel.doubts.resolve(ref, resolution, { by: 'somebody' });
        decided += 1;
        if (typeof resolution === 'object' && 'abandon' in resolution) givenUp.add(intent);
      } catch (error) {
        // It has changed since, or it is too early to say "not landed".
        if (!isSemelError(error, 'RESOLVE_STALE')) throw error;
        if (resolution === 'runAgain') accept(intent, -1);
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
    for (const row of rows) {
      const intent = intentOf(row);
      // What was given up may have landed; delivered again, its new record knows nothing of that.
      if (!givenUp.has(intent) && find(intent) !== undefined) deadThoughLanded.add(intent);
      // Not at once: a record may be gone by then.
      if (chance?.is(0.6)) continue;
      seen.dead += 1;
      if (chance?.is(0.5)) await retry(row, intent);
      else if (await outbox.drop(row.n)) dropped.add(intent);
    }
    return rows.length;
  }

  /** As `semel outbox retry` does: only where it would ask is to deliver again to accept a repeat. */
  async function retry(row: OutboxRow, intent: string): Promise<void> {
    const record = await semel.records.get(row.key);
    if (mayLandTwice(row, record)) {
      accept(intent);
      seen.orphans += 1;
    } else if (record?.status === 'failed' && !record.expired) {
      try {
        await semel.records.reopen(record.ref, { by: 'somebody' });
      } catch (error) {
        // It has changed since, or its window is over: then they look again.
        if (!isSemelError(error, 'RESOLVE_STALE')) throw error;
        return;
      }
    }
    await outbox.retry(row.n);
  }

  async function lookAtOrphans(): Promise<void> {
    for (const row of await outbox.list({ state: 'in doubt', limit: 1_000 })) {
      if (!mayLandTwice(row, await semel.records.get(row.key))) continue;
      if (find(intentOf(row)) === undefined) await outbox.retry(row.n);
      else await outbox.drop(row.n);
    }
  }

  return {
    lookAtOrphans,
    accepted,
    givenUp,
    dropped,
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

function intentOf({ call }: OutboxRow): string {
  const { args } = JSON.parse(call) as { args: string };
  return (JSON.parse(args) as { intent: string }).intent;
}
