// How much of a record's history is kept, in every store. Callers can repeat a call, and executors their late reports, as often as
// they like: of these only the latest stay. All else stays: a claim or a person made it.

import type { EventType, StoreEvent } from './store.ts';

/** For each list, a record keeps its latest `maxKept` events. */
export const boundedTypes: readonly (readonly EventType[])[] = [
  ['replayed', 'conflict', 'observed', 'noted'],
  ['fenced', 'lateNews', 'duplicate', 'contradiction'],
];

export const maxKept = 200;

export function dropOldEvents(events: readonly StoreEvent[]): readonly StoreEvent[] {
  if (events.length <= maxKept) return events;
  let kept = events;
  for (const types of boundedTypes) {
    let excess = kept.filter(({ type }) => types.includes(type)).length - maxKept;
    kept = kept.filter(({ type }) => {
      if (excess <= 0 || !types.includes(type)) return true;
      excess -= 1;
      return false;
    });
  }
  return kept;
}
