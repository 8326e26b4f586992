// Which records a list is about. What the ledger can sort out itself is asked of it; the remainder is looked at here.

import { type Duration, durationMs } from '../../core/duration.ts';
import type { Status } from '../../core/words.ts';
import type { RecordInfo, RecordQuery } from '../../semel/index.ts';
import { sinceOf, stateOf } from '../state.ts';
import { usageError } from '../usage.ts';

export const statusWords = [
  'running',
  'succeeded',
  'failed',
  'released',
  'unknown',
  'in-doubt',
  'lapsed',
  'abandoned',
] as const;

export type StatusWord = (typeof statusWords)[number];

export interface Wanted {
  readonly tool?: string | undefined;
  readonly status?: readonly string[] | undefined;
  readonly conversation?: string | undefined;
  readonly run?: string | undefined;
  readonly key?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly newer?: string | undefined;
  readonly older?: string | undefined;
  readonly args?: string | undefined;
}

export interface Filter {
  /** Each of them is a walk through the ledger; no record is in two. */
  readonly queries: readonly Omit<RecordQuery, 'after' | 'limit'>[];
  matches(record: RecordInfo, now?: number): boolean;
}

export function filterOf(wanted: Wanted): Filter {
  const words = (wanted.status ?? []) as readonly StatusWord[];
  const sinceAt = wanted.since === undefined ? undefined : instantOf(wanted.since, '--since');
  const untilAt = wanted.until === undefined ? undefined : instantOf(wanted.until, '--until');
  const newerMs = wanted.newer === undefined ? undefined : durationMs(wanted.newer as Duration, '--newer');
  const olderMs = wanted.older === undefined ? undefined : durationMs(wanted.older as Duration, '--older');
  const text = wanted.args?.toLowerCase();
  const given = {
    ...(wanted.tool === undefined ? {} : { contract: wanted.tool }),
    ...(wanted.key === undefined ? {} : { prefix: wanted.key }),
    ...(wanted.conversation === undefined ? {} : { conversation: wanted.conversation }),
  };
  const statuses = storedStatuses(words);
  return {
    queries: statuses === undefined ? [given] : statuses.map((status) => ({ ...given, status })),
    matches(record, now = Date.now()) {
      const at = sinceOf(record).getTime();
      return (
        (words.length === 0 || words.some((word) => isSo(record, word))) &&
        (wanted.run === undefined || record.run === wanted.run) &&
        (sinceAt === undefined || at >= sinceAt) &&
        (untilAt === undefined || at <= untilAt) &&
        (newerMs === undefined || now - at <= newerMs) &&
        (olderMs === undefined || now - at >= olderMs) &&
        (text === undefined || (JSON.stringify(record.args) ?? '').toLowerCase().includes(text))
      );
    },
  };
}

/** A lapsed attempt is not listed as running: nobody is working on it. */
function isSo(record: RecordInfo, word: StatusWord): boolean {
  if (word === 'in-doubt') return stateOf(record) === 'in doubt';
  if (word === 'lapsed') return record.lapsed;
  if (word === 'abandoned') return record.abandoned;
  return record.status === word && !(word === 'running' && record.lapsed);
}

/** What is open is a small part of a ledger, and is read without the large one. Undefined: all. */
function storedStatuses(words: readonly StatusWord[]): readonly Status[] | undefined {
  if (words.length === 0) return undefined;
  return [...new Set(words.flatMap(storedAs))];
}

function storedAs(word: StatusWord): readonly Status[] {
  if (word === 'in-doubt') return ['running', 'unknown'];
  return word === 'lapsed' || word === 'abandoned' ? ['running'] : [word];
}

/** Without a zone it is UTC, like every instant that semel prints. */
export function instantOf(text: string, flag: string): number {
  const match = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)(Z|[+-]\d\d:\d\d)?)?$/.exec(
    text,
  );
  const [, date, time = '00:00', zone = 'Z'] = match ?? [];
  const at = date === undefined ? Number.NaN : Date.parse(`${date}T${time}${zone}`);
  // Date.parse takes 31 February for 3 March.
  if (Number.isNaN(at) || new Date(`${date}T00:00Z`).toISOString().slice(0, 10) !== date)
    throw usageError(
      'ls',
      `${flag} is ${JSON.stringify(text.slice(0, 80))}, which is no instant`,
      `Write 2026-06-19 or 2026-06-19T09:02 (UTC), or with a zone: 2026-06-19T09:02+02:00. For "the last two hours": --newer 2h.`,
    );
  return at;
}
