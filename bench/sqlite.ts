// semel on SQLite with full durability, against node:sqlite alone.

import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { createSemel } from '../src/index.ts';
import { type SqliteLike, sqliteStore } from '../src/stores/sqlite/index.ts';
import { type Bare, bare } from './bare.ts';
import { ledgerFolder } from './ledger-folder.ts';
import { type Figure, measure } from './measure.ts';
import type { Section } from './report.ts';

export interface Sizes {
  readonly rounds: number;
  /** Rows of the small and of the large ledger. */
  readonly few: number;
  readonly many: number;
}

const result = { id: 'm-1', text: 'x'.repeat(175) };
const callers = 128;

interface Args {
  readonly lead: string;
  readonly n: number;
}

interface Bench {
  /** One call of an agent in its conversation. */
  readonly send: (args: Args, conversation?: number) => Promise<typeof result>;
  readonly transactions: () => number;
  readonly close: () => Promise<void>;
}

/** One tool on one ledger; every transaction that begins is counted. */
function ledgerAt(path: string, cache: boolean): Bench {
  const database = new DatabaseSync(path, { timeout: 0 });
  let transactions = 0;
  const counting: SqliteLike = {
    prepare(sql) {
      const statement = database.prepare(sql) as unknown as ReturnType<SqliteLike['prepare']>;
      if (!sql.startsWith('BEGIN')) return statement;
      const run = statement.run.bind(statement);
      return Object.assign(statement, {
        run: () => {
          transactions += 1;
          return run();
        },
      });
    },
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
    get isTransaction() {
      return database.isTransaction;
    },
  };
  const semel = createSemel({
    // As a ledger that semel opens itself: a handle of the user's is asked twice per transaction what it has changed.
    store: sqliteStore({ path, machine: { connect: async () => counting } }),
    namespace: 'bench',
    ...(cache ? { cache: { maxAge: '1h' } } : { cache: false }),
    onWarning: () => undefined,
  });
  const send = semel.tool({
    name: 'email.send',
    effect: 'write-non-idempotent',
    per: 'turn',
    run: (_args: Args) => result,
  });
  return {
    send: (args, conversation = 0) =>
      send(args, { conversation: `conversation-${conversation}`, turn: 'turn-1' }),
    transactions: () => transactions,
    close: () => semel.close(),
  };
}

/** The keys of as many conversations as there are callers, each with a digest at its end. */
function together(limit: Bare, text: string): number {
  const rounds = 60;
  for (let round = 0; round < rounds; round += 1) {
    const keys = Array.from({ length: callers }, (_, caller) => {
      const digest = createHash('sha256').update(`${++fresh}`).digest('hex').slice(0, 32);
      return `email.send/c${String(caller).padStart(10, '0')}/${digest}`;
    });
    limit.executeTogether(keys, text);
  }
  return rounds * callers;
}

let fresh = 0;
const next = () => ({ lead: `l-${String(++fresh).padStart(9, '0')}`, n: fresh % 10 });

async function inParallel(bench: Bench, each: number): Promise<number> {
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let n = 0; n < each; n += 1) await bench.send(next(), caller);
    }),
  );
  return callers * each;
}

export async function sqlite({ rounds, few, many }: Sizes): Promise<readonly Section[]> {
  using folder = ledgerFolder();
  using limit = bare(folder.path('bare.db'));
  const guarded = ledgerAt(folder.path('semel.db'), false);
  const cached = ledgerAt(folder.path('cached.db'), true);

  const text = JSON.stringify(result);
  const known = Array.from({ length: 1000 }, next);
  let bareKey = 0;
  const bareName = () => `email.send/2026-06-19/${String(++bareKey).padStart(32, '0')}`;
  const bareKeys = known.map(bareName);
  for (const key of bareKeys) limit.execute(key, text);
  for (const bench of [guarded, cached]) for (const args of known) await bench.send(args);

  const before = guarded.transactions();
  for (let n = 0; n < 100; n += 1) await guarded.send(next());
  const perExecution = (guarded.transactions() - before) / 100;

  const one = await measure(rounds, [
    { name: 'bare: two transactions', run: () => times(300, () => limit.execute(bareName(), text)) },
    { name: 'semel: one caller', run: () => timesAsync(300, () => guarded.send(next())) },
    { name: `bare: ${callers} together`, run: () => together(limit, text) },
    { name: `semel: ${callers} callers`, run: () => inParallel(guarded, 60) },
  ]);
  const replays = await measure(rounds, [
    {
      name: 'bare: read and parse',
      run: () => times(20_000, (n) => limit.read(bareKeys[n % 1000] as string)),
    },
    {
      name: 'semel: replay from the store',
      run: () => timesAsync(20_000, (n) => guarded.send(known[n % 1000] as never)),
    },
    {
      name: 'semel: replay from the cache',
      run: () => timesAsync(50_000, (n) => cached.send(known[n % 1000] as never)),
    },
  ]);
  await guarded.close();
  await cached.close();

  const rate = (figures: readonly Figure[], name: string) =>
    figures.find((figure) => figure.name.includes(name))?.perSecond ?? 0;
  const growth = await growing(folder, rounds, few, many);
  return [
    {
      title: 'SQLite, synchronous=FULL: first executions',
      figures: one,
      ratios: [
        {
          what: 'one caller / bare',
          value: rate(one, 'one caller') / rate(one, 'two'),
          goal: { direction: 'at least', value: 0.8 },
        },
        {
          what: `${callers} callers / bare`,
          value: rate(one, 'callers') / rate(one, 'two'),
          goal: { direction: 'at least', value: 20 },
        },
        {
          what: `bare: ${callers} together / bare, to compare with`,
          value: rate(one, 'together') / rate(one, 'two'),
        },
        {
          what: 'transactions per first execution (exact)',
          value: perExecution,
          goal: { direction: 'at most', value: 2 },
        },
      ],
    },
    {
      title: 'SQLite: replays',
      figures: replays,
      ratios: [
        {
          what: 'from the store / bare read',
          value: rate(replays, 'the store') / rate(replays, 'bare'),
          goal: { direction: 'at least', value: 0.6 },
        },
        {
          what: 'from the cache / from the store',
          value: rate(replays, 'the cache') / rate(replays, 'the store'),
          goal: { direction: 'at least', value: 10 },
        },
      ],
    },
    growth,
  ];
}

/** Two ledgers, one small and one large, written to in turn. */
async function growing(
  folder: ReturnType<typeof ledgerFolder>,
  rounds: number,
  few: number,
  many: number,
): Promise<Section> {
  const small = ledgerAt(folder.path('small.db'), false);
  const large = ledgerAt(folder.path('large.db'), false);
  await inParallel(small, Math.ceil(few / callers));
  for (let done = 0; done < many; ) {
    done += await inParallel(large, Math.ceil(Math.min(100_000, many - done) / callers));
    process.stderr.write(`\r${done.toLocaleString('en-US')} of ${many.toLocaleString('en-US')} rows`);
  }
  process.stderr.write('\n');
  const figures = await measure(rounds, [
    { name: `${few.toLocaleString('en-US')} rows, ${callers} callers`, run: () => inParallel(small, 16) },
    { name: `${many.toLocaleString('en-US')} rows, ${callers} callers`, run: () => inParallel(large, 16) },
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

async function timesAsync(count: number, work: (n: number) => Promise<unknown>): Promise<number> {
  for (let n = 0; n < count; n += 1) await work(n);
  return count;
}
