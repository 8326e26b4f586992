// A nightly job in a process of its own: plan, draft, file, publish. It dies where its order says, and leaves a line in a file for
// everything that it does.

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSemel, day } from '../../src/index.ts';
import type { Store } from '../../src/store/index.ts';
import { postgresStore } from '../../src/stores/postgres/index.ts';
import { redisStore } from '../../src/stores/redis/index.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { dieHere, jobOf, onFinish, print } from '../processes/child.ts';
import { hookedStore } from '../processes/hooked-store.ts';
import type { Point } from './points.ts';

export type StorePlace =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly schema: string }
  | { readonly kind: 'redis'; readonly url: string; readonly prefix: string };

export interface NightlyOrder {
  readonly place: StorePlace;
  readonly folder: string;
  readonly at: number;
  readonly dieAt?: Point | 'in the effect';
  readonly ifBusy?: 'wait' | 'skip';
  readonly lease?: '1h';
  readonly atLeast?: '1h';
  /** Waits in its first step until its standard input ends. */
  readonly lingers?: true;
}

export type NightlyLine = { readonly working: true } | { readonly outcome: unknown; readonly code?: string };

const order = jobOf<NightlyOrder>();

function reached(point: NonNullable<NightlyOrder['dieAt']>): void {
  if (order.dieAt === point) dieHere();
}

function openStore(place: StorePlace): Store {
  if (place.kind === 'sqlite') return sqliteStore({ path: place.path });
  if (place.kind === 'postgres') return postgresStore({ url: place.url, schema: place.schema });
  return redisStore({ url: place.url, prefix: place.prefix, durability: 'accept-loss' });
}

function did(what: string): void {
  appendFileSync(join(order.folder, 'effects'), `${what}\n`);
}

const isOf = (request: unknown, kind: string) =>
  String((request as { key?: string }).key).startsWith(`${kind}.`);
const isFile = (request: unknown) => String((request as { key?: string }).key).includes('post.md');
const store = hookedStore(openStore(order.place), {
  before(method, request) {
    if (method === 'claim' && isOf(request, 'lock')) reached('before the lock');
    if (method === 'claim' && isOf(request, 'run')) reached('between lock and slot');
    if (method === 'dispatch' && isFile(request)) reached('with the file beside its place');
    if (method === 'settle' && isFile(request)) reached('with the file in its place');
    if (method === 'settle' && isOf(request, 'run')) reached('after the last step');
    if (method === 'settle' && isOf(request, 'lock')) reached('before the lock is released');
  },
  after(method, request) {
    if (method === 'dispatch' && isFile(request)) reached('with the file on record');
  },
});
const finished = new Promise<void>((resolve) => {
  const alive = setInterval(() => undefined, 1_000);
  onFinish(() => {
    clearInterval(alive);
    resolve();
  });
});
const semel = createSemel({ store, namespace: 'app', onWarning: () => undefined });
const job = semel.job(
  'blog',
  {
    per: day('Asia/Kolkata'),
    lease: order.lease ?? '10s',
    ifBusy: order.ifBusy ?? 'wait',
    ...(order.atLeast === undefined ? {} : { atLeast: order.atLeast }),
  },
  async (run) => {
    reached('before the first step');
    const plan = await run.step('plan', async () => {
      const text = `plan by ${process.pid}`;
      did(text);
      print({ working: true } satisfies NightlyLine);
      reached('in the first step');
      if (order.lingers) await finished;
      return text;
    });
    reached('between two steps');
    const draft = await run.step('draft', { plan }, (args) => {
      did('draft');
      return `draft of ${args.plan}, ${Math.random()}`;
    });
    const file = await run.artifact(join(order.folder, 'post.md'), async function* () {
      did('file');
      yield draft.slice(0, 5);
      reached('while the file is written');
      yield draft.slice(5);
    });
    await run.once('publish', undefined, { lease: '10s' }, () => {
      did(`publish ${draft}`);
      reached('in the effect');
      return 1;
    });
    return { plan, draft, file: file.sha256, attempt: run.attempt };
  },
);
const outcome = await job.try({ at: order.at });
const code = outcome.status === 'failed' ? { code: outcome.error.code } : {};
print({ outcome, ...code } satisfies NightlyLine);
await semel.close();
process.exit(0);
