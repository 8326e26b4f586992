// A batch whose process is killed ten times: every item's effect is there once, and memory does not grow with the items.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startNode } from '../processes/node-process.ts';
import { newScratch } from '../processes/scratch.ts';
import type { BatchJob, BatchLine } from './batch-worker.ts';

const items = Number(process.env.SEMEL_BATCH_ITEMS ?? 20_000);
const kills = 10;
const worker = new URL('batch-worker.ts', import.meta.url);

function prepare(name: string, count: number) {
  const scratch = newScratch(name);
  const job: BatchJob = {
    ledger: scratch.path('ledger.db'),
    effects: scratch.path('effects.txt'),
    items: count,
    concurrency: 64,
  };
  return {
    scratch,
    job,
    landed: () => readFileSync(job.effects, 'utf8').split('\n').filter(Boolean).map(Number),
  };
}

test(`${items} items, killed ${kills} times: each effect once`, async () => {
  const { scratch, job, landed } = prepare('batch-kill', items);
  using _ = scratch;
  for (let kill = 1; kill <= kills; kill += 1) {
    const run = startNode<BatchLine>(worker, job);
    // Each run gets further than the one before it, so that no kill comes too late to matter.
    await run.line((line) => 'at' in line && line.at >= (items * kill) / (kills + 1));
    await run.kill();
  }
  // On a busy machine some items time out, and the next start settles them.
  let report: BatchLine | undefined;
  for (let starts = 0; starts < 10 && !(report !== undefined && 'ok' in report && report.ok); starts += 1) {
    const last = startNode<BatchLine>(worker, job);
    report = await last.line((line) => 'ok' in line);
    await last.ended;
  }
  expect(report).toMatchObject({ ok: true, done: items });
  const effects = landed();
  expect(effects).toHaveLength(items);
  expect(new Set(effects).size).toBe(items);
}, 600_000);

test('memory does not grow with the items', async () => {
  // SQLite's page cache takes its 64 MB with the first 200,000 items. A long run fills it with other items before it is measured;
  // a short one ends before it has grown much.
  const isLong = items > 20_000;
  const { scratch, job } = prepare('batch-memory', 2 * items);
  using _ = scratch;
  // V8 grows its heap as it likes where memory is plenty: a small one shows what is kept.
  const small = { NODE_OPTIONS: '--max-old-space-size=64 --max-semi-space-size=4' };
  const run = startNode<BatchLine>(
    worker,
    { ...job, cache: false, warmUp: isLong ? 250_000 : 0 },
    { env: small },
  );
  await run.line((line) => 'ok' in line);
  await run.ended;
  const rssAt = (share: number) => {
    const line = run.lines.find((each) => 'at' in each && each.at >= job.items * share);
    return line !== undefined && 'at' in line ? line.rss : Number.NaN;
  };
  expect(rssAt(0.9)).toBeLessThanOrEqual(1.2 * rssAt(0.2));
}, 600_000);
