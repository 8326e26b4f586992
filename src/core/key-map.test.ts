import { expect, test } from 'vitest';
import { keyMap } from './key-map.ts';

test('keeps one value per namespace and key, and counts them', () => {
  const map = keyMap<number>();
  map.set('a', 'k', 1);
  map.set('b', 'k', 2);
  map.set('a', 'k', 3);
  map.set('a', 'l', 4);
  expect([map.get('a', 'k'), map.get('b', 'k'), map.get('b', 'l'), map.get('c', 'k')]).toEqual([
    3,
    2,
    undefined,
    undefined,
  ]);
  expect([map.size(), [...map.values()]]).toEqual([3, [3, 4, 2]]);
});

test('what was deleted or cleared is gone, and no longer counted', () => {
  const map = keyMap<string>();
  map.set('a', 'k', 'x');
  map.set('a', 'l', 'y');
  expect([map.delete('a', 'k'), map.delete('a', 'k'), map.delete('b', 'l'), map.size()]).toEqual([
    true,
    false,
    false,
    1,
  ]);
  map.clear();
  expect([map.size(), map.get('a', 'l'), [...map.values()]]).toEqual([0, undefined, []]);
});
