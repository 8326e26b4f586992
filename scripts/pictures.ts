// npm run pictures: takes the pictures of the dashboard in docs/images again, of a ledger made for them. Needs a Chromium
// (SEMEL_CHROMIUM, or /usr/bin/chromium).

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright-core';
import { digestToken, startServer } from '../src/server/index.ts';
import { sqliteStore } from '../src/stores/sqlite/index.ts';
import { fillNow, fillPast } from '../test/dashboard/ledger.ts';
import { bundleDashboard } from './build/dashboard.ts';

interface Picture {
  readonly name: string;
  readonly way: string;
  readonly scheme: 'light' | 'dark';
  readonly width: number;
  readonly height: number;
  /** What it waits for, and does before. */
  readonly ready: (page: Page) => Promise<unknown>;
}

const pictures: readonly Picture[] = [
  {
    name: 'dashboard-doubts-light',
    way: '/',
    scheme: 'light',
    width: 1180,
    height: 620,
    ready: (page) => page.getByText('socket hang up').first().waitFor(),
  },
  {
    name: 'dashboard-doubts-phone',
    way: '/',
    scheme: 'light',
    width: 390,
    height: 844,
    ready: (page) => page.getByText('socket hang up').first().waitFor(),
  },
  {
    name: 'dashboard-overview-dark',
    way: '/overview',
    scheme: 'dark',
    width: 1180,
    height: 760,
    async ready(page) {
      await page.locator('canvas').first().waitFor();
      await page.getByText('Counted from').waitFor();
    },
  },
  {
    name: 'dashboard-record-dark',
    way: '/',
    scheme: 'dark',
    width: 1180,
    height: 1000,
    async ready(page) {
      await page.locator('main a', { hasText: '@1' }).last().click();
      await page.getByText('Attempts').first().waitFor();
    },
  },
];

const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'semel-pictures-'));
const token = 'token-of-the-pictures-which-is-long-enough';
const path = join(folder, 'ledger.db');
const files = join(folder, 'dashboard');

await bundleDashboard(root, files);
await fillPast(path);
await fillNow(path, { isHarmless: true });
const server = await startServer({
  store: sqliteStore({ path }),
  policies: { version: 1, tools: { refund: { effect: 'irreversible', per: 'ever', identity: ['payment'] } } },
  mayDefine: false,
  tokens: [{ name: 'local', role: 'admin', namespace: '*', sha256: digestToken(token) }],
  version: '0.0.0',
  listen: { host: '127.0.0.1', port: 0 },
  dashboard: files,
  onWarning: () => undefined,
});
const browser = await chromium.launch({ executablePath: process.env.SEMEL_CHROMIUM ?? '/usr/bin/chromium' });
try {
  for (const { name, way, scheme, width, height, ready } of pictures) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
    const page = await context.newPage();
    await page.goto(`${server.url}${way}#login=${await makeCode()}`);
    await page.waitForSelector('main h1');
    // The namespace that has something to show.
    const namespaces = page.locator('header select');
    if ((await namespaces.count()) > 0) await namespaces.selectOption('shop');
    await ready(page);
    await page.mouse.move(0, 0);
    await page.screenshot({ path: join(root, 'docs/images', `${name}.png`) });
    console.log(`docs/images/${name}.png`);
    await context.close();
  }
} finally {
  await browser.close();
  await server.close(0);
  rmSync(folder, { recursive: true, force: true });
}

async function makeCode(): Promise<string> {
  const answer = await fetch(`${server.url}/v1/logins`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: '{}',
  });
  return ((await answer.json()) as { readonly code: string }).code;
}
