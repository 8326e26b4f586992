import { expect, test } from 'vitest';
import { changes, frame } from './watch.ts';

test('only changes are printed again', () => {
  const changed = changes<[string, string]>(
    ([name]) => name,
    ([, face]) => face,
    100,
  );
  expect(
    changed([
      ['a', '1'],
      ['b', '1'],
    ]),
  ).toEqual([
    ['a', '1'],
    ['b', '1'],
  ]);
  expect(
    changed([
      ['a', '1'],
      ['b', '2'],
      ['c', '1'],
    ]),
  ).toEqual([
    ['b', '2'],
    ['c', '1'],
  ]);
  expect(
    changed([
      ['a', '1'],
      ['b', '2'],
      ['c', '1'],
    ]),
  ).toEqual([]);
  expect(changed([['b', '1']])).toEqual([['b', '1']]);
});

test('the memory of seen records is bounded, and the least recently seen goes first', () => {
  const changed = changes<string>(
    (name) => name,
    () => '',
    2,
  );
  changed(['a', 'b']);
  changed(['a', 'c']);
  expect(changed(['a'])).toEqual([]);
  expect(changed(['b'])).toEqual(['b']);
});

test('a frame fits on the screen', () => {
  const lines = Array.from({ length: 50 }, (_, n) => `line ${n}`);
  expect(frame(lines, 10).split('\n')).toHaveLength(10);
  expect(frame(lines, 10)).toContain('…');
  expect(frame(lines.slice(0, 9), 10)).not.toContain('…');
});
