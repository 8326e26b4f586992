// "Stage in a transaction, deliver once": callers insert an order and stage an intent in one transaction each, and relays of
// the same process deliver. Beside an outbox by hand and what others use.

import pg from 'pg';
import { createSemel } from '../src/index.ts';
import { postgresStore } from '../src/stores/postgres/index.ts';
import { startPostgres } from '../test/servers/postgres.ts';
import { startRedis } from '../test/servers/redis.ts';
import { alone, pause } from './calls.ts';
import { type Contestant, type Figure, find, measure, median, p50, p99, ratio } from './measure.ts';
import { bullMq } from './peers/bullmq.ts';
import { graphileWorker } from './peers/graphile-worker.ts';
import { installPeers } from './peers/install.ts';
import { pgBoss } from './peers/pg-boss.ts';
import type { Deliver, Intent, Queue, QueueOptions } from './peers/queue.ts';
import { rawOutbox } from './raw-outbox.ts';
import { atLeast, type Ratio, type Section } from './report.ts';
import { readServerCpu } from './server-cpu.ts';

/** For how long callers stage in a round. Long enough that what is delivered after it weighs little. */
const stagingMs = 1_500;

export async function outbox(rounds: number): Promise<readonly Section[]> {
  await using server = await startPostgres({
    settings: { shared_buffers: '512MB', max_wal_size: '4GB', max_connections: '300' },
  });
  await using redis = await startRedis({ persistence: 'always' });
  const pool = new pg.Pool({ connectionString: server.url, max: 128 });
  await pool.query('CREATE TABLE orders (id text PRIMARY KEY, n integer NOT NULL)');
  await using stations = await openStations(server.url, redis?.url);
  const readCpu = () => readServerCpu(server.dataFolder);
  const sections: Section[] = [];
  for (const { callers, effectMs } of [
    { callers: 16, effectMs: 0 },
    { callers: 128, effectMs: 0 },
    { callers: 128, effectMs: 2 },
  ])
    sections.push(await compare({ rounds, pool, stations: stations.list, callers, effectMs, readCpu }));
  await pool.end();
  return sections;
}

interface Comparison {
  readonly rounds: number;
  readonly pool: pg.Pool;
  readonly stations: readonly Station[];
  readonly callers: number;
  readonly effectMs: number;
  /** CPU time of the server so far, in microseconds. */
  readonly readCpu: () => number;
}

async function compare(comparison: Comparison): Promise<Section> {
  const { rounds, pool, stations, callers, effectMs, readCpu } = comparison;
  for (const station of stations) station.reset(effectMs);
  const serverMicros = new Map<string, number[]>();
  const contestant = (name: string, run: () => Promise<number>): Contestant => ({
    name,
    async run() {
      const before = readCpu();
      const count = await run();
      serverMicros.set(name, [...(serverMicros.get(name) ?? []), (readCpu() - before) / count]);
      return count;
    },
  });
  const figures = await measure(rounds, [
    contestant(bare, () => crowd(callers, async () => transact(pool, nextIntent()))),
    ...stations.map((station) => contestant(station.name, () => station.work(pool, callers))),
  ]);
  // Without the round that only warms up.
  const cpu = new Map([...serverMicros].map(([name, micros]) => [name, median(micros.slice(1))]));
  const effects = effectMs === 0 ? '' : `, effects of ${effectMs} ms`;
  return {
    title: `Outbox on Postgres, ${callers} callers${effects}`,
    figures,
    ratios: [
      ...beside(figures, stations, effectMs),
      ...compareCpu(figures, stations, cpu),
      ...stations.flatMap((station) => station.latencies()),
    ],
  };
}

function compareCpu(
  figures: readonly Figure[],
  stations: readonly Station[],
  server: ReadonlyMap<string, number>,
): readonly Ratio[] {
  const both = ({ name }: Station) => median(find(figures, name).cpuMicros) + (server.get(name) ?? 0);
  const costs = (wanted: Kind) => stations.filter(({ kind }) => kind === wanted).map(both);
  return [
    ...[...server].map(([name, micros]) => ({
      what: `${name}: CPU µs of Postgres per intent`,
      value: micros,
    })),
    {
      what: 'CPU of this process and Postgres per intent, the cheapest of the others / semel',
      value: Math.min(...costs('Postgres peer')) / Math.min(...costs('semel')),
    },
  ];
}

const bare = 'the transaction alone, nothing staged';

