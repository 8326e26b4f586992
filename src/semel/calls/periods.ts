// What bounds the intent of a call: its turn, conversation, run or day, as its contract says.

import type { Identity } from '../../call/index.ts';
import type { Contract } from '../../core/contract/contract.ts';
import { calendarSlot, type Per, type Slot } from '../../core/contract/period.ts';
import { SemelError } from '../../core/errors.ts';
import { type PeriodPart, shortDigest } from '../../core/key/key.ts';

export interface Period extends PeriodPart {
  readonly endsAt: number | null;
}

export type PeriodOf = (identity: Identity, at: number | undefined) => Period;

export const ever: Period = { text: '-', exact: 'ever', endsAt: null };

/** Calls come in runs, turns and days: most have the period of the last one. */
export function periodsOf(per: Per, contract: Contract, now: () => number): PeriodOf {
  if (per === 'ever') return () => ever;
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
  let of: Identity | undefined;
  return (identity) => {
    if (of !== undefined && isSameScope(of, identity)) return last;
    last = scopeOf(per, identity, contract);
    of = identity;
    return last;
  };
}

function isSameScope(a: Identity, b: Identity): boolean {
  return (
    a === b ||
    (a.conversation === b.conversation && a.turn === b.turn && a.run === b.run && a.weak === b.weak)
  );
}

function scopeOf(per: 'run' | 'conversation' | 'turn', identity: Identity, contract: Contract): Period {
  const { conversation, turn, run } = identity;
  if (per === 'run') {
    const id = run ?? missing(contract, 'run', "`per: 'run'` needs a run");
    return { text: runName(id), exact: JSON.stringify(['run', id]), endsAt: null };
  }
  const id = conversation ?? missing(contract, 'conversation', `\`per: '${per}'\` needs a conversation`);
  const words = conversationName(id);
  if (per === 'conversation')
    return { text: words, exact: JSON.stringify(['conversation', id]), endsAt: null };
  const step = turn ?? missing(contract, 'turn', "`per: 'turn'` needs a turn");
  if (identity.weak && contract.effect === 'irreversible' && !contract.acceptsWeak) {
    missing(contract, 'turn', 'an irreversible effect needs a turn that is known, not guessed');
  }
  return { text: words, exact: JSON.stringify(['turn', id, step]), endsAt: null };
}

const conversationName = shortNames('c', 'conversation');
const runName = shortNames('r', 'run');

/** Ids hold private data and slashes, so a key shows a digest of them. A conversation has many calls. */
function shortNames(letter: string, kind: string): (id: string) => string {
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

function missing(contract: Contract, path: string, why: string): never {
  throw new SemelError('NO_IDENTITY', `${contract.name}: ${why}, and none was given.`, { path });
}
