// Whether an outbox storm left everything as it was promised: by the caller's own rows, the log of the target, the ledger at the
// end, and what the person in the storm chose. Knows nothing of how a relay works.

import type { LandedEffect } from '../../support/effect-server/index.ts';
import { contractOf, forgetful, isKeyed, mayRepeat } from './terms.ts';

export interface Order {
  /** The order of the commits within a group. */
  readonly seq: number;
  readonly intent: string;
  readonly group: string | null;
  readonly notBefore: number | null;
}

export interface Aftermath {
  /** What was committed. */
  readonly orders: readonly Order[];
  readonly effects: readonly LandedEffect[];
  /** When the record of an intent was settled. */
  readonly settledAt: ReadonlyMap<string, number>;
  /** Intents that are still staged or in doubt when all is over. */
  readonly left: readonly string[];
  /** How many repeats of each intent somebody accepted. */
  readonly accepted: ReadonlyMap<string, number>;
  readonly dropped: ReadonlySet<string>;
  readonly deadThoughLanded: ReadonlySet<string>;
}

export function findViolations(after: Aftermath): string[] {
  const { orders, effects, accepted, dropped } = after;
  const byIntent = Map.groupBy(effects, ({ intent }) => intent);
  const committed = new Set(orders.map(({ intent }) => intent));
  const found: string[] = [];

  for (const intent of byIntent.keys())
    if (!committed.has(intent)) found.push(`${intent}: delivered, although its transaction was rolled back.`);
  for (const { intent, notBefore } of orders) {
    const landed = byIntent.get(intent) ?? [];
    if (landed.length === 0 && !dropped.has(intent)) found.push(`${intent}: committed, and never delivered.`);
    const isTwice = landed.length > 1 && !mayRepeat(contractOf(intent));
    if (isTwice && isKeyed(contractOf(intent)))
      found.push(`${intent}: landed ${landed.length} times at a keyed target (${describe(landed)}).`);
    else if (isTwice && landed.length > 1 + (accepted.get(intent) ?? 0))
      found.push(
        `${intent}: landed ${landed.length} times; repeats accepted: ${accepted.get(intent) ?? 0} (${describe(landed)}).`,
      );
    const [first] = landed;
    // Several transactions may have staged it, and only one of them counted.
    if (first !== undefined && notBefore !== null && first.at < notBefore)
      found.push(`${intent}: delivered ${notBefore - first.at} ms before its time.`);
  }
  // One that is harmless to repeat is tried again without asking, and dead when its tries are used up.
  for (const intent of after.deadThoughLanded)
    if (!mayRepeat(contractOf(intent))) found.push(`${intent}: its row was dead, and it had landed.`);
  found.push(...after.left.map((what) => `${what} when all was over.`), ...findDisorder(after, byIntent));
  return found;
}

function describe(landed: readonly LandedEffect[]): string {
  const since = landed[0]?.at ?? 0;
  return landed.map(({ fence, pid, at }) => `fence ${fence} of ${pid} after ${at - since} ms`).join(', ');
}

/** In a group, nothing starts before what was committed earlier has landed and its record says so. */
function findDisorder(
  { orders, settledAt, dropped }: Aftermath,
  byIntent: ReadonlyMap<string, readonly LandedEffect[]>,
): string[] {
  const groups = Map.groupBy(
    orders.filter(({ group, intent }) => group !== null && !dropped.has(intent)),
    ({ group }) => group,
  );
  return [...groups.values()].flatMap((members) => {
    const sorted = members.toSorted((a, b) => a.seq - b.seq);
    return sorted.slice(1).flatMap((later, index) => {
      const earlier = sorted[index] as Order;
      const [before, after] = [byIntent.get(earlier.intent)?.[0], byIntent.get(later.intent)?.[0]];
      if (after === undefined) return [];
      if (before === undefined || before.seq > after.seq)
        return [`${later.group}: ${later.intent} landed before ${earlier.intent}.`];
      const isRecorded = !mayRepeat(contractOf(earlier.intent)) && !earlier.intent.startsWith(forgetful);
      const settled = settledAt.get(earlier.intent);
      if (isRecorded && (settled === undefined || settled > after.at))
        return [`${later.group}: ${later.intent} was sent while ${earlier.intent} was not decided.`];
      return [];
    });
  });
}
