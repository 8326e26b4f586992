// npm run sim -- --histories N --seed S [--trace] [--stop-at-first] [--json] [--threads T]
//                [--evidence [--out file]] [--results file] [--check docs/internals/evidence/sim.md [--sample N]]
//
// History i of seed S is the history of seed S + i, so that one that failed can be run alone.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { add, type Block, blockSize, newTally } from '../test/sim/block.ts';
import { runHistory } from '../test/sim/history.ts';
import { openSeeds } from '../test/sim/open-seeds.ts';
import { runBlocks } from '../test/sim/pool.ts';
import { gapsIn, isVoid, parseEvidence, render, renderEvidence, shortest } from '../test/sim/report.ts';
import { outside } from '../test/sim/scheduler.ts';

const { values: options } = parseArgs({
  options: {
    histories: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    threads: { type: 'string', default: String(Math.min(2, availableParallelism())) },
    trace: { type: 'boolean', default: false },
    'stop-at-first': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    evidence: { type: 'boolean', default: false },
    out: { type: 'string', default: 'docs/internals/evidence/sim.md' },
    check: { type: 'string' },
    sample: { type: 'string', default: '10' },
    results: { type: 'string' },
  },
});
const seed = Number(options.seed);
const histories = Number(options.histories);
const threads = Number(options.threads);
if (![seed, histories, threads].every((number) => Number.isSafeInteger(number) && number >= 0))
  throw new Error('--histories, --seed and --threads take whole numbers.');

if (options.check !== undefined) await check(options.check);
else if (options.trace) await trace(seed, histories);
else await simulate();

async function simulate(): Promise<void> {
  const stopAtFirst = options['stop-at-first'];
  // The first failure is reported at once, not at the end of a block.
  const blocks = blocksOf(seed, histories, stopAtFirst ? 100 : blockSize);
  const startedAt = performance.now();
  const results = await runBlocks(blocks, { threads, stopAtFirst, onResult: showProgress(blocks.length) });
  const seconds = (performance.now() - startedAt) / 1_000;
  const tally = newTally();
  for (const result of results) add(tally, result);
  const { failures } = tally;
  const isOpen = (failure: (typeof failures)[number]) => openSeeds.get(failure.seed) === failure.invariant;
  const fresh = failures.filter((failure) => !isOpen(failure));
  const failed = fresh.length > 0 || gapsIn(tally).length > 0 || isVoid(tally);
  process.exitCode = failed ? 1 : 0;
  // For scripts/verify.ts: the whole run counts as one test.
  if (options.results !== undefined)
    writeFileSync(options.results, JSON.stringify({ passed: failed ? 0 : 1, failed: failed ? 1 : 0 }));

  if (options.json) {
    const { events, effects, told } = tally;
    const first = failures.toSorted((a, b) => a.seed - b.seed)[0];
    console.log(
      JSON.stringify({
        ok: !failed,
        histories: tally.histories,
        seconds,
        events,
        effects,
        contracts: tally.contracts.size,
        told,
        first,
        failures,
      }),
    );
    return;
  }
  console.log(render(tally, seconds));
  for (const { seed: open, invariant } of failures.filter(isOpen))
    console.log(`OPEN, and not counted as a failure (test/sim/open-seeds.ts): seed ${open}, ${invariant}`);
  const worst = shortest(fresh)[0];
  if (worst !== undefined) await trace(worst.seed, 1);
  if (!options.evidence) return;
  if (failed || failures.length > 0) throw new Error('No evidence is written of a run with violations.');
  const command = `npm run sim -- --histories ${histories} --seed ${seed} --evidence`;
  mkdirSync(dirname(options.out), { recursive: true });
  writeFileSync(options.out, renderEvidence({ command, seed, tally, seconds, threads, results }));
  console.log(`written: ${options.out}`);
}

async function trace(from: number, count: number): Promise<void> {
  Error.stackTraceLimit = 0;
  const { table, faults: faultCounts } = newTally();
  let failed = false;
  await outside(() => {
    for (let nth = 0; nth < count; nth += 1) {
      // Written as a whole: a reader who stops reading must not stop a history in its middle.
      const lines: string[] = [];
      const trace = (line: string) => void lines.push(line);
      const { violations } = runHistory({ seed: from + nth, table, faultCounts, trace });
      console.log(lines.join('\n'));
      for (const { invariant, detail } of violations) console.log(`VIOLATED ${invariant}\n  ${detail}`);
      failed ||= violations.length > 0;
    }
  });
  if (failed) process.exitCode = 1;
}

/** Runs a sample of the blocks that a page of evidence tells of, and compares. */
async function check(file: string): Promise<void> {
  const claimed = parseEvidence(readFileSync(file, 'utf8'));
  const all = blocksOf(claimed.seed, claimed.histories, blockSize);
  if (all.length === 0 || all.length !== claimed.digests.length)
    throw new Error(`${file} is no evidence of a run.`);
  const step = Math.max(1, Math.floor(all.length / Number(options.sample)));
  // Another sample each day, so that in time all are seen; the same one all day, so that a failure stays.
  const offset = Math.floor(Date.now() / 86_400_000) % step;
  const sample = all.filter((_, at) => at % step === offset);
  const results = await runBlocks(sample, { threads, stopAtFirst: false });
  const wrong = results.filter(
    ({ block, digest }) =>
      claimed.digests[all.findIndex(({ seed: first }) => first === block.seed)] !== digest,
  );
  for (const { block, digest } of wrong)
    console.log(`seeds from ${block.seed}: ${digest} is not what ${file} says`);
  const violations = results.reduce((sum, { failures }) => sum + failures.length, 0);
  const [, commit] = /^- commit: ([0-9a-f]+)/m.exec(readFileSync(file, 'utf8')) ?? [];
  if (wrong.length > 0)
    console.log(
      `It was written at commit ${commit}. Code that changed since plays other histories: check it there.`,
    );
  console.log(
    `${results.length - wrong.length} of ${results.length} blocks of ${file} are as it says; ${violations} violations`,
  );
  process.exitCode = wrong.length === 0 && violations === 0 ? 0 : 1;
}

function blocksOf(from: number, count: number, size: number): Block[] {
  const blocks: Block[] = [];
  for (let at = 0; at < count; at += size)
    blocks.push({ seed: from + at, count: Math.min(size, count - at) });
  return blocks;
}

function showProgress(total: number): () => void {
  let done = 0;
  return () => {
    done += 1;
    if (process.stderr.isTTY) process.stderr.write(`\r${Math.floor((100 * done) / total)} %`);
  };
}
