// What pruning may remove: never a record that is running or in doubt.

import type { EventType, Row, StoredResult } from './record.ts';
import { isExpired, isFree, isKept, isLapsed, isOver, isSettled, type Time } from './state.ts';

export function isRemovable(row: Row, time: Time): boolean {
  if (isExpired(row, time)) return true;
  if (!isFree(row, time) || row.doubtFence !== null || row.news !== null) return false;
  // A worker that crashed before dispatch released nothing: its record counts as released when it lapsed.
  const freeSince = isLapsed(row, time)
    ? row.updatedAt + (row.retention?.failureWindowMs ?? 0)
    : row.expiresAt;
  return isOver(freeSince, time);
}

/** `per: 'ever'`: a large result is removed, the key and what is known about it stay. */
export function isTombstoneDue(row: Row, time: Time): boolean {
  return isSettled(row) && isKept(row) && isOver(row.expiresAt, time);
}

/** Pruning would remove it, or reduce it to a tombstone. */
export function isDue(row: Row, time: Time): boolean {
  return isRemovable(row, time) || isTombstoneDue(row, time);
}

/** Events about who called, not about what happened to the record: a tombstone drops them. */
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

/** A result not larger than the key stays with it: an id, a flag, nothing. */
const smallResult = 100;

function shrinkResult(result: StoredResult): StoredResult {
  if (result.text === null || result.text.length <= smallResult) return result;
  return { text: null, omitted: 'its window is over', remoteRef: result.remoteRef };
}
