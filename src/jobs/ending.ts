// How a command ended, in words for people and in the history.

import { formatDuration } from '../core/duration.ts';
import type { Semel } from '../semel/index.ts';
import type { ChildEnding } from './child.ts';

/** After "attempt 1 …". */
export function told(ending: ChildEnding, timeoutMs: number): string {
  const after = `after ${formatDuration(ending.tookMs)}`;
  if (ending.neverStarted) return ending.exit === 127 ? 'was not found' : 'could not be executed';
  if (ending.timedOut) return `was ended by its timeout of ${formatDuration(timeoutMs)}`;
  if (ending.interruptedBy !== undefined) return `was interrupted by ${ending.interruptedBy} ${after}`;
  if (ending.signal !== undefined) return `was ended by ${ending.signal} ${after}`;
  return `failed with exit ${ending.exit} ${after}`;
}

/**
 * Each attempt leaves its end and its last words in the record's history. That they could not be kept must not hide that
 * it has ended: who records that is told by the ledger itself.
 */
export async function noteEnding(
  semel: Semel,
  key: string,
  attempt: number,
  ending: ChildEnding,
): Promise<void> {
  const words = {
    attempt,
    exit: ending.exit,
    ...(ending.signal === undefined ? {} : { signal: ending.signal }),
    ...(ending.timedOut ? { timedOut: true } : {}),
    ...(ending.interruptedBy === undefined ? {} : { interruptedBy: ending.interruptedBy }),
    tookMs: Math.round(ending.tookMs),
    ...(ending.tail.length === 0 ? {} : { tail: ending.tail.toString('utf8') }),
  };
  await semel.records.annotate(key, words).catch(() => undefined);
}
