// Looks for one mutant: by the simulator, and where that finds nothing, by the suites that know the changed file.

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
  readonly seconds: number;
}

/** Written so that a mistake of a mutant (a loop without end) ends too. */
const longestMs = 10 * 60_000;

export async function hunt(mutant: Mutant, effort: Effort): Promise<Finding> {
  const startedAt = performance.now();
  const copy = copyTree();
  try {
    copy.apply(mutant);
    if (effort.besides !== undefined) copy.apply(effort.besides);
    const found =
      (mutant.foundBy === 'contract' ? undefined : await bySimulator(copy, effort)) ??
      (effort.suites ? await bySuites(copy, mutant) : undefined);
    const seconds = (performance.now() - startedAt) / 1_000;
    return { mutant, by: undefined, seeds: undefined, what: '', ...found, seconds };
  } finally {
    copy.remove();
  }
}

type Found = Pick<Finding, 'by' | 'seeds' | 'what'> | undefined;

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
  ['src/', 'test/library', 'test/sim/regressions'],
];

const adapters: Suite = ['src/guard', 'test/adapters'];
const mcp: Suite = ['test/mcp'];
const stateful: Suite = ['test/mcp/stateful'];
const walls: Suite = ['test/mcp/limits', 'test/mcp/attacks'];
const http: Suite = ['test/mcp/http'];
const keys: Suite = ['test/library/identity', 'src/core/period'];
const schemas: Suite = ['test/library/schema-identity', 'test/library/identity'];
const providers: Suite = [
  'src/core/provider',
  'test/providers',
  'test/library/request-key',
  'test/library/foreign-key',
];

const endings: Suite = [
  'test/library/classification',
  'test/library/honest-endings',
  'test/library/mutual-calls',
  'test/library/quiet-time',
];

const redis: Suite = [
  'test/stores/redis-batch',
  'test/stores/redis-meanwhile',
  'test/stores/redis-forgetting',
  'test/stores/redis-retention',
];

