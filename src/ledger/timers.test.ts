import { expect, test } from 'vitest';
import { systemClock } from '../core/clock.ts';
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
