import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { onAbort } from './abort.ts';

test('a thousand who wait on one signal are one listener of it', () => {
  const { signal } = new AbortController();
  const ends = Array.from({ length: 1_000 }, () => onAbort(signal, () => undefined));
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  for (const end of ends) end();
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

test('each is called once, in order, and one that was removed meanwhile is not', () => {
  const controller = new AbortController();
  const called: string[] = [];
  const ends = ['a', 'b', 'c', 'd'].map((name) =>
    onAbort(controller.signal, () => {
      called.push(name);
      if (name === 'b') ends[2]?.();
    }),
  );
  ends[0]?.();
  controller.abort();
  controller.abort();
  expect(called).toEqual(['b', 'd']);
});

test('a signal is listened to again after all have left', () => {
  const controller = new AbortController();
  let called = 0;
  const count = () => {
    called += 1;
  };
  const end = onAbort(controller.signal, count);
  end();
  end();
  const endOfFirst = onAbort(controller.signal, count);
  onAbort(controller.signal, count);
  end();
  endOfFirst();
  controller.abort();
  expect(called).toBe(1);
});
