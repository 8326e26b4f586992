// A record's timeline: what the record itself says, and the exceptional events of its history.

import { formatDuration } from '../../../core/contract/duration.ts';
import type { RecordInfo } from '../../../semel/index.ts';
import type { StoreEvent } from '../../../store/store.ts';
import { oneLine } from '../../render/print.ts';
import { driftText, isFailedRun } from '../../render/state.ts';

export interface Moment {
  readonly at: Date;
  readonly what: string;
  /** Needs attention. */
  readonly alarm?: true;
}

export function timelineOf(
  record: RecordInfo,
  history: readonly StoreEvent[],
  now: number,
): readonly Moment[] {
  const moments = [
    ...ofRecord(record, now),
    ...withoutRepeats(history).map((event) => ofEvent(event, record)),
  ];
  return moments
    .filter(({ at }) => !Number.isNaN(at.getTime()))
    .sort((a, b) => a.at.getTime() - b.at.getTime());
}

function ofRecord(record: RecordInfo, now: number): readonly Moment[] {
  const { firstDispatchedAt: first, lastDispatchedAt: last, inFlightUntil } = record;
  const moments: (Moment | false | undefined)[] = [
    { at: record.createdAt, what: 'created: the first claim' },
    first && { at: first, what: 'dispatched: from here on it may land' },
    last && last.getTime() !== first?.getTime() && { at: last, what: 'dispatched again' },
    record.settledAt && {
      at: record.settledAt,
      what: isFailedRun(record) ? 'failed: the next start runs it again' : endings[record.status],
    },
    record.inDoubt &&
      inFlightUntil && { at: inFlightUntil, what: 'from here on "not landed" can be trusted' },
    record.leaseLeftMs > 0 && {
      at: new Date(now + record.leaseLeftMs),
      what: 'the lease ends, unless it is renewed',
    },
    record.notAfter && { at: record.notAfter, what: 'no attempt may start after this' },
    // 0: forgotten by a person, and the history says when.
    record.expiresAt !== undefined &&
      record.expiresAt.getTime() > 0 && {
        at: record.expiresAt,
        what: expiryWords(record),
      },
  ];
  return moments.filter((moment) => moment !== undefined && moment !== false);
}

const endings: Readonly<Record<RecordInfo['status'], string>> = {
  running: 'the attempt before ended',
  succeeded: 'settled: succeeded',
  failed: 'settled: failed',
  released: 'released: it did not land, or may be run again',
  unknown: 'ended: unknown whether it landed',
};

function expiryWords({ expired, kept }: RecordInfo): string {
  if (expired) return 'expired: the next call executes';
  return kept ? 'its result is removed; the key stays for good' : 'expires: from here on a call executes';
}

interface Counted extends StoreEvent {
  readonly times: number;
}

/** Consecutive replays become one line: --json has each caller. */
function withoutRepeats(history: readonly StoreEvent[]): readonly Counted[] {
  const shown: Counted[] = [];
  for (const event of history) {
    const times = typeof event.detail.times === 'number' ? event.detail.times : 1;
    const last = shown.at(-1);
    const isMore = last?.type === event.type && (event.type === 'replayed' || event.type === 'conflict');
    const isSameLife = last?.generation === event.generation;
    if (last !== undefined && isMore && isSameLife && driftIn(last) === driftIn(event))
      shown[shown.length - 1] = { ...event, times: last.times + times };
    else shown.push({ ...event, times });
  }
  return shown;
}

function ofEvent(event: Counted, record: RecordInfo): Moment {
  const earlier = event.generation === record.generation ? '' : ' (in an earlier generation)';
  const what = `${wordsFor[event.type](event)}${earlier}`;
  const at = new Date(event.at);
  return event.type === 'duplicate' || event.type === 'contradiction'
    ? { at, what, alarm: true }
    : { at, what };
}

