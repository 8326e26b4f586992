// The target has its days too: it refuses, is overloaded, cuts the line before or after it did what was asked.

import type { Chance } from '../../processes/chance.ts';
import { type Conduct, conducts, type EffectServer } from '../../support/effect-server/index.ts';
import { targetOf, targets } from '../tools.ts';
import { contracts } from './terms.ts';

const moods: readonly Conduct[] = [
  conducts.refuses(422),
  conducts.refuses(500),
  conducts.limits(1),
  conducts.cuts,
  conducts.commitsThenCuts,
  conducts.commitsThenRefuses(500),
  conducts.commitsThenHangs,
  conducts.slow(50, 300),
];

export interface Moods {
  /** One target is in another mood from now on, mostly a good one. */
  change(): Promise<void>;
  /** All are well again. */
  end(): Promise<void>;
}

export function moodsOf(server: EffectServer, chance: Chance): Moods {
  const known: Record<string, object> = targets();
  const behave = (target: string, usually: Conduct) => server.behave(target, { ...known[target], usually });
  return {
    change: () =>
      behave(targetOf(chance.pick(contracts)), chance.is(0.6) ? conducts.plain : chance.pick(moods)),
    async end() {
      for (const name of contracts) await behave(targetOf(name), conducts.plain);
    },
  };
}
