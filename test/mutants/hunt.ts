// Looks for one mutant: by the simulator or the test file that it names, and by no other: a mutant that only a neighbour sees
// is missed. Where a mutant names none (`contract`), the suites near the changed file are asked.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Copy, copyTree } from './copy.ts';
import type { Mutant } from './mutant.ts';

export interface Effort {
  readonly histories: number;
  readonly seed: number;
  /** Also ask the suites. */
  readonly suites: boolean;
  /** Which test found a mutant the last time, by the mutant's name. */
  readonly titles?: ReadonlyMap<string, string>;
  /** Changes the tree besides: the empty checker. */
  readonly besides?: Mutant;
}

export interface Finding {
  readonly mutant: Mutant;
  readonly by: 'sim' | 'contract' | undefined;
  /** Histories until the first violation. */
  readonly seeds: number | undefined;
  /** The invariant, or the name of the test. */
  readonly what: string;
  /** The test file that found it. */
  readonly file?: string | undefined;
  readonly seconds: number;
}

/** Written so that a mistake of a mutant (a loop without end) ends too. */
const longestMs = 10 * 60_000;
/** Whole suites take longer than that by themselves where the machine is busy. */
const longestSuitesMs = 40 * 60_000;

export async function hunt(mutant: Mutant, effort: Effort): Promise<Finding> {
  const startedAt = performance.now();
  const copy = copyTree();
  try {
    copy.apply(mutant);
    if (effort.besides !== undefined) copy.apply(effort.besides);
    const found =
      mutant.foundBy === 'sim'
        ? await bySimulator(copy, effort)
        : effort.suites
          ? await bySuites(copy, mutant, effort.titles?.get(mutant.name))
          : undefined;
    const seconds = (performance.now() - startedAt) / 1_000;
    return { mutant, by: undefined, seeds: undefined, what: '', ...found, seconds };
  } finally {
    copy.remove();
  }
}

type Found = Pick<Finding, 'by' | 'seeds' | 'what' | 'file'> | undefined;

interface SimReport {
  readonly ok: boolean;
  readonly histories: number;
  readonly first?: { readonly seed: number; readonly invariant: string };
}

async function bySimulator(copy: Copy, { histories, seed }: Effort): Promise<Found> {
  const options = ['--histories', `${histories}`, '--seed', `${seed}`, '--threads', '1'];
  const args = ['scripts/sim.ts', ...options, '--stop-at-first', '--json'];
  const { output, errors, isOver } = await run(copy, args);
  if (!isOver) return { by: 'sim', seeds: undefined, what: 'STUCK: a history does not end' };
  const line = output.split('\n').find((each) => each.startsWith('{'));
  if (line === undefined) throw new Error(`The simulator did not run:\n${errors.slice(-2_000)}`);
  const report = JSON.parse(line) as SimReport;
  if (report.first !== undefined)
    return { by: 'sim', seeds: report.first.seed - seed + 1, what: report.first.invariant };
  if (report.ok) return undefined;
  return { by: 'sim', seeds: report.histories, what: 'void: too little of it succeeds' };
}

interface SuiteReport {
  readonly numTotalTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly title: string }[];
  }[];
}

/** Folders and files of tests, asked together. */
type Suite = readonly string[];

/** The store contract and what belongs to it first: where that finds something, the rest need not be asked. */
const usual: readonly Suite[] = [
  ['test/stores', 'test/sim/far'],
  ['src/', 'test/library', 'test/sim/regressions', 'test/providers'],
];

/** Which suites know a part of the source: the first whose path it begins with. All other parts: `usual`. */
const nearest: Readonly<Record<string, readonly Suite[]>> = {
  'src/adapters/': [['src/guard', 'test/adapters']],
  'src/guard/': [['src/guard', 'test/adapters'], ['test/mcp']],
  'src/mcp/': [['src/mcp', 'test/mcp']],
  'src/identity/': [['test/identity']],
  'src/jobs/': [['src/jobs', 'test/cli']],
  'src/cli/': [['src/cli', 'test/cli', 'test/mcp']],
  'src/stores/sqlite/': [['test/stores/sqlite'], ...usual],
  'src/stores/postgres/': [['test/stores/postgres'], ...usual],
  'src/stores/redis/': [['test/stores/redis'], ...usual],
  'src/store/cells/': [['test/stores/cells']],
  'src/store/aws/': [['src/store/aws', 'test/stores/dynamodb-open']],
  'src/stores/dynamodb/': [['test/stores/dynamodb']],
  'src/stores/s3/': [['test/stores/s3']],
  'src/semel/': [['src/semel', 'test/library'], ...usual],
  'src/core/': [['src/core', 'test/library'], ...usual],
};

