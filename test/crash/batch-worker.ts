// One start of a batch on a SQLite ledger, in a process that somebody kills. An effect is a line in a file, written by one
// call of the operating system: it is there or it is not, whatever happens to this process.

import { openSync, readFileSync, writeSync } from 'node:fs';
import { createSemel, landed, notLanded } from '../../src/index.ts';

export interface BatchJob {
  readonly ledger: string;
  readonly effects: string;
  readonly items: number;
  readonly concurrency: number;
  /** Without the cache of settled records, which is bounded but not yet full after so few. */
  readonly cache?: false;
  /** Items of another batch that are done before. */
  readonly warmUp?: number;
}

export type BatchLine =
  | { readonly at: number; readonly rss: number }
  | { readonly ok: boolean; readonly done: number; readonly executed: number; readonly text: string };

const job = JSON.parse(process.argv[2] as string) as BatchJob;
const effects = openSync(job.effects, 'a');
const print = (line: BatchLine) => writeSync(1, `${JSON.stringify(line)}\n`);

async function* items(count = job.items) {
  for (let id = 0; id < count; id += 1) {
    // As a cursor does: a page, then a wait.
    if (id % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
    yield { id, text: `item ${id}` };
  }
}

let known: ReadonlySet<number> = new Set();
function hasLanded(id: number): boolean {
  if (!known.has(id))
    known = new Set(readFileSync(job.effects, 'utf8').split('\n').filter(Boolean).map(Number));
  return known.has(id);
}

const semel = createSemel({
  store: `sqlite:${job.ledger}`,
  namespace: 'batch',
  onWarning: () => undefined,
  ...(job.cache === false ? { cache: false } : {}),
});
await semel.batch(
  'warm-up',
  items(job.warmUp ?? 0),
  { id: ({ id }) => id, concurrency: job.concurrency },
  ({ id }) => id,
);
const report = await semel.batch(
  'line',
  items(),
  {
    id: ({ id }) => id,
    concurrency: job.concurrency,
    lease: '1s',
    timeout: '1s',
    verifyAfter: '1ms',
    verify: ({ id }) => (hasLanded(id) ? landed(id) : notLanded()),
    onProgress({ done }) {
      if (done % 1_000 !== 0) return;
      print({ at: done, rss: process.memoryUsage.rss() });
    },
  },
  ({ id }) => {
    writeSync(effects, `${id}\n`);
    return id;
  },
);
const { ok, done, executed } = report;
print({ ok, done, executed, text: String(report) });
await semel.close();
