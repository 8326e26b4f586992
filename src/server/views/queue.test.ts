import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createQueue } from './queue.ts';

function createAsker(namespace: string) {
  const hangUp = new AbortController();
  return { signal: hangUp.signal, space: { engine: { namespace } }, hangUp };
}

/** Work that ends when it is told to. */
function createWork(name: string, begun: string[]) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const work = async () => {
    begun.push(name);
    await promise;
    return name;
  };
  return { work, end: resolve };
}

test('a namespace that asks a hundred times keeps no place from another one', async () => {
  const queue = createQueue(4);
  const begun: string[] = [];
  const greedy = createAsker('greedy');
  for (let n = 0; n < 100; n += 1) void queue(createWork('greedy', begun).work, greedy);
  void queue(createWork('modest', begun).work, createAsker('modest'));
  await turn();
  expect(begun).toEqual(['greedy', 'greedy', 'modest']);
});

test('namespaces that wait take turns', async () => {
  const queue = createQueue(1);
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const ask = (name: string) => {
    const { work, end } = createWork(name, begun);
    ends.push(end);
    void queue(work, createAsker(name));
  };
  for (const name of ['a', 'a', 'a', 'b', 'c', 'b']) ask(name);
  for (const end of ends) end();
  await expect.poll(() => begun.length).toBe(6);
  expect(begun).toEqual(['a', 'a', 'b', 'c', 'a', 'b']);
});

test('work of a client that hung up while it waited is not begun, and frees its place', async () => {
  const queue = createQueue(1);
  const begun: string[] = [];
  const first = createWork('first', begun);
  const done = queue(first.work, createAsker('a'));
  const gone = createAsker('a');
  const left = queue(createWork('gone', begun).work, gone);
  const last = createWork('last', begun);
  const after = queue(last.work, createAsker('a'));
  gone.hangUp.abort();
  first.end();
  last.end();
  expect(await Promise.all([done, left, after])).toEqual(['first', undefined, 'last']);
  expect(begun).toEqual(['first', 'last']);
});

test('work that fails frees its place', async () => {
  const queue = createQueue(1);
  const asker = createAsker('a');
  const failing = queue(() => Promise.reject(new Error('the store is down')), asker);
  const next = queue(async () => 'next', asker);
  await expect(failing).rejects.toThrow('the store is down');
  expect(await next).toBe('next');
});

test('clients that hang up while they wait leave at once', async () => {
  const queue = createQueue(2);
  const endless = createWork('endless', []);
  for (const name of ['a', 'b']) void queue(endless.work, createAsker(name));
  const gone = Array.from({ length: 3 }, () => createAsker('a'));
  const left = gone.map((asker) => queue(endless.work, asker));
  for (const { hangUp } of gone) hangUp.abort();
  expect(await Promise.all(left)).toEqual([undefined, undefined, undefined]);
  const begun: string[] = [];
  const next = queue(createWork('next', begun).work, createAsker('a'));
  endless.end();
  await expect.poll(() => begun).toEqual(['next']);
  void next;
});