/** Who knows a part of the source: the first whose path it begins with. All other parts: `usual`. */
const nearest: Readonly<Record<string, readonly Suite[]>> = {
  'src/adapters/ai-sdk/': [['test/adapters/ai-sdk'], adapters],
  'src/adapters/anthropic/': [['test/adapters/anthropic'], adapters],
  'src/adapters/langchain/': [['test/adapters/langchain'], adapters],
  'src/adapters/openai-agents/': [['test/adapters/openai-agents'], adapters],
  'src/guard/': [adapters, mcp],
  'src/mcp/proxy/changes.ts': [stateful, mcp],
  'src/mcp/protocol/events.ts': [http, mcp],
  'src/mcp/proxy/exchange.ts': [walls, http, mcp],
  'src/mcp/handler.ts': [['test/mcp/handler'], ['test/mcp/callers'], mcp],
  'src/mcp/proxy/http.ts': [['test/mcp/callers'], walls, http, mcp],
  'src/mcp/policy/policies.ts': [['test/mcp/policies'], stateful, mcp],
  'src/mcp/proxy/questions.ts': [stateful, mcp],
  'src/mcp/protocol/held.ts': [walls, mcp],
  'src/core/json-shape.ts': [walls, mcp],
  'src/mcp/proxy/listing.ts': [walls, mcp],
  'src/mcp/protocol/messages.ts': [walls, mcp],
  'src/mcp/policy/near-arguments.ts': [walls, mcp],
  'src/mcp/proxy/sent-key.ts': [['test/mcp/provider'], mcp],
  'src/mcp/proxy/stdio.ts': [walls, mcp],
  'src/mcp/proxy/tool-calls.ts': [walls, stateful, mcp],
  'src/mcp/proxy/unread.ts': [walls, mcp],
  'src/mcp/proxy/wire.ts': [http, mcp],
  'src/mcp/': [mcp],
  'src/stores/redis/': [redis, ['test/stores/redis'], ...usual],
  'src/identity/': [['test/identity']],
  'src/cli/args/namespaces.ts': [['test/cli/namespaces']],
  'src/cli/commands/import/': [['src/cli/commands/import']],
  'src/jobs/context.ts': [['test/cli/run']],
  'src/jobs/effect.ts': [['test/cli/once'], ['test/cli']],
  'src/jobs/': [['src/jobs', 'test/cli/lives'], ['test/cli']],
  'src/providers/': [providers, ...usual],
  'src/core/caller.ts': [['test/mcp/callers']],
  'src/ledger/audit.ts': [['test/library/cached-replay', 'test/library/events'], ...usual],
  'src/ledger/cache.ts': [['test/library/cached-replay', 'test/library/time', 'src/call/sharing'], ...usual],
  'src/semel/asker.ts': [['test/library/cached-replay', 'test/library/ambient'], ...usual],
  'src/semel/call-of.ts': [['test/library/cached-replay'], keys, ...usual],
  'src/semel/periods.ts': [['test/library/cached-replay'], keys, ...usual],
  'src/core/identity-text.ts': [['src/core/identity-text'], keys],
  'src/core/contract.ts': [['test/library/quiet-time'], keys, ...usual],
  'src/core/provider.ts': [providers, ...usual],
  'src/cli/render/json-text.ts': [['src/cli/render/json-text']],
  'src/core/visible.ts': [['src/core/visible']],
  'src/cli/commands/mcp.ts': [['test/mcp/callers']],
  'src/cli/caller.ts': [['test/cli/caller']],
  'src/semel/ambient.ts': [['test/library/callers'], ['test/library/ambient']],
  'src/store/address.ts': [['src/store/address']],
  'src/semel/application.ts': [['test/library/namespace']],
  'src/semel/roots.ts': [['test/library/namespace']],
  'src/store/files.ts': [['test/cli/local-users']],
  'src/store/remote/driver.ts': [['src/store/remote/driver']],
  'src/core/codec.ts': [['src/core', 'test/library/results', 'test/library/cached-replay'], ...usual],
  'src/core/identity.ts': [schemas, ...usual],
  'src/core/plain.ts': [keys, ...usual],
  'src/semel/sweep.ts': [['test/library/doubt'], ...usual],
  'src/semel/schema-': [schemas],
  'src/rules/forms.ts': [['test/library/rolling-deploy'], ...usual],
  'src/semel/validation.ts': [schemas, ...usual],
  'src/call/attempt.ts': [['test/library/foreign-key', 'test/library/request-key'], ...usual],
  'src/stores/sqlite/': [['test/stores/sqlite'], ...usual],
  'src/stores/postgres/': [['test/stores/postgres'], ...usual],
  'src/call/requests.ts': [providers, ...usual],
  'src/call/doubt.ts': [['test/library/doubt'], ...usual],
  'src/call/execute.ts': [endings, ...usual],
  'src/call/sharing.ts': [endings, ...usual],
  'src/call/receipt.ts': [endings, ...usual],
  'src/call/run-tool.ts': [endings, ['test/library'], ...usual],
  'src/core/classify.ts': [endings, ...usual],
  'src/semel/begin.ts': [endings, ...usual],
  'src/call/modes/original-turn.ts': [['test/library/first-turn'], ...usual],
  'src/call/request-key.ts': [providers, ...usual],
};

function suitesFor({ changes }: Mutant): readonly Suite[] {
  const known = changes.map(
    ({ file }) => Object.entries(nearest).find(([start]) => file.startsWith(start))?.[1] ?? usual,
  );
  return [...new Set(known.flat())];
}

async function bySuites(copy: Copy, mutant: Mutant): Promise<Found> {
  for (const suite of suitesFor(mutant)) {
    const found = await bySuite(copy, suite);
    if (found !== undefined) return found;
  }
  return undefined;
}

async function bySuite(copy: Copy, suite: Suite): Promise<Found> {
  const file = join(copy.folder, 'report.json');
  const reporter = ['--reporter=json', `--outputFile=${file}`];
  const vitest = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--bail=1',
    '--maxWorkers=1',
    ...reporter,
    ...suite,
  ];
  const { code, errors, isOver } = await run(copy, vitest);
  if (!isOver) return { by: 'contract', seeds: undefined, what: 'a suite does not end' };
  if (code === 0) return undefined;
  let report: SuiteReport;
  try {
    report = JSON.parse(readFileSync(file, 'utf8')) as SuiteReport;
  } catch {
    throw new Error(`The suites did not run:\n${errors.slice(-2_000)}`);
  }
  const failed = report.testResults.flatMap(({ name, message, assertionResults }) => {
    const titles = assertionResults.filter(({ status }) => status === 'failed').map(({ title }) => title);
    const where = name.slice(copy.folder.length + 1).replace('.test.ts', '');
    if (titles.length > 0) return titles.map((title) => `${where}: ${title}`);
    return message === '' ? [] : [`${where}: ${message.split('\n', 1)[0]}`];
  });
  return { by: 'contract', seeds: undefined, what: failed[0] ?? 'a suite fails' };
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

function run({ folder }: Copy, args: readonly string[]): Promise<Ran> {
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
    }, longestMs);
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
