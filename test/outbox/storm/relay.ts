// A relay in a process of its own, until it is killed or asked to finish. Its rows are lent for less than it believes, so that
// others take them from it while it works.

import { setTimeout as delay } from 'node:timers/promises';
import { createSemel } from '../../../src/index.ts';
import type { Outbox } from '../../../src/store/outbox.ts';
import { postgresStore } from '../../../src/stores/postgres/index.ts';
import { monotonicMs } from '../../crash/storm/terms.ts';
import type { Args, Inside } from '../../crash/tools.ts';
import { chanceOf } from '../../processes/chance.ts';
import { jobOf, onFinish, print } from '../../processes/child.ts';
import { holdMs, longestLeaseMs, makeTools, namespace, quietMs } from './terms.ts';

export interface RelayJob {
  readonly database: string;
  readonly url: string;
  readonly worker: string;
  readonly seed: number;
}

const { database, url, seed } = jobOf<RelayJob>();
const chance = chanceOf(seed);
const store = postgresStore({ url: database });
const outbox = store.outbox as Outbox;
const take: Outbox['take'] = (query) => outbox.take({ ...query, holdMs });
const semel = createSemel({
  store: { ...store, outbox: { ...outbox, take } },
  namespace,
  onWarning: () => undefined,
});

/** Wide enough for a kill to find it, and now and then longer than lease and loan. */
function linger(): Promise<void> {
  return delay(
    chance.is(0.06) ? chance.between(longestLeaseMs, 2.5 * longestLeaseMs) : chance.between(0, 25),
  );
}

const startedAt = new Map<string, number>();

/**
 * A machine that stood still for longer than a request may be on its way sends too late, and no contract covers that: then
 * this process counts as killed.
 */
async function passPoint(point: Inside, { intent }: Args): Promise<void> {
  if (point === 'started') startedAt.set(intent, monotonicMs());
  await linger();
  const isLate = monotonicMs() - (startedAt.get(intent) ?? 0) > quietMs / 2;
  if (point === 'dispatched' && isLate) process.kill(process.pid, 'SIGKILL');
}

makeTools(semel, url, passPoint);
const stop = new AbortController();
onFinish(() => stop.abort());
await semel.outbox.relay({
  signal: stop.signal,
  concurrency: 8,
  idle: '40ms',
  backoff: '50ms',
  maxBackoff: '200ms',
  maxTries: 3,
  onDelivery: ({ outcome }) => print({ outcome }),
});
await semel.close();
process.exit(0);
