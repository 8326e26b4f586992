// semel on Postgres with full durability, against two statements by hand through `pg`.

import pg from 'pg';
import { postgresStore } from '../src/stores/postgres/index.ts';
import { claimRequest } from '../src/testing/store-contract/attempt.ts';
import { startPostgres } from '../test/servers/postgres.ts';
import {
  type Args,
  type Bench,
  benchOn,
  callers,
  inParallel,
  next,
  result,
  settleAll,
  staggered,
  timesAsync,
} from './calls.ts';
import { ledgerIn } from './counted-postgres.ts';
import { ledgerFolder } from './ledger-folder.ts';
import { type Figure, measure, p99, rateOf } from './measure.ts';
import { isPgbench, pgbench } from './pgbench.ts';
import { rawPostgres } from './raw-postgres.ts';
import type { Section } from './report.ts';

export interface PostgresSizes {
  readonly rounds: number;
  /** Rows of the large ledger. */
  readonly many: number;
}

let rawKeys = 0;
const rawKey = () => {
  rawKeys += 1;
  return `email.send/2026-06-19/${String(rawKeys).padStart(32, '0')}`;
};

export async function postgres({ rounds, many }: PostgresSizes): Promise<readonly Section[]> {
  using folder = ledgerFolder();
  await using server = await startPostgres({
    settings: { shared_buffers: '512MB', max_wal_size: '4GB', max_connections: '200' },
  });
  const admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  const raw = await rawPostgres(server.url);
  const bench = benchOn(postgresStore({ url: server.url }), { cache: false });
  const text = JSON.stringify(result);
  const known = Array.from({ length: 1000 }, next);
  const rawKnown = known.map(rawKey);
  await inParallel(8, async (caller, n) => {
    const index = caller * 8 + n;
    if (index >= known.length) return;
    await bench.send(known[index] as Args);
    await raw.execute(rawKnown[index] as string, text);
  });

  const first = await measure(rounds, [
    { name: 'pg: one caller', run: () => timesAsync(300, () => raw.execute(rawKey(), text)) },
    { name: 'semel: one caller', run: () => timesAsync(300, () => bench.send(next())) },
    { name: `pg: ${callers} callers`, run: () => inParallel(16, () => raw.execute(rawKey(), text)) },
    { name: `semel: ${callers} callers`, run: () => inParallel(60, (caller) => bench.send(next(), caller)) },
    ...(await pgbench(server.url, folder.path)),
  ]);
  const replay = await measure(rounds, [
    { name: 'pg: one caller', run: () => timesAsync(1000, (n) => raw.read(rawKnown[n % 1000] as string)) },
    { name: 'semel: one caller', run: () => timesAsync(1000, (n) => bench.send(known[n % 1000] as Args)) },
    {
      name: `pg: ${callers} callers`,
      run: () => inParallel(60, (caller, n) => raw.read(rawKnown[(caller * 60 + n) % 1000] as string)),
    },
    {
      name: `semel: ${callers} callers`,
      run: () => inParallel(300, (caller, n) => bench.send(known[(caller * 300 + n) % 1000] as Args)),
    },
  ]);
  await bench.close();
  const counted = await counters(server.url, admin);
  const apart = await staggering(server.url, raw, rounds);
  const growth = await growing(server.url, admin, rounds, many);
  await raw.close();
  await admin.end();

  const ratio = (figures: readonly Figure[], who: string) =>
    rateOf(figures, `semel: ${who}`) / rateOf(figures, `pg: ${who}`);
  return [
    {
      title: 'Postgres: first executions',
      figures: first,
      ratios: [
        {
          what: `${callers} callers / two statements through pg`,
          value: ratio(first, `${callers} callers`),
          goal: { direction: 'at least', value: 6 },
        },
        {
          what: 'one caller / two statements through pg',
          value: ratio(first, 'one caller'),
          goal: { direction: 'at least', value: 0.8 },
        },
        ...againstPgbench(first),
        ...counted,
      ],
    },
    {
      title: 'Postgres: replays, no cache',
      figures: replay,
      ratios: [
        {
          what: `${callers} callers / a select through pg`,
          value: ratio(replay, `${callers} callers`),
          goal: { direction: 'at least', value: 8 },
        },
        { what: 'one caller / a select through pg', value: ratio(replay, 'one caller') },
      ],
    },
    apart,
    growth,
  ];
}

/** Against the best that pgbench did, with whatever number of clients. */
function againstPgbench(first: readonly Figure[]): Section['ratios'] {
  const rates = first.filter(({ name }) => isPgbench(name)).map(({ perSecond }) => perSecond);
  if (rates.length === 0) return [];
  return [
    {
      what: `${callers} callers / the best of pgbench`,
      value: rateOf(first, `semel: ${callers} callers`) / Math.max(...rates),
      goal: { direction: 'at least', value: 4 },
    },
  ];
}

