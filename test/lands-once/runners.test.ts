// landsOnce knows no test runner: it returns or throws, under all of them.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSemel } from 'semel';
import { landsOnce } from 'semel/testing';
import { expect, test } from 'vitest';
import { rightTool, wrongTool } from './runners/smoke.ts';

const root = join(import.meta.dirname, '../..');
const runners = join(import.meta.dirname, 'runners');
const fix = 'Fix: `reason` is identity: name it in `content`.';

test('under vitest', async () => {
  await rightTool({ createSemel, landsOnce });
  await expect(wrongTool({ createSemel, landsOnce })).rejects.toThrow(fix);
});

test('under node:test', async () => {
  const { code, output } = await run(['--test', '--test-reporter=spec', join(runners, 'node-test.ts')], root);
  expect(output).toContain('✔ a right tool lands once');
  expect(output).toContain('✖ a wrong tool fails');
  expect(output).toContain(fix);
  expect(code).toBe(1);
});

// Jest is 55 MB in 278 packages, for this one test: it is not among the devDependencies. To run it, on the built
// package: npm i --prefix /tmp/jest jest && npm run build && SEMEL_JEST=/tmp/jest npx vitest run test/lands-once
const jestFolder = process.env.SEMEL_JEST;
test.skipIf(jestFolder === undefined)('under jest (set SEMEL_JEST to where it is installed)', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'semel-jest-'));
  try {
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(root, join(folder, 'node_modules/semel'));
    for (const file of ['smoke', 'jest']) {
      const text = stripTypeScriptTypes(readFileSync(join(runners, `${file}.ts`), 'utf8'));
      writeFileSync(join(folder, `${file}.mjs`), text.replace('./smoke.ts', './smoke.mjs'));
    }
    const config = { testMatch: ['**/jest.mjs'], moduleFileExtensions: ['js', 'mjs'], transform: {} };
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'jest-smoke', jest: config }));
    const jest = join(jestFolder ?? '', 'node_modules/jest/bin/jest.js');
    const { code, output } = await run(['--experimental-vm-modules', jest, '--verbose'], folder);
    expect(output).toContain('✓ a right tool lands once');
    expect(output).toContain('✕ a wrong tool fails');
    expect(output).toContain(fix);
    expect(code).toBe(1);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** Without what vitest tells its children, which other runners would take for theirs. */
function run(args: string[], cwd: string): Promise<{ code: number | null; output: string }> {
  const { NODE_OPTIONS: _options, NODE_TEST_CONTEXT: _context, NODE_ENV: _env, ...env } = process.env;
  const child = spawn(process.execPath, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output }));
  });
}
