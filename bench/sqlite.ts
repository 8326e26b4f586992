// semel on SQLite with full durability, beside node:sqlite alone; and a ledger that grows.

import { statSync } from 'node:fs';
import { sqliteStore } from '../src/stores/sqlite/index.ts';
import { type Bench, benchOn, crowd, fill, next, staggered, workMs } from './calls.ts';
import { compare, many, one } from './compare.ts';
import { countPerCall, countStatements, timeTransactions } from './counted.ts';
import { effects } from './effects.ts';
import { type LedgerFolder, ledgerFolder } from './ledger-folder.ts';
import { measure, p99, ratio } from './measure.ts';
import { rawSqlite } from './raw-sqlite.ts';
import { atLeast, atMost, type Ratio, type Section } from './report.ts';

export async function sqlite(rounds: number): Promise<readonly Section[]> {
  using folder = ledgerFolder();
  using raw = rawSqlite(folder.path('raw.db'));
  const bench = benchOn(sqliteStore({ path: folder.path('semel.db') }));
  const { first, replay } = await compare(rounds, [
    {
      name: 'bare',
      first: (args, caller) => raw.execute(args, caller),
      again: (args) => raw.read(args),
      together: () => repeat(() => raw.executeTogether()),
    },
    { name: 'semel', first: bench.send, again: (args) => bench.send(args) },
  ]);
  await bench.close();
  const staggering = benchOn(sqliteStore({ path: folder.path('effects.db') }), { effectMs: staggered });
  return [
    {
      title: 'SQLite, synchronous=FULL, first executions',
      figures: first,
      ratios: [
        {
          what: `${many} / bare in groups of as many`,
          value: ratio(first, `semel: ${many}`, `bare: ${many}`),
          goal: atLeast(0.6),
        },
        {
          what: `${one} / two bare transactions`,
          value: ratio(first, `semel: ${one}`, `bare: ${one}`),
          goal: atLeast(0.8),
        },
        ...(await statements(folder)),
      ],
    },
    {
      title: 'SQLite, replays without a cache',
      figures: replay,
      ratios: [
        {
          what: `${one} / a bare read`,
          value: ratio(replay, `semel: ${one}`, `bare: ${one}`),
          goal: atLeast(0.6),
        },
      ],
    },
    await effects('SQLite', rounds, staggering, (caller) => raw.execute(next(), caller)),
  ];
}

/** For as long as the calls of others take. */
function repeat(work: () => number): number {
  let count = 0;
  for (const until = performance.now() + workMs; performance.now() < until; ) count += work();
  return count;
}

async function statements(folder: LedgerFolder): Promise<readonly Ratio[]> {
  const bench = benchOn(sqliteStore({ path: folder.path('counted.db') }));
  using counting = countStatements();
  const counted = await countPerCall(bench, 'statements', counting.count);
  await bench.close();
  return counted;
}

const few = 10_000;

/** A small ledger and a large one, written to in turn: by calls that have a period, and by calls that have none. */
export async function growth(rounds: number, rows: number): Promise<readonly Section[]> {
  using folder = ledgerFolder();
  let made = 0;
  // 128 conversations are under way at a time, and each makes 32 calls.
  const conversation = () => {
    made += 1;
    return (made >> 12) * 128 + (made & 127);
  };
  const sections: Section[] = [];
  for (const { name, call, goals } of [
    {
      name: 'a period',
      call: (bench: Bench) => bench.send(next(), conversation()),
      goals: { rate: atLeast(0.9), p99: { goal: atMost(10) }, bytes: { goal: atMost(400) } },
    },
    {
      name: 'no period',
      call: (bench: Bench) => bench.sendEver(next()),
      goals: { rate: atLeast(0.6), p99: {}, bytes: {} },
    },
  ]) {
    const small = await ledger(folder.path(`small, ${name}.db`), few, call);
    const large = await ledger(folder.path(`large, ${name}.db`), rows, call);
    const figures = await measure(rounds, [
      { name: 'small', run: () => crowd(() => call(small.bench)) },
      { name: 'large', run: () => crowd(() => call(large.bench)) },
    ]);
    await Promise.all([small.bench.close(), large.bench.close()]);
    sections.push({
      title: `SQLite, growth to ${rows.toLocaleString('en-US')} rows, keys with ${name}, ${many}`,
      figures,
      ratios: [
        {
          what: `rate / that at ${few.toLocaleString('en-US')} rows`,
          value: ratio(figures, 'large', 'small'),
          goal: goals.rate,
        },
        { what: `p99 of ${large.ms.length} batches, in ms`, value: p99(large.ms), ...goals.p99 },
        { what: 'p99 of a batch in the small one, in ms', value: p99(small.ms) },
        { what: 'bytes per record', value: large.bytes, ...goals.bytes },
      ],
    });
  }
  return sections;
}

async function ledger(path: string, rows: number, call: (bench: Bench) => Promise<unknown>) {
  // By more callers than are measured: the same ledger, sooner.
  const filling = benchOn(sqliteStore({ path }));
  await fill(rows, () => call(filling), 1_024);
  await filling.close();
  const bytes = statSync(path).size / rows;
  using timing = timeTransactions();
  const bench = benchOn(sqliteStore({ path }));
  await call(bench);
  timing.ms.length = 0;
  return { bench, bytes, ms: timing.ms };
}
