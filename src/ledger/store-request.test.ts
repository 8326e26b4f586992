// How long a request waits for its reply, also in a process that was stopped meanwhile.

import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, test } from 'vitest';
import type { Clock } from '../core/clock.ts';
import { systemRandom } from '../core/clock.ts';
import { createEvents } from './events.ts';
import { callback, createRequestEnv, identity, StoreRequest } from './store-request.ts';

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

function request<Reply>(clock: Clock, reply: Promise<Reply>): Promise<Reply> {
  const env = createRequestEnv(clock, systemRandom, createEvents());
  return new StoreRequest(env, callback, 'run', () => reply, identity<Reply>).send();
}

test('a request without a reply fails after 15 seconds', async () => {
  const { clock, wakeAt } = stoppableClock();
  const waiting = request(clock, new Promise(() => undefined));
  wakeAt(15_000);
  await expect(waiting).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});

test('a reply that arrived while the process was stopped is delivered', async () => {
  const { clock, wakeAt } = stoppableClock();
  const { promise, resolve } = Promise.withResolvers<string>();
  const waiting = request(clock, promise);
  // Timers fire before replies that have arrived are read.
  wakeAt(40_000);
  resolve('refused');
  await expect(waiting).resolves.toBe('refused');
});

test('a process that was stopped waits one more second only', async () => {
  const { clock, wakeAt } = stoppableClock();
  const waiting = request(clock, new Promise(() => undefined));
  wakeAt(40_000);
  wakeAt(41_000);
  await expect(waiting).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});

test('the timer that all callers share runs in no async context', () => {
  const context = new AsyncLocalStorage<string>();
  const armedIn: (string | undefined)[] = [];
  const { clock } = stoppableClock();
  const watched: Clock = { ...clock, setTimeout: () => void armedIn.push(context.getStore()) };
  context.run('the first caller', () => void request(watched, new Promise(() => undefined)));
  expect(armedIn).toEqual([undefined]);
});
