import { expect, test } from 'vitest';
import { systemClock } from '../core/clock.ts';
import { createTimers } from './timers.ts';

test('a stopped timer keeps nothing of its neighbours alive', () => {
  const timers = createTimers(systemClock);
  const [before, stopped, after] = [1, 2, 3].map(() => timers.start(60_000, () => undefined));
  stopped?.stop();
  expect(Object.values(stopped as object)).not.toContain(before);
  expect(Object.values(stopped as object)).not.toContain(after);
});
