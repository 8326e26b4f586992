// Derives the period that bounds a call's intent: its turn, conversation, run or day, as the contract says.

import type { Identity } from '../../call/index.ts';
import type { Contract } from '../../core/contract/contract.ts';
import { type ContractPer, calendarSlot, type Slot } from '../../core/contract/period.ts';
import { SemelError } from '../../core/errors.ts';
import { type PeriodPart, shortDigest } from '../../core/key/key.ts';

export interface Period extends PeriodPart {
  readonly endsAt: number | null;
}

export type PeriodOf = (identity: Identity, at: number | undefined) => Period;

export const ever: Period = { text: '-', exact: 'ever', endsAt: null };

/** Remembers the last period: most calls share it. */
export function compilePeriod(per: ContractPer, contract: Contract, now: () => number): PeriodOf {
  // A TTL is `ever` with an end, which the record has: its key does not change with the clock.
  if (per === 'ever' || typeof per === 'number') return () => ever;
  let last = ever;
  if (typeof per === 'object') {
    let lastSlot: Slot | undefined;
    return (_, at) => {
      const slot = calendarSlot(per, at ?? now());
      if (slot === lastSlot) return last;
      lastSlot = slot;
      last = { text: slot.slot, exact: JSON.stringify([per.unit, per.zone, slot.slot]), endsAt: slot.endsAt };
      return last;
    };
  }
  let lastIdentity: Identity | undefined;
  return (identity) => {
    if (lastIdentity !== undefined && hasSameScope(lastIdentity, identity)) return last;
    last = derivePeriod(per, identity, contract);
    lastIdentity = identity;
    return last;
  };
}

function hasSameScope(a: Identity, b: Identity): boolean {
  return (
    a === b ||
    (a.conversation === b.conversation && a.turn === b.turn && a.run === b.run && a.weak === b.weak)
  );
}

function derivePeriod(per: 'run' | 'conversation' | 'turn', identity: Identity, contract: Contract): Period {
  const { conversation, turn, run } = identity;
  if (per === 'run') {
    const id = run ?? throwMissing(contract, 'run', "`per: 'run'` needs a run");
    return { text: nameRun(id), exact: JSON.stringify(['run', id]), endsAt: null };
  }
  const id = conversation ?? throwMissing(contract, 'conversation', `\`per: '${per}'\` needs a conversation`);
  const words = nameConversation(id);
  if (per === 'conversation')
    return { text: words, exact: JSON.stringify(['conversation', id]), endsAt: null };
  const step = turn ?? throwMissing(contract, 'turn', "`per: 'turn'` needs a turn");
  if (identity.weak && contract.effect === 'irreversible' && !contract.acceptsWeak) {
    throwMissing(contract, 'turn', 'an irreversible effect needs a turn that is known, not guessed');
  }
  return { text: words, exact: JSON.stringify(['turn', id, step]), endsAt: null };
}

const nameConversation = createShortNames('c', 'conversation');
const nameRun = createShortNames('r', 'run');

/** Ids may hold private data and slashes, so keys show a digest. Cached: a conversation has many calls. */
function createShortNames(letter: string, kind: string): (id: string) => string {
  const names = new Map<string, string>();
  const most = 1_000;
  return (id) => {
    const known = names.get(id);
    if (known !== undefined) return known;
    const name = letter + shortDigest(kind, id);
    if (names.size >= most) names.clear();
    names.set(id, name);
    return name;
  };
}

function throwMissing(contract: Contract, path: string, why: string): never {
  throw new SemelError('NO_IDENTITY', `${contract.name}: ${why}, and none was given.`, { path });
}
