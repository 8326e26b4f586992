// Checks and their findings. The ids are stable: monitoring and docs/operate/doctor.md use them.

import { formatDuration } from '../../../core/contract/duration.ts';
import type { RecordSeen, Seen } from './seen.ts';

export interface Found {
  readonly namespace?: string;
  readonly contract?: string;
  /** What was found, in a sentence. */
  readonly found: string;
  /** What to do. */
  readonly next: string;
  /** Some of the records that show it, by id. */
  readonly records?: readonly string[];
  readonly lastAt?: Date;
}

export interface Finding extends Found {
  readonly id: string;
}

export interface Check<Id extends string = string> {
  readonly id: Id;
  finds(seen: Seen): readonly Found[];
}

const maxExamples = 5;

/** The latest first: people remember those. */
export function examples(records: readonly RecordSeen[]): readonly string[] {
  return records
    .toSorted((a, b) => b.updatedAt.getTime() - a.updatedAt.getTime())
    .slice(0, maxExamples)
    .map(({ id }) => id);
}

export function latest(instants: readonly number[]): Date {
  return new Date(instants.reduce((last, at) => Math.max(last, at), 0));
}

export function count(n: number, one: string, many = `${one}s`): string {
  return n === 1 ? `1 ${one}` : `${n} ${many}`;
}

export function ago(ms: number): string {
  return formatDuration(Math.max(0, Math.round(ms / 1000) * 1000));
}
