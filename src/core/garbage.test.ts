// What every call enters and leaves must not keep calls that are over: they would be copied by each minor collection.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { keyMap } from './key-map.ts';
import { type Link, LinkedList } from './linked-list.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (how?: { type: 'minor' }) => void;

class Item implements Link<Item> {
  previous: Item | undefined = undefined;
  next: Item | undefined = undefined;
  readonly weight: readonly number[] = new Array<number>(1_000).fill(1);
}

/** How many bytes are left of so many items of 8 kB, of which a hundred are kept at a time, after minor collections. */
function churn(count: number, add: (n: number, item: Item) => void, remove: (n: number, item: Item) => void) {
  const kept: Item[] = [];
  const pass = (from: number, to: number) => {
    for (let n = from; n < to; n += 1) {
      const item = new Item();
      const before = kept[n % 100];
      if (before !== undefined) remove(n - 100, before);
      kept[n % 100] = item;
      add(n, item);
      if (n % 500 === 0) collect({ type: 'minor' });
    }
  };
  pass(0, 1_000);
  // From here on, what the list or map consists of is old.
  collect();
  const { heapUsed } = process.memoryUsage();
  pass(1_000, 1_000 + count);
  collect({ type: 'minor' });
  collect({ type: 'minor' });
  return process.memoryUsage().heapUsed - heapUsed;
}

const few = 4_000_000;

test('a key map keeps nothing of what was deleted from it', () => {
  const map = keyMap<Item>();
  const grown = churn(
    3_000,
    (n, item) => map.set('a', `key-${n}`, item),
    (n) => map.delete('a', `key-${n}`),
  );
  expect([grown < few, map.size()], `${grown} bytes`).toEqual([true, 100]);
});

test('a linked list keeps nothing of what was removed from it', () => {
  const list = new LinkedList<Item>();
  const grown = churn(
    3_000,
    (_, item) => list.add(item),
    (_, item) => list.remove(item),
  );
  expect([grown < few, [...list].length], `${grown} bytes`).toEqual([true, 100]);
});
