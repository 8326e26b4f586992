// How long an answer is waited for, also by a process that was stopped meanwhile.

import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, test } from 'vitest';
import type { Clock } from '../core/clock.ts';
import { systemRandom } from '../core/clock.ts';
import { createEvents } from './events.ts';
import { call, createDesk, Question, same } from './question.ts';

/** Time passes where the test says so; timers that are due then fire together, as after a stop. */
function stoppableClock() {
  let now = 0;
  let timers: { run: () => void; at: number }[] = [];
  const clock: Clock = {
    now: () => now,
    mono: () => now,
    setTimeout(run, ms) {
      timers.push({ run, at: now + ms });
      return undefined;
    },
    clearTimeout: () => undefined,
  };
  return {
    clock,
    wakeAt(at: number) {
      now = at;
      const due = timers.filter((timer) => timer.at <= now);
      timers = timers.filter((timer) => timer.at > now);
      for (const { run } of due) run();
    },
  };
}

function asked<Answer>(clock: Clock, answer: Promise<Answer>): Promise<Answer> {
  const desk = createDesk(clock, systemRandom, createEvents());
  return new Question(desk, call, 'by', () => answer, same<Answer>).ask();
}

test('an answer that never comes is given up after 15 seconds', async () => {
  const { clock, wakeAt } = stoppableClock();
  const waiting = asked(clock, new Promise(() => undefined));
  wakeAt(15_000);
  await expect(waiting).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});

test('an answer that came while the process was stopped is heard', async () => {
  const { clock, wakeAt } = stoppableClock();
  const { promise, resolve } = Promise.withResolvers<string>();
  const waiting = asked(clock, promise);
  // Timers fire before what has arrived is read.
  wakeAt(40_000);
  resolve('refused');
  await expect(waiting).resolves.toBe('refused');
});

test('a process that was stopped does not wait for long after it', async () => {
  const { clock, wakeAt } = stoppableClock();
  const waiting = asked(clock, new Promise(() => undefined));
  wakeAt(40_000);
  wakeAt(41_000);
  await expect(waiting).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});

test('the timer that all callers share runs in the context of none', () => {
  const context = new AsyncLocalStorage<string>();
  const armedIn: (string | undefined)[] = [];
  const { clock } = stoppableClock();
  const watched: Clock = { ...clock, setTimeout: () => void armedIn.push(context.getStore()) };
  context.run('the first caller', () => void asked(watched, new Promise(() => undefined)));
  expect(armedIn).toEqual([undefined]);
});
