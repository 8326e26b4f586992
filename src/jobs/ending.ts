// How a command ended, in words for people and in the history.

import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '../core/clock.ts';
import { formatDuration } from '../core/contract/duration.ts';
import type { RecordInfo, Semel } from '../semel/index.ts';
import type { ChildEnding } from './life/child.ts';

/** As it is stored: the same failure has the same words, so that doubts can be grouped by them. */
export function told(ending: ChildEnding, timeoutMs: number): string {
  if (ending.neverStarted) return ending.exit === 127 ? 'was not found' : 'could not be executed';
  if (ending.timedOut) return `was ended by its timeout of ${formatDuration(timeoutMs)}`;
  if (ending.interruptedBy !== undefined) return `was interrupted by ${ending.interruptedBy}`;
  if (ending.signal !== undefined) return `was ended by ${ending.signal}`;
  return `failed with exit ${ending.exit}`;
}

/** Each attempt leaves its end and its last words in the record's history. No rule depends on it, so it may fail. */
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

/** Whoever reads the history finds all notes there, so that they are written by then. */
export async function notesWritten(semel: Semel, key: string): Promise<void> {
  await semel.records.history(key).catch(() => undefined);
}

/** Until nothing of it lives, or for so long; answers whether something still does. */
export async function outlived({ descendants }: ChildEnding, forMs: number): Promise<boolean> {
  for (const until = systemClock.mono() + forMs; descendants.lives(); ) {
    if (systemClock.mono() >= until) return true;
    await pause(50);
  }
  return false;
}

/** Nothing of it can have happened. */
export const neverStartedWords: readonly string[] = ['was not found', 'could not be executed'];

/** How the last attempt ended, after "attempt 1 …": in the words of the record, and with its time where that is known. */
export async function lastEnding(semel: Semel, before: RecordInfo | undefined): Promise<string> {
  if (before?.error === undefined || before.error.code === 'DIED') return 'died';
  const history = await semel.records.history(before.key).catch(() => []);
  const notes = history.filter(({ type }) => type === 'noted');
  const tookMs = notes.at(-1)?.detail.tookMs;
  return typeof tookMs === 'number'
    ? `${before.error.message} after ${formatDuration(tookMs)}`
    : before.error.message;
}
