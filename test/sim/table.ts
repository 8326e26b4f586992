// The table state × event: which rule met which record. Every cell is visited, or impossible for a stated reason.

import { isExpired, type Time } from '../../src/rules/state.ts';
import type { Row, StoredRecord } from '../../src/store/store.ts';

export const states = [
  'none',
  'running undispatched',
  'running dispatched',
  'lapsed undispatched',
  'lapsed dispatched',
  'unknown',
  'released',
  'released with doubt',
  'succeeded',
  'failed',
  'abandoned',
  'expired',
  'tombstone',
] as const;

export type State = (typeof states)[number];

const outcomes = ['succeeded', 'failed', 'released', 'unknown'] as const;
const speakers = ['holder', 'fenced', 'repeated'] as const;

export const storeEvents = [
  'claim execute, same',
  'claim execute, other',
  'claim rerun, same',
  'claim rerun, other',
  'claim verify, same',
  'claim verify, other',
  'renew',
  'dispatch',
  'clear',
  ...outcomes.flatMap((outcome) => speakers.map((speaker) => `settle ${outcome}, ${speaker}` as const)),
  'resolve landed',
  'resolve notLanded',
  'resolve runAgain',
  'resolve abandon',
  'resolve died',
  'resolve forget',
  'resolve reopen',
  'prune',
] as const;

export type StoreEventName = (typeof storeEvents)[number];

export type Table = Uint32Array;

export const newTable = (): Table => new Uint32Array(states.length * storeEvents.length);

export function cell(state: State, event: StoreEventName): number {
  return stateIndex[state] * storeEvents.length + (eventIndex[event] as number);
}

const stateIndex = Object.fromEntries(states.map((state, at) => [state, at])) as Record<State, number>;
const eventIndex = Object.fromEntries(storeEvents.map((event, at) => [event, at])) as Record<string, number>;

/** Pruned, and kept for good: its args are gone, and nothing more will be. */
function isTombstone(record: StoredRecord): boolean {
  return record.retention?.keep === true && record.args === null && record.expiresAt === null;
}

export function stateOf(record: StoredRecord | undefined, time: Time): State {
  if (record === undefined) return 'none';
  if (isExpired(record as unknown as Row, time)) return 'expired';
  switch (record.status) {
    case 'running':
      return `${record.lapsed ? 'lapsed' : 'running'} ${record.dispatched ? 'dispatched' : 'undispatched'}`;
    case 'unknown':
      return 'unknown';
    case 'released':
      return record.doubtFence === null ? 'released' : 'released with doubt';
    case 'succeeded':
      return isTombstone(record) ? 'tombstone' : 'succeeded';
    case 'failed':
      return record.doubtFence === null ? 'failed' : 'abandoned';
  }
}

const runningStates: readonly State[] = [
  'running undispatched',
  'running dispatched',
  'lapsed undispatched',
  'lapsed dispatched',
];

/** Why a cell cannot be visited; undefined: it can, and must be. */
export function impossible(state: State, event: StoreEventName): string | undefined {
  const isRunning = runningStates.includes(state);
  if (state === 'none' && event.endsWith(', other'))
    return 'without a record there is no fingerprint to differ from';
  if (event.endsWith(', holder') && !isRunning) return 'only a running record has a holder';
  if (event.endsWith(', repeated') && (isRunning || state === 'none'))
    return 'a token that settled is the token of a record that is not running';
  if (event.endsWith(', repeated') && (state === 'abandoned' || state === 'released with doubt'))
    return 'an act made it so, and took the token with it';
  return undefined;
}

export interface Gap {
  readonly state: State;
  readonly event: StoreEventName;
  readonly visits: number;
  readonly why: string | undefined;
}

/** Cells visited too rarely, and impossible ones that were visited after all. */
export function gapsOf(table: Table, atLeast: number): readonly Gap[] {
  const gaps: Gap[] = [];
  for (const state of states) {
    for (const event of storeEvents) {
      const visits = table[cell(state, event)] as number;
      const why = impossible(state, event);
      if (why === undefined ? visits < atLeast : visits > 0) gaps.push({ state, event, visits, why });
    }
  }
  return gaps;
}

/** As Markdown: events down, states across; `–` is impossible. */
export function renderTable(table: Table): string {
  const lines = [`| | ${states.join(' | ')} |`, `|---|${states.map(() => '--:').join('|')}|`];
  for (const event of storeEvents) {
    const cells = states.map((state) =>
      impossible(state, event) === undefined ? String(table[cell(state, event)]) : '–',
    );
    lines.push(`| ${event} | ${cells.join(' | ')} |`);
  }
  return lines.join('\n');
}
