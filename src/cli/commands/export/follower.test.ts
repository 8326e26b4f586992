import { expect, test } from 'vitest';
import { createFollower, type Seen } from './follower.ts';

const minute = 60_000;

function record(key: string, updatedAt: number, readAt: number, over: Partial<Seen> = {}): Seen {
  const still = { status: 'succeeded', generation: 1, fence: 1, lapsed: false, dispatched: true } as const;
  return { key, updatedAt, readAt, expiresAt: null, ...still, ...over };
}

/** Which of these records a look finds new. */
function looking() {
  const follower = createFollower();
  return (...records: readonly Seen[]) => {
    follower.look();
    return records.filter((each) => follower.isNews(each)).map(({ key }) => key);
  };
}

test('the first look finds everything, the next only what changed', () => {
  const look = looking();
  expect(look(record('a', 0, 60 * minute), record('b', 60 * minute, 60 * minute))).toEqual(['a', 'b']);
  expect(look(record('a', 0, 61 * minute), record('b', 60 * minute, 61 * minute))).toEqual([]);
  const changed = record('a', 62 * minute, 62 * minute, { fence: 2 });
  expect(look(changed, record('b', 60 * minute, 62 * minute), record('c', 62 * minute, 62 * minute))).toEqual(
    ['a', 'c'],
  );
});

test('what was written a moment before a look, and seen only by the next, is not missed', () => {
  const look = looking();
  look(record('a', 0, 60 * minute));
  expect(look(record('a', 0, 61 * minute), record('late', 60 * minute - 1, 61 * minute))).toEqual(['late']);
});

test('a lapsed attempt is printed although nothing was written; a renewal is not', () => {
  const look = looking();
  const running = { status: 'running' } as const;
  look(record('a', 0, minute, running));
  expect(look(record('a', 9 * minute, 9 * minute, running))).toEqual([]);
  expect(look(record('a', 9 * minute, 20 * minute, running))).toEqual([]);
  expect(look(record('a', 9 * minute, 30 * minute, { ...running, lapsed: true }))).toEqual(['a']);
  expect(look(record('a', 9 * minute, 60 * minute, { ...running, lapsed: true }))).toEqual([]);
});
