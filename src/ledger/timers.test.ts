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

test('a timer that starts again when it is due does not delay those that started after it', () => {
  let now = 0;
  const armed: { at: number; run: () => void }[] = [];
  const clock: Clock = {
    ...systemClock,
    mono: () => now,
    setTimeout: (run, ms) => armed.push({ at: now + ms, run }) as never,
  };
  const timers = createTimers(clock);
  const due: string[] = [];
  const again = new CallbackTimer(() => {
    due.push(`again at ${now}`);
    timers.start(10, again);
  });
  timers.start(10, again);
  now = 1;
  timers.start(10, new CallbackTimer(() => due.push(`other at ${now}`)));
  while (now < 30) {
    const next = armed.sort((a, b) => a.at - b.at).shift();
    now = next?.at ?? 30;
    next?.run();
  }
  expect(due).toEqual(['again at 10', 'other at 11', 'again at 20', 'again at 30']);
});

test('a timer whose end throws does not stop the others', () => {
  const armed: (() => void)[] = [];
  const clock: Clock = { ...systemClock, mono: () => 0, setTimeout: (run) => armed.push(run) as never };
  const timers = createTimers(clock);
  const due: number[] = [];
  timers.start(
    0,
    new CallbackTimer(() => {
      throw new Error('a listener of the user');
    }),
  );
  timers.start(0, new CallbackTimer(() => due.push(1)));
  expect(armed.shift()).toThrow('a listener of the user');
  armed.shift()?.();
  expect(due).toEqual([1]);
});