const wordsFor: Readonly<Record<StoreEvent['type'], (event: Counted) => string>> = {
  takeover: ({ detail }) =>
    `taken over from ${show(detail.from)}, ${detail.dispatched ? 'which had dispatched' : 'which had dispatched nothing'}${purpose(detail.for)}`,
  fenced: ({ detail }) =>
    `an attempt that had lost the claim reported: ${show(detail.outcome)}${because(detail.error)}`,
  lateNews: ({ detail }) => `late success: the attempt with fence ${show(detail.fence)} had succeeded`,
  duplicate: ({ detail }) =>
    `DUPLICATE: it landed a second time (the attempt with fence ${show(detail.fence)})`,
  contradiction: ({ detail }) =>
    `CONTRADICTION: the attempt with fence ${show(detail.fence)} reports ${show(detail.outcome)}, against what was settled`,
  cleared: () => 'verify said: not landed',
  resolved: ({ detail }) =>
    `${show(detail.by)}${loginOf(detail)} decided: ${actWords[String(detail.act)] ?? show(detail.act)}${noteOf(detail)}`,
  poisoned: ({ detail }) =>
    `given up as poison: ${show(detail.crashes)} attempts died before they dispatched anything`,
  replayed: (event) =>
    `replayed${event.times === 1 ? '' : ` ${event.times} times`} to${asker(event.detail)}${driftIn(event) === '' ? '' : `; worded differently: ${driftIn(event)}`}`,
  conflict: (event) =>
    `refused${event.times === 1 ? '' : ` ${event.times} times`}: the same key for other identity args, by${asker(event.detail)}`,
  observed: ({ detail }) => `observed: semel would have said ${show(detail.would)}`,
  noted: ({ detail }) => (isEnding(detail) ? endingOf(detail) : `noted: ${oneLine(detail)}`),
};

const actWords: Readonly<Record<string, string>> = {
  landed: 'landed',
  notLanded: 'not landed',
  runAgain: 'run again',
  abandon: 'abandon',
  died: 'its process died',
  forget: 'forget it',
  reopen: 'retry it',
};

/** What is noted when the command of `semel run` or `semel once`, or the function of a job, has ended. */
export function isEnding(detail: StoreEvent['detail']): boolean {
  return 'exit' in detail || 'signal' in detail || 'ended' in detail;
}

export function endingOf({ exit, signal, ended, tookMs }: StoreEvent['detail']): string {
  const after = typeof tookMs === 'number' ? ` after ${formatDuration(tookMs)}` : '';
  if (ended !== undefined) return `the job ended: ${show(ended)}${after}`;
  const how = typeof signal === 'string' ? `ended by ${signal}` : `exit ${show(exit)}`;
  return `the command ended: ${how}${after}`;
}

function driftIn({ detail }: StoreEvent): string {
  return Array.isArray(detail.drift) ? driftText(detail.drift) : '';
}

function asker({ owner, conversation, turn, run }: StoreEvent['detail']): string {
  const names = Object.entries({ conversation, turn, run })
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name} ${show(value)}`);
  return ` ${[...(owner === undefined ? ['somebody'] : [show(owner)]), ...names].join(', ')}`;
}

/** If the name given is not the login name. */
function loginOf({ by, login }: StoreEvent['detail']): string {
  return login === undefined || login === by ? '' : ` (login ${show(login)})`;
}

function noteOf({ note, reason }: StoreEvent['detail']): string {
  const words = [reason, note].filter((word) => typeof word === 'string' && word !== '');
  return words.length === 0 ? '' : ` (${[...new Set(words)].map((word) => show(word)).join('; ')})`;
}

function because(error: unknown): string {
  return typeof error === 'string' ? ` (${show(error)})` : '';
}

function purpose(why: unknown): string {
  if (why === 'verify') return ', to ask verify';
  return why === 'rerun' ? ', to run it again with the same key' : '';
}

function show(value: unknown): string {
  return value === undefined || value === null ? '?' : oneLine(value);
}
