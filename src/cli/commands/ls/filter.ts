// Which records a list is about. What the ledger can sort out itself is asked of it; the remainder is looked at here.

import type { Status } from '../../../core/contract/words.ts';
import type { RecordInfo, RecordQuery } from '../../../semel/index.ts';
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
  const flags = flagReader('ls', wanted);
  const sinceAt = flags.instant('since');
  const untilAt = flags.instant('until');
  const newerMs = flags.duration('newer', undefined);
  const olderMs = flags.duration('older', undefined);
  const text = wanted.args?.toLowerCase();
  const given = {
    ...(wanted.key === undefined ? {} : { prefix: wanted.key }),
    ...(wanted.conversation === undefined ? {} : { conversation: wanted.conversation }),
  };
  const statuses = storedStatuses(words);
  const contracts = wanted.tool === undefined ? [undefined] : contractsOf(wanted.tool);
  const hidesTurns = wanted.tool === undefined && wanted.key === undefined;
  return {
    queries: contracts.flatMap((contract) => {
      const about = contract === undefined ? given : { ...given, contract };
      return statuses === undefined ? [about] : statuses.map((status) => ({ ...about, status }));
    }),
    matches(record, now = Date.now()) {
      const at = sinceOf(record).getTime();
      return (
        !(hidesTurns && isJobLock(record)) &&
        (words.length === 0 || words.some((word) => isSo(record, word))) &&
        (wanted.run === undefined || record.run === wanted.run) &&
        (sinceAt === undefined || at >= sinceAt) &&
        (untilAt === undefined || at <= untilAt) &&
        (newerMs === undefined || now - at <= newerMs) &&
        (olderMs === undefined || now - at >= olderMs) &&
        (text === undefined || jsonText(record.args).toLowerCase().includes(text))
      );
    },
  };
}

/** A lapsed attempt is not listed as running: nobody is working on it. */
function isSo(record: RecordInfo, word: StatusWord): boolean {
  if (word === 'in-doubt') return stateOf(record) === 'in doubt';
  if (word === 'lapsed') return record.lapsed;
  if (word === 'abandoned') return record.abandoned;
  if (word === 'failed' || word === 'released') return stateOf(record) === word;
  return record.status === word && !(word === 'running' && record.lapsed);
}

/** What is open is a small part of a ledger, and is read without the large one. Undefined: all. */
function storedStatuses(words: readonly StatusWord[]): readonly Status[] | undefined {
  if (words.length === 0) return undefined;
  return [...new Set(words.flatMap(storedAs))];
}

function storedAs(word: StatusWord): readonly Status[] {
  if (word === 'in-doubt') return ['running', 'unknown'];
  if (word === 'failed') return ['failed', 'released'];
  return word === 'lapsed' || word === 'abandoned' ? ['running'] : [word];
}
