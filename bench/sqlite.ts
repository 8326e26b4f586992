// semel on SQLite with full durability, against node:sqlite alone.

import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { type Bare, bare } from './bare.ts';
import {
  type Args,
  type Bench,
  callers,
  inParallel,
  next,
  result,
  settleAll,
  staggered,
  timesAsync,
} from './calls.ts';
import { ledgerAt } from './counted-sqlite.ts';
import { ledgerFolder } from './ledger-folder.ts';
import { measure, p99, rateOf } from './measure.ts';
import type { Ratio, Section } from './report.ts';

export interface Sizes {
  readonly rounds: number;
  /** Rows of the small and of the large ledger. */
  readonly few: number;
  readonly many: number;
}

type Folder = ReturnType<typeof ledgerFolder>;

const text = JSON.stringify(result);
let bareKeys = 0;
const bareKey = () => `email.send/2026-06-19/${String(++bareKeys).padStart(32, '0')}`;

/** The keys of as many conversations as there are callers, each with a digest at its end. */
function together(limit: Bare): number {
  const rounds = 60;
  for (let round = 0; round < rounds; round += 1) {
    const keys = Array.from({ length: callers }, (_, caller) => {
      const digest = createHash('sha256').update(bareKey()).digest('hex').slice(0, 32);
      return `email.send/c${String(caller).padStart(10, '0')}/${digest}`;
    });
    limit.executeTogether(keys, text);
  }
  return rounds * callers;
}

/** Every caller makes so many calls that were never made before. */
const firstTimes = (bench: Bench, each: number): Promise<number> =>
  inParallel(each, (caller) => bench.send(next(), caller));

export async function sqlite({ rounds, few, many }: Sizes): Promise<readonly Section[]> {
  using folder = ledgerFolder();
  using limit = bare(folder.path('bare.db'));
  return [
    await executing(folder, limit, rounds),
    await replaying(folder, limit, rounds),
    await staggering(folder, limit, rounds),
    await growing(folder, rounds, few, many),
  ];
}

async function executing(folder: Folder, limit: Bare, rounds: number): Promise<Section> {
  const guarded = ledgerAt(folder.path('semel.db'), { cache: false });
  await guarded.send(next());
  const one = await measure(rounds, [
    { name: 'bare: two transactions', run: () => times(300, () => limit.execute(bareKey(), text)) },
    { name: 'semel: one caller', run: () => timesAsync(300, () => guarded.send(next())) },
    { name: `bare: ${callers} together`, run: () => together(limit) },
    { name: `semel: ${callers} callers`, run: () => firstTimes(guarded, 60) },
  ]);
  await guarded.close();
  const against = (name: string) => rateOf(one, name) / rateOf(one, 'bare: two transactions');
  return {
    title: 'SQLite, synchronous=FULL: first executions',
    figures: one,
    ratios: [
      {
        what: 'one caller / bare',
        value: against('semel: one caller'),
        goal: { direction: 'at least', value: 0.8 },
      },
      {
        what: `${callers} callers / bare`,
        value: against(`semel: ${callers} callers`),
        goal: { direction: 'at least', value: 20 },
      },
      {
        what: `bare: ${callers} together / bare, to compare with`,
        value: against(`bare: ${callers} together`),
      },
      ...(await counters(folder)),
    ],
  };
}

/** Exact, whatever the machine. */
async function counters(folder: Folder): Promise<readonly Ratio[]> {
  const bench = ledgerAt(folder.path('counted.db'), { cache: false, everyStatement: true });
  const args = next();
  await settleAll(bench, [args]);
  const perCall = async (calls: () => Promise<number>) => {
    const before = { ...bench.counts };
    const made = await calls();
    return {
      transactions: (bench.counts.transactions - before.transactions) / made,
      statements: (bench.counts.statements - before.statements) / made,
    };
  };
  const first = await perCall(() => timesAsync(100, () => bench.send(next())));
  const crowd = await perCall(() => firstTimes(bench, 20));
  const replay = await perCall(() => timesAsync(100, () => bench.send(args)));
  await bench.close();
  return [
    {
      what: 'transactions per first execution (exact)',
      value: first.transactions,
      goal: { direction: 'at most', value: 2 },
    },
    { what: `transactions per first execution, ${callers} callers (exact)`, value: crowd.transactions },
    { what: 'statements besides BEGIN and COMMIT per first execution (exact)', value: first.statements },
    { what: 'transactions per replay (exact)', value: replay.transactions },
    { what: 'statements per replay (exact)', value: replay.statements },
  ];
}

