// `semel ui`: one command from an empty home to a page that is logged in.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';

test('serves the page and prints a link that works once, with the role that was asked for', async () => {
  const home = mkdtempSync(join(tmpdir(), 'semel-ui-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const command = process.env.SEMEL_BUILT_COMMAND ?? '';
  const child = spawn(process.execPath, [command, 'ui', '--no-open', '--role', 'read'], {
    env: { PATH: process.env.PATH, HOME: home },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [link] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const { origin, hash } = new URL(link);
  const page = await fetch(origin);
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'");
  expect(await page.text()).toContain('/assets/app.js');
  expect((await fetch(`${origin}/assets/app.js`)).headers.get('content-type')).toContain('text/javascript');
  const redeem = () =>
    fetch(`${origin}/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code: hash.replace('#login=', '') }),
    });
  expect(await (await redeem()).json()).toMatchObject({ name: 'semel ui', role: 'read', namespace: '*' });
  expect((await redeem()).status).toBe(401);
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  expect(code).toBe(0);
});

test('a server that answers with markup instead of a code gets nothing into the page that opens', async () => {
  const home = mkdtempSync(join(tmpdir(), 'semel-ui-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ code: 'x"><script>alert(1)</script>\u001b]0;title\u0007' }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const command = process.env.SEMEL_BUILT_COMMAND ?? '';
  const child = spawn(process.execPath, [command, 'ui', '--url', `http://127.0.0.1:${port}`], {
    env: {
      PATH: process.env.PATH,
      HOME: home,
      DISPLAY: ':99',
      BROWSER: '/bin/true',
      SEMEL_TOKEN: 'a-token-that-is-long-enough-to-be-one',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (part: Buffer) => {
      said += part.toString();
    });
  const [code] = await once(child, 'close');
  const folder = join(home, '.local/state/semel');
  const pages = readdirSync(home, { recursive: true }).filter((name) => String(name).endsWith('.html'));
  expect(pages.map((name) => readFileSync(join(folder, String(name)), 'utf8'))).toEqual([]);
  expect(said).not.toContain('<script>');
  expect(said).toContain('did not answer with a code');
  expect(code).not.toBe(0);
});
