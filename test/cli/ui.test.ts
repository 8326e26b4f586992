// `semel ui`: one command from an empty home to a page that is logged in.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
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