function beside(
  figures: readonly Figure[],
  stations: readonly Station[],
  effectMs: number,
): readonly Ratio[] {
  const peers = stations.filter(({ kind }) => kind === 'Postgres peer').map(({ name }) => name);
  const others = stations.filter(({ name }) => name !== 'semel').map(({ name }) => name);
  return [
    ...(peers.length === 0
      ? []
      : [
          {
            what: 'semel / the best of the others on Postgres',
            value: ratio(figures, 'semel', ...peers),
            ...(effectMs === 0 ? { goal: atLeast(1.5) } : {}),
          },
        ]),
    ...[...others, bare].map((name) => ({ what: `semel / ${name}`, value: ratio(figures, 'semel', name) })),
  ];
}

async function transact(pool: pg.Pool, { order, n }: Intent, stage?: Queue['stage']): Promise<void> {
  const tx = await pool.connect();
  try {
    await tx.query('BEGIN');
    await tx.query('INSERT INTO orders (id, n) VALUES ($1, $2)', [order, n]);
    await stage?.(tx, { order, n });
    await tx.query('COMMIT');
  } finally {
    tx.release();
  }
}

let lastOrder = 0;
function nextIntent(n = 0): Intent {
  lastOrder += 1;
  return { order: `order-${String(lastOrder).padStart(9, '0')}`, n };
}

async function crowd(callers: number, call: () => Promise<void>): Promise<number> {
  const counts = await Promise.all(Array.from({ length: callers }, () => alone(call, stagingMs)));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** A queue with its callers and its effects. */
interface Station {
  readonly name: string;
  readonly kind: Kind;
  work(pool: pg.Pool, callers: number): Promise<number>;
  reset(effectMs: number): void;
  latencies(): readonly Ratio[];
}

type Kind = 'limit' | 'Postgres peer' | 'other peer' | 'semel';

async function openStation(
  kind: Kind,
  url: string,
  open: (options: QueueOptions) => Promise<Queue>,
): Promise<Station & AsyncDisposable> {
  let effectMs = 0;
  /** By the number of the intent; in milliseconds. */
  let committedAt: number[] = [];
  let landedAt: number[] = [];
  let landed = 0;
  let ended = () => {};

  const deliver: Deliver = async ({ n }) => {
    if (landedAt[n] !== undefined) throw new Error(`${queue.name} delivered an intent twice.`);
    landedAt[n] = performance.now();
    if (effectMs > 0) await pause(effectMs);
    landed += 1;
    ended();
  };
  const queue = await open({ url, deliver });

  return {
    name: queue.name,
    kind,
    reset(ms) {
      effectMs = ms;
      committedAt = [];
      landedAt = [];
      landed = 0;
    },
    async work(pool, callers) {
      const before = landed;
      let staged = before;
      const count = await crowd(callers, async () => {
        const n = staged++;
        const intent = nextIntent(n);
        await transact(pool, intent, queue.stage);
        committedAt[n] = performance.now();
        await queue.add?.(intent);
      });
      await new Promise<void>((resolve) => {
        ended = () => landed === staged && resolve();
        ended();
      });
      ended = () => {};
      return count;
    },
    latencies() {
      // A relay may deliver before the caller has read the answer to its COMMIT.
      const times = committedAt.map((at, n) => Math.max(0, (landedAt[n] ?? Number.NaN) - at));
      return [
        { what: `${queue.name}: p50 from commit to effect, in ms`, value: p50(times) },
        { what: `${queue.name}: p99 from commit to effect, in ms`, value: p99(times) },
      ];
    },
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}

async function openStations(
  postgresUrl: string,
  redisUrl: string | undefined,
): Promise<AsyncDisposable & { readonly list: readonly Station[] }> {
  const stack = new AsyncDisposableStack();
  const list: Station[] = [];
  const add = async (kind: Kind, open: (options: QueueOptions) => Promise<Queue>, url = postgresUrl) =>
    void list.push(stack.use(await openStation(kind, url, open)));
  await add('limit', rawOutbox);
  if (installPeers()) {
    await add('Postgres peer', (options) => pgBoss('notify', options));
    await add('Postgres peer', (options) => pgBoss('poll', options));
    await add('Postgres peer', graphileWorker);
    if (redisUrl !== undefined) await add('other peer', bullMq, redisUrl);
  }
  await add('semel', semelOutbox);
  return { list, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

async function semelOutbox({ url, deliver }: QueueOptions): Promise<Queue> {
  const semel = createSemel({
    store: postgresStore({ url }),
    namespace: 'bench',
    onWarning: (warning) => process.stderr.write(`semel: ${JSON.stringify(warning)}\n`),
  });
  const send = semel.tool({
    name: 'order.send',
    effect: 'write-non-idempotent',
    per: 'ever',
    identity: ['order'],
    run: async (intent: Intent) => deliver(intent),
  });
  const stop = new AbortController();
  const relaying = semel.outbox.relay({ signal: stop.signal, concurrency: 256 });
  return {
    name: 'semel',
    stage: (tx, intent) => send.stage(tx, intent),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await relaying;
      await semel.close();
    },
  };
}
