import { expect, test } from 'vitest';
import { Watched } from './watched.ts';

const failing = () => Watched.of(Promise.reject(new Error('x')));
const ignore = () => undefined;

test('every usual way of waiting receives the error', async () => {
  for (const wait of [
    async (promise: Promise<unknown>) => await promise,
    (promise: Promise<unknown>) => promise.then(ignore),
    (promise: Promise<unknown>) => promise.catch(ignore),
    (promise: Promise<unknown>) => promise.finally(ignore),
    (promise: Promise<unknown>) => Promise.all([promise]),
    (promise: Promise<unknown>) => Promise.allSettled([promise]),
    (promise: Promise<unknown>) => Promise.race([promise]),
    async (promise: Promise<unknown>) => promise,
  ]) {
    const promise = failing();
    await Promise.resolve(wait(promise)).catch(ignore);
    expect(promise.isHeard, String(wait)).toBe(true);
  }
});

test('without anybody it is not heard, and ends no process', async () => {
  const promise = failing();
  await new Promise((resolve) => setImmediate(resolve));
  expect(promise.isHeard).toBe(false);
  expect(promise).toBeInstanceOf(Promise);
});

test('promises derived from it are plain promises', () => {
  expect(Watched.of(Promise.resolve(1)).then(ignore)).not.toBeInstanceOf(Watched);
});
