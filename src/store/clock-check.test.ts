import { expect, test } from 'vitest';
import { type Anchor, judge, type Reading } from './clock-check.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const noon = Date.UTC(2026, 5, 19, 12);
const anchor: Anchor = { boot: 'a', wall: noon, uptime: 5 * hour, seen: noon };

/** So long after the anchor, with the wall clock wrong by so much. */
function reading(afterMs: number, offMs = 0, boot = 'a'): Reading {
  return { boot, wall: noon + afterMs + offMs, uptime: 5 * hour + afterMs };
}

test('a new ledger anchors at what it finds', () => {
  expect(judge(undefined, reading(0))).toEqual({ steady: true, anchor });
});

test('wall clock and uptime that go together are steady, and nothing needs to be written', () => {
  const verdict = judge(anchor, reading(30_000));
  expect(verdict.steady).toBe(true);
  expect(verdict.anchor).toBe(anchor);
});

test.each([2 * minute, -2 * minute, 90_000, -90_000])(
  'a difference of %d ms is only a correction',
  (offMs) => {
    expect(judge(anchor, reading(hour, offMs)).steady).toBe(true);
  },
);

test.each([
  [2 * minute + 1, 'The clock is 2 minutes ahead of where the machine’s uptime says it should be.'],
  [2 * day, 'The clock is 2 days ahead of where the machine’s uptime says it should be.'],
  [-3 * hour, 'The clock is 3 hours behind where the machine’s uptime says it should be.'],
])('a clock step of %d ms is not trusted, and the anchor stays', (offMs, problem) => {
  const verdict = judge(anchor, reading(hour, offMs));
  expect(verdict).toEqual({ steady: false, anchor, problem: problem.replace('’', "'") });
  expect(verdict.anchor).toBe(anchor);
});

test('once the clock is right again it is trusted again', () => {
  const { anchor: kept } = judge(anchor, reading(hour, 2 * day));
  expect(judge(kept, reading(2 * hour)).steady).toBe(true);
});

test('a machine that slept is steady: its uptime counts the sleep', () => {
  expect(judge(anchor, reading(8 * hour)).steady).toBe(true);
});

test('another boot is anchored again', () => {
  const next = { boot: 'b', wall: noon + hour, uptime: 20_000 };
  expect(judge(anchor, next)).toEqual({
    steady: true,
    anchor: { boot: 'b', wall: noon + hour, uptime: 20_000, seen: noon + hour },
  });
});

test('after a reboot, a clock behind the last one seen is not trusted', () => {
  const seen = { ...anchor, seen: noon + 10 * day };
  const verdict = judge(seen, { boot: 'b', wall: noon, uptime: 20_000 });
  expect(verdict.steady).toBe(false);
  expect(verdict.anchor).toBe(seen);
  expect(verdict.problem).toBe(
    'Since the machine was restarted, its clock is 10 days behind what the ledger has already seen.',
  );
});

test('after another boot, a clock that is a minute behind is a correction', () => {
  expect(judge(anchor, { boot: 'b', wall: noon - minute, uptime: 20_000 }).steady).toBe(true);
});

test('the latest trusted wall clock is stored, at most once a minute', () => {
  const { anchor: later } = judge(anchor, reading(minute));
  expect(later).toEqual({ ...anchor, seen: noon + minute });
  expect(judge(later, reading(2 * minute - 1)).anchor).toBe(later);
  expect(judge(later, reading(minute / 2)).anchor).toBe(later);
});

test('small corrections do not add up over a long uptime', () => {
  let kept = anchor;
  for (let days = 1; days <= 30; days += 1) {
    const verdict = judge(kept, reading(days * day, days * minute));
    expect(verdict.steady).toBe(true);
    kept = verdict.anchor;
  }
});

test('many small readings do not let a fast clock run away', () => {
  let kept = anchor;
  let steady = true;
  // Twice as fast: after four minutes it is two minutes ahead.
  for (let passed = 0; passed <= 10 * minute && steady; passed += 10_000) {
    const verdict = judge(kept, reading(passed, passed));
    kept = verdict.anchor;
    steady = verdict.steady;
  }
  expect(steady).toBe(false);
});
