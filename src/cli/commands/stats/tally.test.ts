import { expect, test } from 'vitest';
import { createTally, type RecordInfo } from '../../../semel/index.ts';
import type { EventType, StoreEvent } from '../../../store/store.ts';
import { bar, chart, summary } from './chart.ts';

const at = (text: string) => Date.parse(`2026-06-${text}Z`);
const since = at('17T12:00');
const until = at('19T12:00');

function record(over: Partial<RecordInfo>): RecordInfo {
  const settledAt = new Date(at('19T09:00'));
  return {
    contract: 'mail',
    status: 'succeeded',
    inDoubt: false,
    doubt: false,
    settledAt,
    updatedAt: settledAt,
    ...over,
  } as RecordInfo;
}

function event(type: EventType, when: string, detail: StoreEvent['detail'] = {}): StoreEvent {
  return { at: at(when), namespace: 'shop', key: 'mail/=1', generation: 1, fence: 1, type, detail };
}

function statsOf(...entries: readonly [RecordInfo, ...StoreEvent[]][]) {
  const tally = createTally(since, until, { unit: 'day', zone: 'UTC' });
  for (const [each, ...history] of entries) tally.add(each, history);
  return tally.result();
}

test('every day of the time has its slot, and counts fall into theirs', () => {
  const { slots, totals } = statsOf(
    [record({}), event('replayed', '18T23:59', { times: 5 }), event('replayed', '19T00:00')],
    [
      record({ settledAt: new Date(at('10T00:00')) }),
      event('replayed', '16T00:00'),
      event('replayed', '18T00:00'),
    ],
  );
  expect(slots.map(({ slot, executed, replayed }) => [slot, executed, replayed])).toEqual([
    ['2026-06-17', 0, 0],
    ['2026-06-18', 0, 6],
    ['2026-06-19', 1, 1],
  ]);
  expect(totals).toMatchObject({ executed: 1, replayed: 7, saved: 7 });
});

test('only replays of what landed saved an effect; what was given up or poisoned was not executed', () => {
  const refused = { code: 'FAILED', message: 'no', retriable: false };
  const { totals } = statsOf(
    [record({ status: 'failed', error: refused }), event('replayed', '19T10:00')],
    [record({ status: 'failed', doubt: true, error: refused })],
    [record({ status: 'failed', error: { ...refused, code: 'POISON' } })],
    [record({ status: 'released' })],
    [record({ status: 'running' })],
  );
  expect(totals).toMatchObject({ executed: 1, replayed: 1, saved: 0, inDoubt: 0 });
});

test('open doubts are counted whenever they began; resolved ones by who decided', () => {
  const { doubts, totals } = statsOf(
    [record({ status: 'unknown', inDoubt: true, lastDispatchedAt: new Date(at('01T00:00')) })],
    [record({}), event('takeover', '19T08:00', { for: 'verify' })],
    [record({}), event('resolved', '19T08:00', { act: 'landed' })],
    [
      record({}),
      event('resolved', '19T08:00', { act: 'forget' }),
      event('resolved', '01T08:00', { act: 'landed' }),
    ],
  );
  expect(doubts).toEqual({ open: 1, oldest: new Date(at('01T00:00')), resolved: 1, decided: 1 });
  expect(totals.inDoubt).toBe(0);
});

test('observed calls that would have been replayed or would have waited count as prevented', () => {
  const { totals } = statsOf([
    record({}),
    event('observed', '19T08:00', { would: 'replay', times: 3 }),
    event('observed', '19T08:00', { would: 'busy' }),
    event('observed', '19T08:00', { would: 'in doubt' }),
  ]);
  expect(totals).toMatchObject({ wouldPrevent: 4, wouldHold: 1 });
});

test('a record from another ledger counts when it was settled there', () => {
  const { slots } = statsOf([
    record({}),
    event('noted', '19T09:00', { imported: { settledAt: '2026-06-18T01:00:00.000Z' } }),
  ]);
  expect(slots.map(({ executed }) => executed)).toEqual([0, 1, 0]);
});

test('however little there is of something, the bar shows it', () => {
  expect(bar([1_000, 1, 0], 1_001)).toBe(`${'█'.repeat(40)}░`);
  expect(bar([0, 0, 0], 1)).toBe('');
});

test('days without calls are one line, and bars fit into the terminal', () => {
  const counted = statsOf([record({}), event('replayed', '19T08:00', { times: 20 })]);
  const [slot] = counted.slots.filter(({ executed }) => executed > 0);
  const empty = { ...slot!, executed: 0, replayed: 0, saved: 0, inDoubt: 0 };
  const stats = { ...counted, by: 'day' as const, slots: [empty, { ...empty }, slot!, { ...empty }] };
  for (const width of [40, 80, 120, undefined]) {
    const lines = chart(stats, false, width);
    expect(lines).toHaveLength(4);
    expect(lines.at(1)).toContain('2 days without calls');
    expect(lines.at(3)).toContain('1 day without calls');
    if (width !== undefined) expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
  }
  expect(chart(stats, false, 80).at(2)).not.toContain('…');
  expect(chart({ ...stats, slots: [empty, { ...empty }] }, false, 80)).toHaveLength(1);
});

test('one of something is said in the singular', () => {
  const told = (conflicts: number, wouldHold: number) => {
    const { totals } = statsOf([record({})]);
    return summary(
      {
        ...statsOf([record({})]),
        since: new Date(since),
        until: new Date(until),
        totals: { ...totals, conflicts, wouldPrevent: 1, wouldHold },
      } as unknown as Parameters<typeof summary>[0],
      false,
    ).join('\n');
  };
  expect(told(1, 1)).toContain('1 conflict: one key');
  expect(told(1, 1)).toContain('prevented 1 duplicate in 2d, and held back 1 call in doubt');
  expect(told(2, 2)).toContain('2 conflicts: one key');
  expect(told(2, 2)).toContain('held back 2 calls in doubt');
});
