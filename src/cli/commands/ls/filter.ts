// Which records `ls` lists. The ledger filters what it can; the rest is filtered here.

import type { Status } from '../../../core/contract/words.ts';
import { findTextPlaces, type RecordInfo, type RecordQuery } from '../../../semel/index.ts';
import { flagReader } from '../../args/flag-values.ts';
import { jsonText } from '../../render/json-text.ts';
import { contractsOf, isJobLock, sinceOf, stateOf } from '../../render/state.ts';

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

type StatusWord = (typeof statusWords)[number];

export interface FilterOptions {
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
  readonly find?: string | undefined;
}

export interface Filter {
  /** Each is one pass over the ledger; no record is in two. */
  readonly queries: readonly Omit<RecordQuery, 'after' | 'limit'>[];
  matches(record: RecordInfo, now?: number): boolean;
}

export function filterOf(options: FilterOptions): Filter {
  const words = (options.status ?? []) as readonly StatusWord[];
  const flags = flagReader('ls', options);
  const sinceAt = flags.instant('since');
  const untilAt = flags.instant('until');
  const newerMs = flags.duration('newer', undefined);
  const olderMs = flags.duration('older', undefined);
  const text = options.args?.toLowerCase();
  const sought = options.find?.trim();
  const given = {
    ...(options.key === undefined ? {} : { prefix: options.key }),
    ...(options.conversation === undefined ? {} : { conversation: options.conversation }),
  };
  const statuses = storedStatuses(words);
  const contracts = options.tool === undefined ? [undefined] : contractsOf(options.tool);
  const hidesLocks = [options.tool, options.key, options.find].every((each) => each === undefined);
  return {
    queries: contracts.flatMap((contract) => {
      const about = contract === undefined ? given : { ...given, contract };
      return statuses === undefined ? [about] : statuses.map((status) => ({ ...about, status }));
    }),
    matches(record, now = Date.now()) {
      const at = sinceOf(record).getTime();
      return (
        !(hidesLocks && isJobLock(record)) &&
        (words.length === 0 || words.some((word) => hasStatus(record, word))) &&
        (options.run === undefined || record.run === options.run) &&
        (sinceAt === undefined || at >= sinceAt) &&
        (untilAt === undefined || at <= untilAt) &&
        (newerMs === undefined || now - at <= newerMs) &&
        (olderMs === undefined || now - at >= olderMs) &&
        (text === undefined || jsonText(record.args).toLowerCase().includes(text)) &&
        (sought === undefined || findTextPlaces(record, sought).length > 0)
      );
    },
  };
}

/** A lapsed attempt is not listed as running: no process works on it. */
function hasStatus(record: RecordInfo, word: StatusWord): boolean {
  if (word === 'in-doubt') return stateOf(record) === 'in doubt';
  if (word === 'lapsed') return record.lapsed;
  if (word === 'abandoned') return record.abandoned;
  if (word === 'failed' || word === 'released') return stateOf(record) === word;
  return record.status === word && !(word === 'running' && record.lapsed);
}

/** Open records are a small part of a ledger, and can be read without the rest. Undefined: all. */
function storedStatuses(words: readonly StatusWord[]): readonly Status[] | undefined {
  if (words.length === 0) return undefined;
  return [...new Set(words.flatMap(storedAs))];
}

function storedAs(word: StatusWord): readonly Status[] {
  if (word === 'in-doubt') return ['running', 'unknown'];
  if (word === 'failed') return ['failed', 'released'];
  return word === 'lapsed' || word === 'abandoned' ? ['running'] : [word];
}