/** Exact, whatever the machine. */
async function counters(url: string, admin: pg.Client): Promise<Section['ratios']> {
  const bench = ledgerIn(url, 'counted', { cache: false });
  const wal = async () => Number((await admin.query('SELECT wal_bytes FROM pg_stat_wal')).rows[0].wal_bytes);
  const args = Array.from({ length: callers }, next);
  await settleAll(bench, args);
  const perCall = async (calls: () => Promise<number>) => {
    const before = bench.counts.statements;
    const made = await calls();
    return (bench.counts.statements - before) / made;
  };
  const one = await perCall(() => timesAsync(100, () => bench.send(next())));
  const oneReplay = await perCall(() => timesAsync(100, () => bench.send(args[0] as Args)));
  const crowdReplay = await perCall(() => inParallel(40, (caller) => bench.send(args[caller] as Args)));
  const walBefore = await wal();
  const crowd = await perCall(() => inParallel(40, (caller) => bench.send(next(), caller)));
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const bytes = ((await wal()) - walBefore) / (40 * callers);
  await bench.close();
  const each = 'statements, each a transaction, per';
  return [
    { what: `${each} first execution, one caller (exact)`, value: one },
    { what: `${each} first execution, ${callers} callers (exact)`, value: crowd },
    { what: `${each} replay, one caller (exact)`, value: oneReplay },
    { what: `${each} replay, ${callers} callers (exact)`, value: crowdReplay },
    { what: 'bytes of log per first execution', value: bytes },
    await renewals(url, admin),
  ];
}

/** Leases that are renewed again and again: what a steady workload updates. */
async function renewals(url: string, admin: pg.Client): Promise<Section['ratios'][number]> {
  const store = postgresStore({ url, schema: 'held' });
  await store.open();
  const claims = await Promise.all(
    Array.from({ length: 2_000 }, async (_, n) => {
      const request = claimRequest({ key: `mail.send/2026-06-19/${n}`, crossing: true });
      const answer = await store.claim(request);
      if (!answer.won) throw new Error('The claim should win.');
      const { namespace, key, token } = request;
      return { namespace, key, token, fence: answer.record.fence, generation: answer.record.generation };
    }),
  );
  for (let round = 0; round < 10; round += 1)
    await Promise.all(claims.map((held) => store.renew({ ...held, leaseMs: 60_000, quietMs: 660_000 })));
  await store.close();
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const { rows } = await admin.query(`SELECT n_tup_hot_upd::float8 / greatest(1, n_tup_upd) AS hot
    FROM pg_stat_all_tables WHERE schemaname = 'held' AND relname = 'open'`);
  return {
    what: 'updates (renewals) that stay on their page (HOT)',
    value: Number(rows[0].hot),
    goal: { direction: 'at least', value: 0.9 },
  };
}

/** Effects that take from 1 to 20 ms, so that callers are never in step. */
async function staggering(
  url: string,
  raw: Awaited<ReturnType<typeof rawPostgres>>,
  rounds: number,
): Promise<Section> {
  const bench = benchOn(postgresStore({ url }), { cache: false, effectMs: staggered });
  const text = JSON.stringify(result);
  const wait = () => new Promise((resolve) => setTimeout(resolve, staggered()));
  const figures = await measure(rounds, [
    { name: 'no store', run: () => inParallel(40, wait) },
    {
      name: 'pg',
      run: () =>
        inParallel(10, async () => {
          await wait();
          await raw.execute(rawKey(), text);
        }),
    },
    { name: 'semel', run: () => inParallel(40, (caller) => bench.send(next(), caller)) },
  ]);
  await bench.close();
  return {
    title: `Postgres: effects of 1 to 20 ms, ${callers} callers`,
    figures,
    ratios: [
      {
        what: 'semel / no store',
        value: rateOf(figures, 'semel') / rateOf(figures, 'no store'),
        goal: { direction: 'at least', value: 0.75 },
      },
      { what: 'pg by hand / no store', value: rateOf(figures, 'pg') / rateOf(figures, 'no store') },
    ],
  };
}

async function growing(url: string, admin: pg.Client, rounds: number, many: number): Promise<Section> {
  const few = 10_000;
  const small = ledgerIn(url, 'small', { cache: false });
  const large = ledgerIn(url, 'large', { cache: false });
  const fill = (bench: Bench, rows: number) =>
    inParallel(Math.ceil(rows / callers), (caller) => bench.send(next(), caller));
  await fill(small, few);
  for (let done = 0; done < many; ) {
    done += await fill(large, Math.min(100_000, many - done));
    process.stderr.write(`\r${done.toLocaleString('en-US')} of ${many.toLocaleString('en-US')} rows`);
  }
  process.stderr.write('\n');
  await admin.query('VACUUM ANALYZE');
  const { rows } = await admin.query(`SELECT (pg_total_relation_size('large.open')
    + pg_total_relation_size('large.closed')) / (SELECT count(*) FROM large.closed) AS bytes`);
  for (const { batchMs } of [small, large]) batchMs.length = 0;
  const figures = await measure(rounds, [
    { name: `${few.toLocaleString('en-US')} rows`, run: () => fill(small, 6_000) },
    { name: `${many.toLocaleString('en-US')} rows`, run: () => fill(large, 6_000) },
  ]);
  await small.close();
  await large.close();
  return {
    title: 'Postgres: growth',
    figures,
    ratios: [
      {
        what: 'large / small',
        value: (figures[1]?.perSecond ?? 0) / (figures[0]?.perSecond ?? 1),
        goal: { direction: 'at least', value: 0.8 },
      },
      {
        what: `p99 of a batch in the large one, in ms (of ${large.batchMs.length})`,
        value: p99(large.batchMs),
        goal: { direction: 'at most', value: 10 },
      },
      {
        what: `p99 of a batch in the small one, in ms (of ${small.batchMs.length})`,
        value: p99(small.batchMs),
      },
      {
        what: 'bytes per record, with a 200-byte result',
        value: Number(rows[0].bytes),
        goal: { direction: 'at most', value: 620 },
      },
    ],
  };
}
