// Everything CI runs, in order; stops at the first step that fails. The last line sums up tests and blocks of
// documentation as `N passed, N failed`, which is what CI reads.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { describeEvidence } from '../test/mutants/evidence.ts';

type Counts = { passed: number; failed: number };

const testResults = '.cache/verify/vitest.json';
const simResults = '.cache/verify/sim.json';
const damageResults = '.cache/verify/damage.json';
const docsResults = '.cache/verify/docs.json';

const steps = [
  { name: 'lint' },
  { name: 'types' },
  { name: 'build' },
  {
    name: 'test',
    args: ['--reporter=default', '--reporter=json', `--outputFile.json=${testResults}`],
    counts: () => {
      const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(testResults, 'utf8'));
      return { passed: numPassedTests, failed: numFailedTests };
    },
    results: testResults,
  },
  {
    name: 'sim',
    args: ['--histories=30000', '--seed=1', `--results=${simResults}`],
    counts: (): Counts => JSON.parse(readFileSync(simResults, 'utf8')),
    results: simResults,
  },
  {
    name: 'damage',
    args: ['--trials=12', '--seed=1', '--no-evidence', `--results=${damageResults}`],
    counts: (): Counts => JSON.parse(readFileSync(damageResults, 'utf8')),
    results: damageResults,
  },
  // Prints how long the path of a call is; the numbers fail nothing.
  { name: 'trace', args: ['--summary'] },
  { name: 'exports:check' },
  { name: 'quick-start' },
  {
    name: 'docs:check',
    args: [`--results=${docsResults}`],
    counts: (): Counts => JSON.parse(readFileSync(docsResults, 'utf8')),
    results: docsResults,
  },
];

rmSync('.cache/verify', { recursive: true, force: true });
mkdirSync('.cache/verify', { recursive: true });

const total: Counts = { passed: 0, failed: 0 };
const times: string[] = [];
for (const step of steps) {
  console.log(`\n── ${step.name}`);
  const startedAt = performance.now();
  const run = spawnSync('npm', ['run', '--silent', step.name, '--', ...(step.args ?? [])], {
    stdio: 'inherit',
  });
  times.push(`${step.name} ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);

  const { passed, failed }: Counts =
    step.counts && existsSync(step.results) ? step.counts() : { passed: 0, failed: 0 };
  total.passed += passed;
  total.failed += failed;
  if (run.status !== 0) {
    // A step can fail without a failed test: a lint error, a crash, an unhandled rejection.
    if (failed === 0) total.failed += 1;
    console.log(`\n${step.name} failed`);
    break;
  }
}

console.log(`\n${times.join(', ')}`);
// Fails nothing: the evidence is written by a hunt of hours, now and then.
console.log(describeEvidence());
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 ? 0 : 1;
