// What retention may take. Never what is running or in doubt: semel does not forget an open question.

import type { EventType, Row, StoredResult } from './record.ts';
import { isExpired, isFree, isKept, isLapsed, isOver, isSettled, type Time } from './state.ts';

export function isRemovable(row: Row, time: Time): boolean {
  if (isExpired(row, time)) return true;
  if (!isFree(row, time) || row.doubtFence !== null || row.news !== null) return false;
  // A worker that died before the line leaves a record that nobody released: it counts as released when it lapsed.
  const freeSince = isLapsed(row, time)
    ? row.updatedAt + (row.retention?.failureWindowMs ?? 0)
    : row.expiresAt;
  return isOver(freeSince, time);
}

/** `per: 'ever'`: a large result goes, the key and what is known of it stay. */
export function isTombstoneDue(row: Row, time: Time): boolean {
  return isSettled(row) && isKept(row) && isOver(row.expiresAt, time);
}

/** Retention has something to do about it: remove it, or leave a tombstone. */
export function isDue(row: Row, time: Time): boolean {
  return isRemovable(row, time) || isTombstoneDue(row, time);
}

/** Events that tell who asked, not what became of the record: a tombstone does without them. */
export const usageEvents: readonly EventType[] = ['replayed', 'conflict', 'observed'];

export function makeTombstone(row: Row): Row {
  return {
    ...row,
    args: null,
    content: null,
    prepared: null,
    conversation: null,
    turn: null,
    toolCallId: null,
    again: null,
    run: null,
    news: null,
    expiresAt: null,
    result: row.result && shrinkResult(row.result),
  };
}

/** What is no larger than the key itself stays with it: nothing was returned, an id, a flag. */
const smallResult = 100;

function shrinkResult(result: StoredResult): StoredResult {
  if (result.text === null || result.text.length <= smallResult) return result;
  return { text: null, omitted: 'its window is over', remoteRef: result.remoteRef };
}
