import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../core/clock.ts';
import { CallbackTimer, createTimers } from './timers.ts';

test('a stopped timer keeps nothing of its neighbours alive', () => {
  const timers = createTimers(systemClock);
  const [before, stopped, after] = [1, 2, 3].map(() => new CallbackTimer(() => undefined)) as [
    CallbackTimer,
    CallbackTimer,
    CallbackTimer,
  ];
  for (const timer of [before, stopped, after]) timers.start(60_000, timer);
  stopped.list?.remove(stopped);
  expect(Object.values(stopped)).not.toContain(before);
  expect(Object.values(stopped)).not.toContain(after);
});

test('lengths that nobody uses any more are forgotten, with their system timers', () => {
  const running = new Set<object>();
  const clock: Clock = {
    ...systemClock,
    setTimeout: () => {
      const handle = {};
      running.add(handle);
      return handle as never;
    },
    clearTimeout: (handle) => void running.delete(handle as object),
  };
  const timers = createTimers(clock);
  const kept = new CallbackTimer(() => undefined);
  timers.start(1, kept);
  for (let ms = 2; ms < 10_000; ms += 1) {
    const timer = new CallbackTimer(() => undefined);
    timers.start(ms, timer);
    timer.list?.remove(timer);
  }
  expect(running.size).toBeLessThan(200);
  const equal = new CallbackTimer(() => undefined);
  timers.start(1, equal);
  expect(equal.list).toBe(kept.list);
});
