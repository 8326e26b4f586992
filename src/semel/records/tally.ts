// Counts records and their history, by calendar slot and by contract. Pure. Pruned records are not counted.

import { type CalendarPeriod, calendarSlot } from '../../core/contract/period.ts';
import type { StoreEvent } from '../../store/store.ts';
import type { RecordInfo } from './record-info.ts';

export interface Counts {
  /** Effects that landed or were refused. */
  executed: number;
  /** Calls answered from a record. */
  replayed: number;
  /** Replayed calls whose effect had landed, and would have landed again. */
  saved: number;
  /** Records that are in doubt now. */
  inDoubt: number;
  conflicts: number;
  /** Effects reported to have landed twice. */
  duplicates: number;
  /** Observed calls that ran, but would have been replayed or have waited. */
  wouldPrevent: number;
  /** Observed calls that ran, but would have been held in doubt or refused as a conflict. */
  wouldHold: number;
}

export interface Slot extends Counts {
  readonly slot: string;
  readonly startsAt: Date;
}

export interface ContractCounts extends Counts {
  readonly namespace: string;
  readonly contract: string;
}

export interface Stats {
  readonly since: Date;
  readonly until: Date;
  readonly by: 'hour' | 'day';
  readonly zone: string;
  readonly records: number;
  readonly totals: Counts;
  readonly doubts: {
    readonly open: number;
    readonly oldest: Date | undefined;
    /** By a person, in this time. */
    readonly resolved: number;
    /** By `verify` or a provider's key, in this time. */
    readonly decided: number;
  };
  readonly slots: readonly Slot[];
  readonly contracts: readonly ContractCounts[];
}

/** What is counted of a record. */
export type CountedRecord = Pick<
  RecordInfo,
  | 'namespace'
  | 'contract'
  | 'status'
  | 'inDoubt'
  | 'doubt'
  | 'error'
  | 'lastDispatchedAt'
  | 'updatedAt'
  | 'settledAt'
>;

export interface Tally {
  add(record: CountedRecord, history: readonly StoreEvent[]): void;
  result(): Stats;
}

type Word = keyof Counts;
type Named = Pick<RecordInfo, 'namespace' | 'contract'>;

const verdicts = new Set<unknown>(['landed', 'notLanded', 'runAgain', 'abandon']);

export function createTally(
  since: number,
  until: number,
  period: CalendarPeriod & { unit: 'hour' | 'day' },
): Tally {
  const slots = slotsBetween(since, until, period);
  const bySlot = new Map(slots.map((slot) => [slot.slot, slot]));
  const byContract = new Map<string, ContractCounts>();
  const totals = none();
  let records = 0;
  let open = 0;
  let oldest = Number.POSITIVE_INFINITY;
  let resolved = 0;
  let decided = 0;

  function count({ namespace, contract }: Named, word: Word, at: number, times = 1): void {
    if (at < since || at > until) return;
    const slot = bySlot.get(calendarSlot(period, at).slot);
    const name = JSON.stringify([namespace, contract]);
    const known = byContract.get(name) ?? { namespace, contract, ...none() };
    byContract.set(name, known);
    for (const counts of [totals, known, slot]) if (counts !== undefined) counts[word] += times;
  }

  function countRecord(record: CountedRecord, importedAt: number | undefined): void {
    const { status, error } = record;
    if (record.inDoubt) {
      const at = (record.lastDispatchedAt ?? record.updatedAt).getTime();
      open += 1;
      oldest = Math.min(oldest, at);
      count(record, 'inDoubt', at);
    } else if (status === 'succeeded' || (status === 'failed' && !record.doubt && error?.code !== 'POISON')) {
      count(record, 'executed', importedAt ?? (record.settledAt ?? record.updatedAt).getTime());
    }
  }

  function countEvent(record: CountedRecord, { type, detail, at }: StoreEvent): void {
    const { status, inDoubt } = record;
    const times = typeof detail.times === 'number' ? detail.times : 1;
    const isInTime = at >= since && at <= until;
    if (type === 'replayed') {
      count(record, 'replayed', at, times);
      if (status === 'succeeded') count(record, 'saved', at, times);
    } else if (type === 'conflict') count(record, 'conflicts', at, times);
    else if (type === 'duplicate') count(record, 'duplicates', at);
    else if (type === 'observed') {
      const isPrevented = detail.would === 'replay' || detail.would === 'busy';
      count(record, isPrevented ? 'wouldPrevent' : 'wouldHold', at, times);
    } else if (type === 'resolved' && isInTime && verdicts.has(detail.act)) {
      // A killed run that `semel run` starts again is not a person's decision.
      if (detail.by === 'semel run') decided += 1;
      else resolved += 1;
    } else if (
      type === 'takeover' &&
      isInTime &&
      !inDoubt &&
      (detail.for === 'verify' || detail.for === 'rerun')
    )
      decided += 1;
  }

  return {
    add(record, history) {
      records += 1;
      countRecord(record, importedAt(history));
      for (const event of history) countEvent(record, event);
    },
    result: () => ({
      since: new Date(since),
      until: new Date(until),
      by: period.unit,
      zone: period.zone,
      records,
      totals,
      doubts: { open, oldest: open === 0 ? undefined : new Date(oldest), resolved, decided },
      slots,
      contracts: [...byContract.values()].sort(
        (a, b) => b.executed + b.replayed - (a.executed + a.replayed) || (nameOf(a) < nameOf(b) ? -1 : 1),
      ),
    }),
  };
}

function nameOf({ namespace, contract }: ContractCounts): string {
  return JSON.stringify([contract, namespace]);
}

/** A record from another ledger was settled there, not when it arrived. */
function importedAt(history: readonly StoreEvent[]): number | undefined {
  for (const { type, detail } of history) {
    if (type !== 'noted' || typeof detail.imported !== 'object' || detail.imported === null) continue;
    const at = Date.parse(String((detail.imported as { settledAt?: unknown }).settledAt));
    return Number.isNaN(at) ? undefined : at;
  }
  return undefined;
}

function none(): Counts {
  return {
    executed: 0,
    replayed: 0,
    saved: 0,
    inDoubt: 0,
    conflicts: 0,
    duplicates: 0,
    wouldPrevent: 0,
    wouldHold: 0,
  };
}

function slotsBetween(since: number, until: number, period: CalendarPeriod): Slot[] {
  const slots: Slot[] = [];
  for (let at = since; ; ) {
    const { slot, startsAt, endsAt } = calendarSlot(period, at);
    slots.push({ slot, startsAt: new Date(startsAt), ...none() });
    if (endsAt > until) return slots;
    at = endsAt;
  }
}
