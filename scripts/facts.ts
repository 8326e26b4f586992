// npm run facts: plays the tests of the facts that the adapters depend on, and lists each with pass, fail or absent.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { facts } from '../test/adapters/facts.ts';

interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly title: string;
      readonly ancestorTitles: readonly string[];
      readonly status: string;
    }[];
  }[];
}

const folder = mkdtempSync(join(tmpdir(), 'semel-facts-'));
try {
  const file = join(folder, 'report.json');
  const vitest = join(import.meta.dirname, '../node_modules/vitest/vitest.mjs');
  console.error('Playing test/adapters and test/mcp …');
  spawnSync(
    process.execPath,
    [vitest, 'run', '--reporter=json', `--outputFile=${file}`, 'test/adapters', 'test/mcp'],
    {
      cwd: join(import.meta.dirname, '..'),
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  );
  const report = JSON.parse(readFileSync(file, 'utf8')) as Report;
  const played = report.testResults.flatMap((result) =>
    result.assertionResults.map(({ title, ancestorTitles, status }) => ({
      names: [...ancestorTitles, title],
      status,
    })),
  );
  let failed = 0;
  for (const { number, fact, absent } of facts) {
    const tests = played.filter(({ names }) => names.some((name) => name.startsWith(`${number} `)));
    const bad = tests.filter(({ status }) => status !== 'passed');
    const isPassed = tests.length > 0 && bad.length === 0;
    if (absent === undefined && !isPassed) failed += 1;
    const verdict = absent !== undefined ? `absent: ${absent}` : isPassed ? `pass (${tests.length})` : 'FAIL';
    console.log(`${number.padEnd(5)} ${fact}\n      ${verdict}`);
  }
  console.log(`\n${facts.length - failed} of ${facts.length} facts pass or have a reason.`);
  process.exitCode = failed === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
