// One of the processes that bench/processes.ts starts: an agent on the ledger that all of them share.
// node one-process.ts <path> <number>

import { setTimeout as sleep } from 'node:timers/promises';
import { sqliteStore } from '../src/stores/sqlite/index.ts';
import { benchOn, next } from './calls.ts';

export interface Order {
  readonly forMs: number;
  readonly thinkMs: number;
}

export interface Report {
  /** How long each call took. */
  readonly ms: readonly number[];
}

const [path, number] = process.argv.slice(2) as [string, string];
const bench = benchOn(sqliteStore({ path }));
// Warm, and the file is open.
for (let n = 0; n < 50; n += 1) await bench.send(next(), Number(number));

process.on('message', async ({ forMs, thinkMs }: Order) => {
  const ms: number[] = [];
  for (const startedAt = performance.now(); performance.now() - startedAt < forMs; ) {
    await sleep(thinkMs);
    const calledAt = performance.now();
    await bench.send(next(), Number(number));
    ms.push(performance.now() - calledAt);
  }
  tell({ ms });
});
process.on('disconnect', () => void bench.close());
tell({ ms: [] });

function tell(report: Report): void {
  process.send?.(report);
}
