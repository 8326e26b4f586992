// A web page of another origin, in a real Chromium: it reaches the API where its origin is listed, and otherwise not.

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { digestToken, startServer } from '../../src/server/index.ts';
import { memoryStore } from '../../src/store/memory.ts';

const executablePath = [process.env.SEMEL_CHROMIUM, '/usr/bin/chromium', '/usr/bin/google-chrome'].find(
  (path) => path !== undefined && existsSync(path),
);
const token = 'a-token-that-is-long-enough-to-be-one-of-them';

test.skipIf(executablePath === undefined)(
  'a page of a listed origin calls, one of another does not',
  async () => {
    const listed = await servePage();
    const other = await servePage();
    const server = await startServer({
      store: memoryStore(),
      policies: { version: 1, tools: { refund: { effect: 'irreversible', per: 'ever' } } },
      tokens: [{ name: 'ci', role: 'admin', namespace: 'shop', sha256: digestToken(token) }],
      listen: { host: '127.0.0.1', port: 0 },
      origins: [listed],
      onWarning: () => undefined,
    });
    onTestFinished(() => server.close(0));
    const browser = await chromium.launch(executablePath === undefined ? {} : { executablePath });
    onTestFinished(() => browser.close());
    const begin = async (origin: string) => {
      const page = await browser.newPage();
      await page.goto(origin);
      return page.evaluate(
        ([url, shown]) =>
          fetch(`${url}/v1/begin`, {
            method: 'POST',
            headers: { authorization: `Bearer ${shown}`, 'content-type': 'application/json' },
            body: JSON.stringify({ tool: 'refund', args: 1 }),
          }).then(
            async (answer) => [
              answer.status,
              ((await answer.json()) as { readonly outcome: string }).outcome,
            ],
            () => 'refused',
          ),
        [server.url, token] as const,
      );
    };
    expect(await begin(other)).toBe('refused');
    expect(await begin(listed)).toEqual([200, 'execute']);
  },
);

async function servePage(): Promise<string> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>another program</title>');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
