import { expect, test } from 'vitest';
import { newest } from './newest.ts';

test('the newest few are kept, newest first, whatever the order in which they came', () => {
  const found = newest<number>(3);
  // 7 and 1000 have no common factor: every number from 0 to 999, mixed.
  for (let n = 0; n < 1000; n += 1) found.add((n * 7) % 1000, () => (n * 7) % 1000);
  expect(found.items()).toEqual([999, 998, 997]);
  expect(found.count()).toBe(1000);
});

test('equals keep their order, and a short list is returned whole', () => {
  const found = newest<string>(5);
  for (const name of ['a', 'b']) found.add(1, () => name);
  found.add(2, () => 'c');
  expect(found.items()).toEqual(['c', 'a', 'b']);
});

test('records that are too old are not even built', () => {
  const found = newest<string>(1);
  for (let n = 0; n < 200; n += 1) found.add(10, () => 'new');
  found.add(9, () => expect.fail('it was made'));
  expect(found.items()).toEqual(['new']);
});
