// Notes of what callers did, which no rule depends on. Callers make as many as they like: of each record only the latest are
// kept, in every store.

import type { EventType, StoreEvent } from './store.ts';

export const noteTypes: readonly EventType[] = ['replayed', 'conflict', 'observed', 'noted'];

export const maxNotes = 200;

/** Keeps all that is not a note. */
export function dropOldNotes(events: readonly StoreEvent[]): readonly StoreEvent[] {
  let excess = events.filter(({ type }) => noteTypes.includes(type)).length - maxNotes;
  return events.filter(({ type }) => {
    if (excess <= 0 || !noteTypes.includes(type)) return true;
    excess -= 1;
    return false;
  });
}