/** A test file takes seconds; the suites near the changed files take minutes. */
function suitesFor({ foundBy, changes }: Mutant): readonly Suite[] {
  if (foundBy.endsWith('.test.ts')) return [[foundBy]];
  const near = changes.map(
    ({ file }) => Object.entries(nearest).find(([start]) => file.startsWith(start))?.[1] ?? usual,
  );
  return [...new Set(near.flat())];
}

async function bySuites(copy: Copy, mutant: Mutant, title: string | undefined): Promise<Found> {
  // By itself, the test that found it the last time takes a part of what its file takes.
  if (mutant.foundBy.endsWith('.test.ts') && title !== undefined) {
    const again = await bySuite(copy, [mutant.foundBy], title).catch(() => undefined);
    if (again !== undefined) return again;
  }
  for (const suite of suitesFor(mutant)) {
    const found = await bySuite(copy, suite);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isOneFile(suite: Suite): boolean {
  return suite.length === 1 && suite[0]?.endsWith('.test.ts') === true;
}

async function bySuite(copy: Copy, suite: Suite, title?: string): Promise<Found> {
  const file = join(copy.folder, 'report.json');
  const reporter = ['--reporter=json', `--outputFile=${file}`];
  const vitest = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--bail=1',
    '--maxWorkers=1',
    ...reporter,
    ...(title === undefined ? [] : ['-t', title.replace(/[\^$.*+?()[\]{}|]/g, '\\$&')]),
    ...suite,
  ];
  const mayTakeMs = isOneFile(suite) ? longestMs : longestSuitesMs;
  const { code, errors, isOver } = await run(copy, vitest, mayTakeMs);
  if (!isOver) {
    if (!isOneFile(suite))
      throw new Error(`${suite.join(', ')}: not finished after ${mayTakeMs / 60_000} minutes.`);
    return { by: 'contract', seeds: undefined, what: `${suite[0]} does not end` };
  }
  if (code === 0) return undefined;
  let report: SuiteReport;
  try {
    report = JSON.parse(readFileSync(file, 'utf8')) as SuiteReport;
  } catch {
    throw new Error(`The suites did not run:\n${errors.slice(-2_000)}`);
  }
  const failed = report.testResults.flatMap(({ name, message, assertionResults }) => {
    const titles = assertionResults.filter(({ status }) => status === 'failed').map(({ title }) => title);
    if (titles.length === 0 && message !== '') titles.push(message.split('\n', 1)[0] as string);
    return titles.map((title) => ({ file: name.slice(copy.folder.length + 1), title }));
  });
  const [first] = failed;
  // Not a finding: without this, whatever keeps the tests from starting would "find" every mutant.
  if (first === undefined && report.numTotalTests === 0)
    throw new Error(`No test of ${suite.join(', ')} ran:\n${errors.slice(-2_000)}`);
  if (first === undefined) return { by: 'contract', seeds: undefined, what: 'a suite fails' };
  const what = `${first.file.replace('.test.ts', '')}: ${first.title}`;
  return { by: 'contract', seeds: undefined, what, file: first.file };
}

interface Ran {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
  readonly isOver: boolean;
}

const children = new Set<ChildProcess>();
// Whoever stops the hunt stops what it started.
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

function run({ folder }: Copy, args: readonly string[], mayTakeMs = longestMs): Promise<Ran> {
  return new Promise((resolve, reject) => {
    // A snapshot of the schema would see every change of it; what is asked is who sees what the change does.
    const env = { ...process.env, UPDATE_SCHEMA: '1' };
    const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    children.add(child);
    let output = '';
    let errors = '';
    let isOver = true;
    const timer = setTimeout(() => {
      isOver = false;
      child.kill('SIGKILL');
    }, mayTakeMs);
    child.stdout.on('data', (text) => {
      output += String(text);
      // It has said what it found: whatever a mutant keeps open need not be waited for.
      if (/^\{.*\}$/m.test(output)) child.kill('SIGKILL');
    });
    child.stderr.on('data', (text) => {
      errors += String(text);
    });
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      children.delete(child);
      resolve({ code, output, errors, isOver });
    });
  });
}
