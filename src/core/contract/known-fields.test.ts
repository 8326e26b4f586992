import { expect, test } from 'vitest';
import { findSimilar } from './known-fields.ts';

const isNear = (a: string, b: string) => findSimilar([a], b) !== undefined;

test.each([
  ['window', 'window'],
  ['window', 'Windows'],
  ['window', 'widnow'],
  ['window', 'wndw'],
  ['errors', 'xxerrors'],
  ['per', 'perxx'],
  ['ab', ''],
  ['', 'ab'],
])('%j is near %j', (a, b) => {
  expect([isNear(a, b), isNear(b, a)]).toEqual([true, true]);
});

test.each([
  ['window', 'wxyzow'],
  ['window', 'windowing'],
  ['abc', ''],
  ['abcdef', 'fedcba'],
])('%j is not near %j', (a, b) => {
  expect([isNear(a, b), isNear(b, a)]).toEqual([false, false]);
});

/** Letter by letter, over the whole table. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}

test('near are those of which at most two letters differ, of all short words', () => {
  const words = [''];
  for (let n = 0; n < words.length && (words[n] as string).length < 5; n += 1)
    for (const letter of 'ab') words.push(words[n] + letter);
  for (const a of words) for (const b of words) expect(isNear(a, b)).toBe(distance(a, b) <= 2);
});

test('a long name among many long ones is looked for in linear time', () => {
  const names = Array.from({ length: 10_000 }, (_, n) => `${'x'.repeat(1_000)}${n}`.padEnd(1_006, 'y'));
  expect(findSimilar(names, 'x'.repeat(1_006))).toBeUndefined();
  expect(findSimilar(['b'.repeat(1_000_000), 'a'.repeat(1_000_000)], 'a'.repeat(1_000_001))).toBe(
    'a'.repeat(1_000_000),
  );
});
