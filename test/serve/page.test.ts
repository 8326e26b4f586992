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

const command = process.env.SEMEL_BUILT_COMMAND ?? '';
const page = readFileSync(join(import.meta.dirname, '../../docs/reference/http-api.md'), 'utf8');
const hasCurl = spawnSync('curl', ['--version']).status === 0;
if (!hasCurl) console.log('skipped: the curl examples of docs/reference/http-api.md: there is no curl');

interface Answer {
  readonly attempt?: string;
  readonly lock?: string;
  readonly items?: readonly { readonly ref: string }[];
}

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
  const [serve = '', begin = '', settle = '', job = '', doubt = '', tokens = ''] = blocks('sh').map((text) =>
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

  /** Types a block line by line; what stands in angle brackets is filled in from the answers so far. */
  const typeLines = async (block: string, known: Record<string, string>, learn: (answer: Answer) => void) => {
    let last: Answer = {};
    for (const line of block.trim().split('\n')) {
      const filled = line.replaceAll(/<([^>]+)>/g, (_, name: string) => known[name] ?? `no ${name}`);
      last = JSON.parse(await type(`${setUp}\n${filled}`));
      learn(last);
    }
    return last;
  };
  const run: Record<string, string> = {};
  const released = await typeLines(job, run, ({ attempt = '', lock }) => {
    if (lock !== undefined) Object.assign(run, { lock, 'attempt of the run': attempt });
    else if (attempt !== '') run['attempt of the step'] = attempt;
  });
  expect(released).toMatchObject({ outcome: 'settled', recorded: true });
  const again = JSON.parse(await type(`${setUp}\n${job.split('\n')[0]}`));
  expect(again).toMatchObject({ outcome: 'skipped', value: { value: 'News' } });
  const seen: Record<string, string> = {};
  const decided = await typeLines(doubt, seen, ({ attempt, items }) => {
    if (attempt !== undefined) seen.attempt = attempt;
    if (items?.[0] !== undefined) seen.ref = items[0].ref;
  });
  expect(decided).toMatchObject({ record: { status: 'succeeded' } });
  expect(JSON.parse(await type(`${setUp}\n${doubt.split('\n')[0]}`))).toMatchObject({
    value: { id: 're_2' },
  });

  const [create = ''] = tokens.split('\n');
  const made = spawnSync(process.execPath, [command, ...create.split(' ').slice(1)], { cwd: home, env });
  expect(made.stdout.toString()).toMatch(/^semel_\S{40,}\n$/);
});
