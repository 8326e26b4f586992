// The storm on an outbox: stagers and relays in real processes on a real Postgres, killed and stopped at random, their
// connections cut; targets with moods, somebody who looks after doubts and dead rows; then calm, and the verdict.

import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { createSemel } from '../../../src/index.ts';
import type { Outbox } from '../../../src/store/outbox.ts';
import { postgresStore } from '../../../src/stores/postgres/index.ts';
import { monotonicMs } from '../../crash/storm/terms.ts';
import { targetOf, targets } from '../../crash/tools.ts';
import { type Chance, chanceOf } from '../../processes/chance.ts';
import { startNode } from '../../processes/node-process.ts';
import { newScratch } from '../../processes/scratch.ts';
import { startPostgres } from '../../servers/postgres.ts';
import {
  type Conduct,
  conducts,
  type EffectServer,
  startEffectServer,
} from '../../support/effect-server/index.ts';
import { startCrew } from './crew.ts';
import { somebody } from './person.ts';
import type { RelayJob } from './relay.ts';
import type { StagerJob } from './stager.ts';
import {
  contractOf,
  contracts,
  createTables,
  longestLeaseMs,
  makeTools,
  namespace,
  quietMs,
} from './terms.ts';
import { type Aftermath, findViolations, type Order } from './verdict.ts';

export interface OutboxStormOptions {
  readonly seed: number;
  /** Of relays. Stagers are killed besides. */
  readonly kills: number;
  readonly relays: number;
  readonly stagers: number;
  /** Mean time between two faults. */
  readonly faultEveryMs: number;
  readonly perSecond: number;
  readonly onProgress?: (report: {
    readonly seconds: number;
    readonly faults: FaultCounts;
    readonly effects: number;
  }) => void;
}

type FaultCounts = Readonly<Record<'relayKill' | 'stagerKill' | 'stop' | 'cut', number>>;

export interface OutboxStormReport {
  readonly place: string;
  readonly seconds: number;
  readonly faults: FaultCounts;
  readonly committed: number;
  readonly grouped: number;
  readonly effects: number;
  readonly doubts: number;
  readonly dead: number;
  /** Dead rows that were delivered again after their record was gone. */
  readonly orphans: number;
  readonly accepted: number;
  readonly givenUp: number;
  readonly dropped: number;
  readonly violations: readonly string[];
}

const moods: readonly Conduct[] = [
  conducts.refuses(422),
  conducts.refuses(500),
  conducts.limits(1),
  conducts.cuts,
  conducts.commitsThenCuts,
  conducts.commitsThenRefuses(500),
  conducts.commitsThenHangs,
  conducts.slow(50, 300),
];