async function replaying(folder: Folder, limit: Bare, rounds: number): Promise<Section> {
  const guarded = ledgerAt(folder.path('replayed.db'), { cache: false });
  const cached = ledgerAt(folder.path('cached.db'), { cache: true });
  const known = Array.from({ length: 1000 }, next);
  const bareKnown = known.map(bareKey);
  for (const key of bareKnown) limit.execute(key, text);
  for (const bench of [guarded, cached]) for (const args of known) await bench.send(args);

  const replays = await measure(rounds, [
    {
      name: 'bare: read and parse',
      run: () => times(20_000, (n) => limit.read(bareKnown[n % 1000] as string)),
    },
    {
      name: 'semel: replay from the store',
      run: () => timesAsync(20_000, (n) => guarded.send(known[n % 1000] as Args)),
    },
    {
      name: 'semel: replay from the cache',
      run: () => timesAsync(50_000, (n) => cached.send(known[n % 1000] as Args)),
    },
  ]);
  await guarded.close();
  await cached.close();
  const fromStore = rateOf(replays, 'semel: replay from the store');
  return {
    title: 'SQLite: replays',
    figures: replays,
    ratios: [
      {
        what: 'from the store / bare read',
        value: fromStore / rateOf(replays, 'bare: read and parse'),
        goal: { direction: 'at least', value: 0.6 },
      },
      {
        what: 'from the cache / from the store',
        value: rateOf(replays, 'semel: replay from the cache') / fromStore,
        goal: { direction: 'at least', value: 10 },
      },
    ],
  };
}

/** Effects that take from 1 to 20 ms, so that callers are never in step. */
async function staggering(folder: Folder, limit: Bare, rounds: number): Promise<Section> {
  const bench = ledgerAt(folder.path('staggered.db'), { cache: false, effectMs: staggered });
  await bench.send(next());
  const wait = () => new Promise((resolve) => setTimeout(resolve, staggered()));
  const figures = await measure(rounds, [
    { name: 'no store', run: () => inParallel(40, wait) },
    {
      name: 'bare, one at a time',
      run: () =>
        inParallel(10, async () => {
          await wait();
          limit.execute(bareKey(), text);
        }),
    },
    { name: 'semel', run: () => firstTimes(bench, 40) },
  ]);
  await bench.close();
  const share = (name: string) => rateOf(figures, name) / rateOf(figures, 'no store');
  return {
    title: `SQLite: effects of 1 to 20 ms, ${callers} callers`,
    figures,
    ratios: [
      { what: 'semel / no store', value: share('semel'), goal: { direction: 'at least', value: 0.75 } },
      { what: 'bare, one at a time / no store', value: share('bare, one at a time') },
    ],
  };
}

/** Two ledgers, one small and one large, written to in turn. */
async function growing(folder: Folder, rounds: number, few: number, many: number): Promise<Section> {
  const small = ledgerAt(folder.path('small.db'), { cache: false });
  const large = ledgerAt(folder.path('large.db'), { cache: false });
  await firstTimes(small, Math.ceil(few / callers));
  for (let done = 0; done < many; ) {
    done += await firstTimes(large, Math.ceil(Math.min(100_000, many - done) / callers));
    process.stderr.write(`\r${done.toLocaleString('en-US')} of ${many.toLocaleString('en-US')} rows`);
  }
  process.stderr.write('\n');
  for (const { batchMs } of [small, large]) batchMs.length = 0;
  const figures = await measure(rounds, [
    { name: `${few.toLocaleString('en-US')} rows, ${callers} callers`, run: () => firstTimes(small, 48) },
    { name: `${many.toLocaleString('en-US')} rows, ${callers} callers`, run: () => firstTimes(large, 48) },
  ]);
  await small.close();
  await large.close();
  const bytes = statSync(folder.path('large.db')).size / rowsIn(folder.path('large.db'));
  return {
    title: 'SQLite: growth',
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
        value: bytes,
        goal: { direction: 'at most', value: 400 },
      },
    ],
  };
}

function rowsIn(path: string): number {
  using database = new DatabaseSync(path, { readOnly: true });
  return (database.prepare('SELECT count(*) AS n FROM closed').get() as { n: number }).n;
}

function times(count: number, work: (n: number) => unknown): number {
  for (let n = 0; n < count; n += 1) work(n);
  return count;
}
