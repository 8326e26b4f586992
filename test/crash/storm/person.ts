// Somebody who looks after the doubts while the storm goes on: mostly says what the target shows, now and then accepts
// a repeat or gives up.

import { isSemelError, type RecordInfo, type Resolution, type Semel } from '../../../src/index.ts';
import type { Chance } from '../../processes/chance.ts';
import type { LandedEffect } from '../../support/effect-server/index.ts';

export interface Person {
  /**
   * Looks at everything that is in doubt now, or at some of the keys that they were told of, of which they take out what is no
   * longer in doubt; answers how much was decided.
   */
  look(told?: Set<string>): Promise<number>;
}

export function somebody(
  semel: Semel,
  effects: () => readonly LandedEffect[],
  chance: Chance | null,
): Person {
  return {
    async look(told) {
      let decided = 0;
      try {
        const records =
          told === undefined ? (await semel.doubts.list({ limit: 1_000 })).items : await readSome(told);
        for (const record of records) {
          if (!record?.inDoubt) continue;
          const { args, generation } = record;
          // By its key: some stores would have to read every record to find one by its id.
          const ref = `${record.key}${record.ref.slice(record.ref.indexOf('@'))}`;
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

  async function readSome(told: Set<string>): Promise<readonly (RecordInfo | undefined)[]> {
    const keys = [...told].slice(0, 50);
    const records = await Promise.all(keys.map((key) => semel.records.get(key)));
    // The others first, the next time.
    for (const [index, key] of keys.entries()) {
      told.delete(key);
      if (records[index]?.inDoubt) told.add(key);
    }
    return records;
  }

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