export async function outboxStorm(options: OutboxStormOptions): Promise<OutboxStormReport> {
  using scratch = newScratch('outbox-storm');
  await using postgres = await startPostgres();
  await using server = await startEffectServer({ log: scratch.path('effects.jsonl'), targets: targets() });
  const pool = new pg.Pool({ connectionString: postgres.url, max: 4, application_name: 'storm' });
  pool.on('error', () => undefined);
  await createTables(pool);
  const store = postgresStore({ url: postgres.url });
  const outbox = store.outbox as Outbox;
  const semel = createSemel({ store, namespace, onWarning: () => undefined });
  const tools = makeTools(semel, server.url, () => undefined);
  await semel.open();
  const chance = chanceOf(options.seed);
  const since = monotonicMs();
  const common = { database: postgres.url, url: server.url };
  const relays = startCrew(options.relays, chance, (worker, seed) =>
    startNode(new URL('./relay.ts', import.meta.url), { ...common, worker, seed } satisfies RelayJob),
  );
  const { perSecond } = options;
  const stagers = startCrew(options.stagers, chance, (worker, seed) =>
    startNode(new URL('./stager.ts', import.meta.url), {
      ...common,
      worker,
      seed,
      since,
      perSecond,
    } satisfies StagerJob),
  );
  const effects = server.effects;
  const person = somebody(semel, outbox, effects, chanceOf(options.seed + 1));
  const faults = { relayKill: 0, stagerKill: 0, stop: 0, cut: 0 };
  let isBroken = false;
  let looking: Promise<void> | undefined;

  async function fault(): Promise<void> {
    const isRelay = chance.is(0.75);
    const crew = isRelay ? relays : stagers;
    const dice = chance.fraction();
    if (dice < 0.12) faults.cut += await cutConnections(pool, chance);
    else if (dice < 0.3) faults.stop += Number(await crew.stop(1.2 * longestLeaseMs, 3 * longestLeaseMs));
    else faults[isRelay ? 'relayKill' : 'stagerKill'] += Number(await crew.kill());
  }

  try {
    looking = (async () => {
      const mood = chanceOf(options.seed + 2);
      while (faults.relayKill < options.kills && !isBroken) {
        await person.look();
        await nudge(pool);
        await changeMood(server, mood);
        const seconds = (monotonicMs() - since) / 1000;
        options.onProgress?.({ seconds, faults, effects: effects().length });
        await delay(500);
      }
    })();
    while (faults.relayKill < options.kills) {
      await delay(chance.between(0, 2 * options.faultEveryMs));
      await fault();
    }
    await looking;
    await Promise.all([stagers.finish(), relays.finish()]);
    const seconds = (monotonicMs() - since) / 1000;
    for (const name of contracts)
      await server.behave(targetOf(name), { ...known(name), usually: conducts.plain });
    await settleAll();
    const after = await readAftermath();
    return {
      place: `Postgres ${postgres.version}`,
      seconds,
      faults,
      committed: after.orders.length,
      grouped: after.orders.filter(({ group }) => group !== null).length,
      effects: after.effects.length,
      doubts: person.seen.doubts,
      dead: person.seen.dead,
      orphans: person.seen.orphans,
      accepted: [...person.accepted.values()].reduce((sum, times) => sum + times, 0),
      givenUp: person.givenUp.size,
      dropped: person.dropped.size,
      violations: findViolations(after),
    };
  } finally {
    isBroken = true;
    await looking?.catch(() => undefined);
    await Promise.all([relays.disband(), stagers.disband()]);
    await semel.close();
    await pool.end();
  }

  /** No process is left: one relay delivers the rest, and the person decides what is in doubt, until nothing is. */
  async function settleAll(): Promise<void> {
    let landed = -1;
    let until = 0;
    // A busy machine takes its time: only standing still is a failure.
    for (;;) {
      if (effects().length > landed) until = monotonicMs() + 4 * quietMs;
      else if (monotonicMs() > until) return;
      landed = effects().length;
      await semel.doubts.sweep();
      await person.look();
      await person.lookAtOrphans();
      await pool.query('UPDATE semel.outbox SET due = 0, ready = 0 WHERE state < 2');
      await semel.outbox.drain({
        tools: [...tools.values()],
        maxTries: 100,
        backoff: '20ms',
        maxBackoff: '50ms',
      });
      const isQuiet =
        (await outbox.list({ limit: 1 })).length + (await semel.doubts.list({ limit: 1 })).items.length === 0;
      if (isQuiet) return;
      await delay(200);
    }
  }

  async function readAftermath(): Promise<Aftermath> {
    const { rows } = await pool.query<Order>(`SELECT seq::int, intent, group_name AS "group",
      not_before::float8 AS "notBefore" FROM orders`);
    const settledAt = new Map<string, number>();
    for (let after: string | undefined; ; ) {
      const page = await store.list({ namespace, limit: 500, ...(after === undefined ? {} : { after }) });
      for (const { args, settledAt: at } of page.items)
        if (at !== null) settledAt.set((JSON.parse(args ?? '{}') as { intent: string }).intent, at);
      if (page.next === undefined) break;
      after = page.next;
    }
    const staged = await outbox.list({ limit: 1_000 });
    const doubts = await semel.doubts.list({ limit: 1_000 });
    return {
      orders: rows,
      effects: effects(),
      settledAt,
      left: [
        ...staged.map(({ key, state, reason }) => `${key} was ${state} (${reason})`),
        ...doubts.items.map(({ key }) => `${key} was in doubt`),
      ],
      accepted: person.accepted,
      dropped: person.dropped,
      deadThoughLanded: person.deadThoughLanded,
    };
  }
}

/** Ends some sessions of the others, as a failing network does. */
async function cutConnections(pool: pg.Pool, chance: Chance): Promise<number> {
  const { rows } = await pool.query(
    `SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'
      AND application_name <> 'storm' AND pid <> pg_backend_pid() ORDER BY random() LIMIT $1) AS picked`,
    [1 + chance.whole(4)],
  );
  return rows.length;
}

/** What is in doubt is looked at every half minute: too rarely for a storm. */
async function nudge(pool: pg.Pool): Promise<void> {
  await pool.query(`UPDATE semel.outbox SET due = least(due, semel.now_ms() + 500),
    ready = least(ready, semel.now_ms() + 500) WHERE state = 1`);
}

const known = (name: string): object => (targets() as Record<string, object>)[name] ?? {};

async function changeMood(server: EffectServer, chance: Chance): Promise<void> {
  const name = chance.pick(contracts);
  const usually = chance.is(0.6) ? conducts.plain : chance.pick(moods);
  await server.behave(targetOf(name), { ...known(contractOf(name)), usually });
}
