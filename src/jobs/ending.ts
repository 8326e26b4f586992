// How a command ended, in words for people and in the record's history.

import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '../core/clock.ts';
import { formatDuration } from '../core/contract/duration.ts';
import type { RecordInfo, Semel } from '../semel/index.ts';
import type { ChildEnding } from './liveness/child.ts';

const notFound = 'was not found';
const notExecutable = 'could not be executed';

/** Stored with the record: the same failure always gets the same words, so that doubts can be grouped by them. */
export function describeEnding(ending: ChildEnding, timeoutMs: number): string {
  if (ending.neverStarted) return ending.exit === 127 ? notFound : notExecutable;
  if (ending.timedOut) return `was ended by its timeout of ${formatDuration(timeoutMs)}`;
  if (ending.interruptedBy !== undefined) return `was interrupted by ${ending.interruptedBy}`;
  if (ending.signal !== undefined) return `was ended by ${ending.signal}`;
  return `failed with exit ${ending.exit}`;
}

/** Whether these words describe a command that never started, and so had no effect. */
export function describesNoStart(words: string | undefined): boolean {
  return words === notFound || words === notExecutable;
}

/** Adds the ending and the last output to the record's history. No rule depends on it, so it may fail. */
export async function noteEnding(
  semel: Semel,
  key: string,
  attempt: number,
  ending: ChildEnding,
): Promise<void> {
  const note = {
    attempt,
    exit: ending.exit,
    ...(ending.signal === undefined ? {} : { signal: ending.signal }),
    ...(ending.timedOut ? { timedOut: true } : {}),
    ...(ending.interruptedBy === undefined ? {} : { interruptedBy: ending.interruptedBy }),
    tookMs: Math.round(ending.tookMs),
    ...(ending.tail.length === 0 ? {} : { tail: ending.tail.toString('utf8') }),
  };
  await semel.records.annotate(key, note).catch(() => undefined);
}

/** Reading a history writes all pending notes first. */
export async function flushNotes(semel: Semel, key: string): Promise<void> {
  await semel.records.history(key).catch(() => undefined);
}

/** Waits until nothing that the command started is alive, or the time is over; true if something still is. */
export async function hasOutlived({ descendants }: ChildEnding, forMs: number): Promise<boolean> {
  for (const until = systemClock.mono() + forMs; descendants.areAlive(); ) {
    if (systemClock.mono() >= until) return true;
    await pause(50);
  }
  return false;
}

/** How the previous attempt ended, to follow "attempt 1 …". */
export async function describePrevious(semel: Semel, before: RecordInfo | undefined): Promise<string> {
  if (before?.error === undefined || before.error.code === 'DIED') return 'died';
  const history = await semel.records.history(before.key).catch(() => []);
  const tookMs = history.findLast(({ type }) => type === 'noted')?.detail.tookMs;
  return typeof tookMs === 'number'
    ? `${before.error.message} after ${formatDuration(tookMs)}`
    : before.error.message;
}
