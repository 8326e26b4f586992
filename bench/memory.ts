// The path of a call without a database: the CPU time of a first execution, and replays from the cache.

import { type Args, alone, benchOn, crowd, fill, next } from './calls.ts';
import { find, measure, median } from './measure.ts';
import { atLeast, atMost, type Section } from './report.ts';

export async function memory(rounds: number): Promise<readonly Section[]> {
  const bench = benchOn('memory:', { cache: true });
  const known = Array.from({ length: 1_000 }, next);
  const kept = new Map(known.map((args) => [args.lead, JSON.stringify(args)]));
  await fill(known.length, (n) => bench.sendEver(known[n] as Args));
  /** A hundred at a time: to read the clock would take as long as a replay. */
  const hundreds = async (call: (args: Args) => Promise<unknown>) =>
    100 *
    (await alone(async (n) => {
      for (let each = 0; each < 100; each += 1) await call(known[(n * 100 + each) % known.length] as Args);
    }));
  const figures = await measure(rounds, [
    { name: 'semel: first execution, 128 callers', run: () => crowd(() => bench.sendEver(next())) },
    { name: 'semel: replay from the cache', run: () => hundreds(bench.sendEver) },
    {
      name: 'a Map and JSON.parse',
      run: () => hundreds(async ({ lead }) => JSON.parse(kept.get(lead) as string)),
    },
  ]);
  await bench.close();
  const first = find(figures, 'semel: first execution, 128 callers');
  const replay = find(figures, 'semel: replay from the cache');
  return [
    {
      title: 'Memory',
      figures,
      ratios: [
        {
          what: 'CPU per first execution, in microseconds',
          value: median(first.cpuMicros),
          goal: atMost(20),
        },
        { what: 'replays from the cache per second', value: median(replay.rates), goal: atLeast(600_000) },
      ],
    },
  ];
}
