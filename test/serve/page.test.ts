// The commands of docs/reference/http-api.md, typed as they stand there: with a port and a home of their own.

import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../servers/free-port.ts';

const command = join(import.meta.dirname, '../../dist/lib/semel.cjs');
const page = readFileSync(join(import.meta.dirname, '../../docs/reference/http-api.md'), 'utf8');
const hasCurl = spawnSync('curl', ['--version']).status === 0;
if (!hasCurl) console.log('skipped: the curl examples of docs/reference/http-api.md: there is no curl');

function blocks(language: string): string[] {
  const fences = page.matchAll(/^```(\w+)[^\n]*\n([\s\S]*?)^```$/gm);
  return [...fences].flatMap(([, written, text = '']) => (written === language ? [text] : []));
}

test.skipIf(!hasCurl)('the examples start a server, execute a call and replay it', async () => {
  const home = mkdtempSync(join(tmpdir(), 'semel-http-page-'));
  const port = String(await freePort());
  const env = { PATH: process.env.PATH, HOME: home };
  const type = async (script: string) =>
    (await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { cwd: home, env })).stdout;
  const [policies = ''] = blocks('json');
  const [serve = '', begin = '', settle = '', tokens = ''] = blocks('sh').map((text) =>
    text.replaceAll('8971', port),
  );
  writeFileSync(join(home, 'semel.policy.json'), policies);

  const args = serve.trim().split(' ').slice(1);
  const server = spawn(process.execPath, [command, ...args, '--port', port], {
    cwd: home,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(async () => {
    if (server.exitCode === null && server.kill('SIGKILL')) await once(server, 'exit');
    rmSync(home, { recursive: true, force: true });
  });
  for await (const line of createInterface({ input: server.stderr })) if (line.includes('token in')) break;

  const first = JSON.parse(await type(begin));
  expect(first).toMatchObject({ outcome: 'execute', args: { payment: 'p1' } });
  const setUp = begin.slice(0, begin.indexOf('\napi begin'));
  const settled = await type(`${setUp}\n${settle.replace('…', first.attempt)}`);
  expect(JSON.parse(settled)).toMatchObject({ outcome: 'settled', recorded: true });
  expect(JSON.parse(await type(begin))).toMatchObject({ outcome: 'replay', value: { id: 're_1' } });

  const [create = ''] = tokens.split('\n');
  const made = spawnSync(process.execPath, [command, ...create.split(' ').slice(1)], { cwd: home, env });
  expect(made.stdout.toString()).toMatch(/^semel_\S{40,}\n$/);
});
