import { expect, test } from 'vitest';
import { createFinder, type Seen, suspicion } from './finder.ts';

const second = 1_000;
const options = { withinMs: 60 * second, nearMs: 30 * second };

let line = 0;

function call(same: string, at: number, over: Partial<Seen> = {}): Seen {
  line += 1;
  const usual = { shown: same, wording: undefined, name: 'mail', key: undefined, failed: false };
  return { line, at: at * second, same, ...usual, ...over };
}

test('the same call again, within the time since the last one, is a repeat', () => {
  const finder = createFinder(options);
  for (const at of [0, 50, 100, 170]) finder.call(call('a', at));
  finder.call(call('b', 171));
  const { calls, repeats, groups } = finder.result();
  expect([calls, repeats]).toEqual([5, 2]);
  expect(groups).toMatchObject([
    { count: 3, shortestGapMs: 50_000, calls: [{ at: 0 }, { at: 50_000 }, { at: 100_000 }] },
  ]);
});

test('a call is remembered for the whole of the time, whatever came between', () => {
  const finder = createFinder(options);
  finder.call(call('first', 0));
  finder.call(call('a', 50));
  finder.call(call('b', 61));
  finder.call(call('a', 109));
  expect(finder.result().repeats).toBe(1);
});

test('repeating a call under its own key is not a reuse of the key', () => {
  const finder = createFinder(options);
  finder.call(call('a', 0, { key: 'k1' }));
  finder.call(call('a', 1, { key: 'k1' }));
  expect(finder.result().reuses).toEqual([]);
});

test('lines that are slightly out of order are still compared', () => {
  const finder = createFinder(options);
  for (const at of [100, 90]) finder.call(call('a', at));
  expect(finder.result().repeats).toBe(1);
});

test('the same call under two keys, and two calls under one', () => {
  const finder = createFinder(options);
  finder.call(call('a', 0, { key: 'k1' }));
  finder.call(call('a', 1, { key: 'k2' }));
  finder.call(call('b', 2, { key: 'k1' }));
  const { groups, reuses } = finder.result();
  expect([...groups[0]!.keys]).toEqual(['k1', 'k2']);
  expect(reuses).toMatchObject([{ key: 'k1', count: 2, calls: [{ shown: 'a' }, { shown: 'b' }] }]);
});

test('a repeat right after a restart is distinguished from a late one and from an unrelated one', () => {
  const finder = createFinder(options);
  finder.call(call('a', 0));
  finder.call(call('b', 0));
  line += 1;
  finder.restart(line, 10 * second);
  finder.call(call('a', 12));
  finder.call(call('c', 13));
  finder.call(call('c', 14));
  finder.call(call('b', 50));
  const { repeats, nearRestart, groups } = finder.result();
  expect([repeats, nearRestart]).toEqual([3, 1]);
  expect(groups[0]).toMatchObject({ shown: 'a', nearRestart: 1, restart: { by: 'line' } });
});

test('a gap that is unusual for the log counts as a restart; one that is usual does not', () => {
  const busy = createFinder(options);
  for (let at = 0; at < 20; at += 1) busy.call(call(`n${at}`, at));
  busy.call(call('n19', 70));
  expect(busy.result()).toMatchObject({ repeats: 1, nearRestart: 1, groups: [{ restart: { by: 'gap' } }] });
  const slow = createFinder({ ...options, withinMs: 600 * second });
  for (let at = 0; at < 20; at += 1) slow.call(call(`n${at}`, at * 50));
  slow.call(call('n19', 1_000));
  expect(slow.result()).toMatchObject({ repeats: 1, nearRestart: 0 });
});

test('memory is bounded, and what had to be dropped is reported', () => {
  const finder = createFinder({ ...options, most: 100 });
  for (let n = 0; n < 1_000; n += 1) finder.call(call(`n${n}`, n / 100));
  finder.call(call('n999', 10));
  finder.call(call('n0', 10));
  const { repeats, forgotten } = finder.result();
  expect(repeats).toBe(1);
  expect(forgotten).toBeGreaterThan(800);
});

test('old entries are silently forgotten', () => {
  const finder = createFinder({ ...options, most: 100 });
  for (let n = 0; n < 1_000; n += 1) finder.call(call(`n${n}`, n * 10));
  expect(finder.result().forgotten).toBe(0);
});

test('two keys and a restart weigh more than one key; reads and retries of what failed weigh little', () => {
  const finder = createFinder(options);
  finder.call(call('read', 0, { name: 'search' }));
  finder.call(call('failed', 0, { failed: true }));
  finder.call(call('same key', 0, { key: 'k' }));
  finder.call(call('two keys', 0, { key: 'x' }));
  finder.call(call('read', 40, { name: 'search' }));
  finder.call(call('failed', 40));
  finder.call(call('same key', 40, { key: 'k' }));
  finder.call(call('two keys', 40, { key: 'y' }));
  const { groups } = finder.result();
  expect(groups.map(({ shown }) => shown)).toEqual(['two keys', 'same key', 'failed', 'read']);
  expect(suspicion(groups[0]!)).toBeGreaterThan(suspicion(groups[3]!));
});
