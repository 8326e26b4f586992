// The dashboard in a real Chromium, against a real server on a real ledger.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { bundleDashboard } from '../../scripts/build/dashboard.ts';
import { createSemel } from '../../src/index.ts';
import { digestToken, type RunningServer, startServer } from '../../src/server/index.ts';
import { createWatch, slackTarget } from '../../src/signals/index.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { fillCrowd, fillNow, fillOutbox, fillPast, hostile } from './ledger.ts';

const executablePath = [process.env.SEMEL_CHROMIUM, '/usr/bin/chromium', '/usr/bin/google-chrome'].find(
  (path) => path !== undefined && existsSync(path),
);
if (executablePath === undefined)
  console.warn(
    'SKIPPED: the dashboard was not tested, because there is no Chromium. Install it, or set SEMEL_CHROMIUM.',
  );

const root = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'semel-dashboard-'));
const path = join(folder, 'ledger.db');
const files = join(folder, 'dashboard');
const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const secret = (name: string) => `token-of-${name}-which-is-long-enough-to-be-one`;
const token = (name: string, role: 'read' | 'admin', namespace: string) => ({
  ...{ name, role, namespace },
  sha256: digestToken(secret(name)),
});

/** More than a page, and than a batch of decisions. */
const crowd = 620;

let server: RunningServer;
let browser: Browser;
let context: BrowserContext | undefined;

beforeAll(async () => {
  await bundleDashboard(root, files);
  if (executablePath === undefined) return;
  await fillPast(path);
  await fillNow(path);
  server = await startServer({
    store: sqliteStore({ path }),
    policies: { version: 1 },
    mayDefine: false,
    tokens: [token('operator', 'admin', '*'), token('reader', 'read', 'shop')],
    version: '0.0.0',
    listen: { host: '127.0.0.1', port: 0 },
    dashboard: files,
    onWarning: () => undefined,
  });
  browser = await chromium.launch({ executablePath });
});

afterEach(async () => {
  await context?.close();
  context = undefined;
});

afterAll(async () => {
  await browser?.close();
  await server?.close(0);
  rmSync(folder, { recursive: true, force: true });
});

interface Opened {
  readonly page: Page;
  /** What the page asked other servers for, and what it complained about. */
  readonly complaints: string[];
}

async function open(way: string, who = 'operator', options: object = {}): Promise<Opened> {
  context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(server.url)) complaints.push(request.url());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  const response = await fetch(`${server.url}/v1/logins`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret(who)}`, 'content-type': 'application/json' },
    body: '{}',
  });
  const { code } = (await response.json()) as { code: string };
  await page.goto(`${server.url}${way}#login=${code}`);
  await page.waitForSelector('main h1');
  return { page, complaints };
}

/** Serious findings of axe, as one line each. */
async function findings(page: Page): Promise<readonly string[]> {
  // Trusted types refuse a script from a test as well, so that axe runs in a world of its own.
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send('Page.getFrameTree');
  const { executionContextId } = await session.send('Page.createIsolatedWorld', {
    frameId: frameTree.frame.id,
  });
  const evaluate = (expression: string) =>
    session.send('Runtime.evaluate', {
      expression,
      contextId: executionContextId,
      awaitPromise: true,
      returnByValue: true,
    });
  await evaluate(readFileSync(axe, 'utf8'));
  const { result } = await evaluate(
    'axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations.map(({ id, impact, nodes }) => ({ id, impact, where: nodes[0].html })))',
  );
  const found = result.value as readonly { id: string; impact: string; where: string }[];
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, where }) => `${id}: ${where}`);
}

test('the files are small, and name nothing outside but what links lead to', () => {
  const names = ['index.html', 'app.js', 'app.css', 'theme.js', 'icon.svg'];
  const zipped = names.reduce((sum, name) => sum + gzipSync(readFileSync(join(files, name))).length, 0);
  expect(zipped).toBeLessThanOrEqual(150_000);
  expect(statSync(join(files, 'app.js')).size).toBeGreaterThan(1_000);
  for (const name of names) {
    // Names of XML, and where a person may go by a link.
    const outside =
      readFileSync(join(files, name), 'utf8').match(
        /https?:\/\/(?!www\.w3\.org\/|dashboard\.stripe\.com\/search)[\w.]+/g,
      ) ?? [];
    expect([name, outside]).toEqual([name, []]);
  }
  expect(readFileSync(join(files, 'index.html'), 'utf8')).not.toMatch(/<script>|<style|style=|\son\w+=/);
});

describe.skipIf(executablePath === undefined)('in Chromium', () => {
  test('starts at what is in doubt, and the code leaves the address', async () => {
    const { page, complaints } = await open('/');
    await page.waitForURL(/\/doubts\?ns=shop$/);
    expect(await page.locator('h1').textContent()).toBe('In doubt');
    expect(await page.locator('.group h2').allTextContents()).toEqual(['mail.send3', 'refund3']);
    expect(await page.locator('.command code').textContent()).toBe('semel doubt --namespace shop');
    expect(await page.title()).toContain('(6)');
    expect(await page.evaluate('document.cookie')).toBe('');
    // Another tab of this origin gets the session, and a reload keeps it.
    await page.reload();
    await page.waitForSelector('.group');
    const other = await context!.newPage();
    await other.goto(`${server.url}/overview?ns=shop`);
    await other.waitForSelector('.headline');
    expect(complaints).toEqual([]);
  });

  test.each([
    ['/doubts', '.group', 'light'],
    ['/overview', '.headline', 'dark'],
    ['/jobs', '.jobs', 'light'],
    ['/outbox', '.empty', 'dark'],
    ['/search?q=p-1', '.results li', 'light'],
  ] as const)(
    '%s shows itself, asks nobody else, and can be used by everyone (%s, %s)',
    async (way, sign, colorScheme) => {
      const { page, complaints } = await open(`${way}${way.includes('?') ? '&' : '?'}ns=shop`, 'operator', {
        colorScheme,
      });
      await page.waitForSelector(sign);
      expect(await page.locator('.command code').count()).toBe(1);
      expect(await findings(page)).toEqual([]);
      expect(complaints).toEqual([]);
      await page.setViewportSize({ width: 390, height: 780 });
      // On a phone nothing is wider than the screen.
      await expect.poll(() => page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
    },
  );

  test('one box answers whether it happened, and a record tells its story', async () => {
    const { page, complaints } = await open('/overview?ns=shop');
    await page.keyboard.press('/');
    await page.keyboard.type('call_8f31c2');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.results li');
    expect(await page.locator('.results').textContent()).toContain('Yes, it landed');
    expect(await page.locator('.notice').last().textContent()).toMatch(/^Searched all \d+ records\./);
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.record');
    const text = await page.locator('.record').textContent();
    expect(text).toContain('claim: attempt 1 starts');
    expect(text).toContain('"id": "re_p-1"');
    const link = page.getByRole('link', { name: 'Open it at Stripe' });
    expect(await link.getAttribute('href')).toBe('https://dashboard.stripe.com/search?query=re_p01Qk3PZ2x8');
    expect(text).toContain('turn t-2');
    expect(text).toContain('other wording in reason');
    expect(await page.locator('.command code').textContent()).toMatch(/^semel show \w+ --namespace shop$/);
    expect(await findings(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await page.goto(`${server.url}/search?q=no-such-thing&ns=shop`);
    await page.waitForSelector('.empty');
    expect(await page.locator('.empty').textContent()).toContain('No record of shop has this.');
  });

  test('a search goes on by itself, and never says "no" of a part', async () => {
    const { page } = await open('/overview?ns=shop');
    let parts = 0;
    let isHeld = true;
    const waiting: (() => void)[] = [];
    await page.route('**/v1/search**', async (route) => {
      parts += 1;
      const last = parts === 30;
      if (parts === 12 && isHeld) await new Promise<void>((resolve) => waiting.push(resolve));
      await route.fulfill({
        json: { matches: [], looked: 10_000, isNewest: true, ...(last ? {} : { next: String(parts) }) },
      });
    });
    await page.goto(`${server.url}/search?q=zebra&ns=shop`);
    const notice = page.locator('.notice');
    await notice.getByText('Searched the newest 110,000 records so far').waitFor();
    expect(await page.locator('.empty').count()).toBe(0);
    await page.locator('button', { hasText: 'Stop' }).click();
    isHeld = false;
    for (const free of waiting) free();
    await page.locator('button', { hasText: 'Search older records' }).waitFor();
    expect(await notice.textContent()).toContain('Searched only the newest 120,000 records.');
    expect(await page.locator('.empty .title').textContent()).toContain('only a part of the ledger');
    await page.locator('button', { hasText: 'Search older records' }).click();
    await notice.getByText('Searched all 300,000 records.').waitFor();
    expect(await page.locator('.empty .title').textContent()).toBe('No record of shop has this.');
  });

  test('a link of an alert leads to its record', async () => {
    const semel = createSemel({ store: sqliteStore({ path }), namespace: 'shop', prune: false });
    const [first] = (await semel.doubts.list({ contract: 'refund' })).items;
    await semel.close();
    const { page } = await open(`/?namespace=shop&q=${first!.id}`);
    await page.waitForSelector('.record');
    expect(await page.locator('h1').textContent()).toContain(first!.ref);
    expect(await page.locator('main').textContent()).toContain('Nobody knows: it may have landed');
    expect(new URL(page.url()).searchParams.get('key')).toBe(first!.key);
  });

  test('the outbox has a tab once something is staged, and pages', async () => {
    const { page: before } = await open('/overview?ns=shop');
    expect(await before.locator('nav a', { hasText: 'Outbox' }).count()).toBe(0);
    await context?.close();
    await fillOutbox(path, 60);
    const { page, complaints } = await open('/overview?ns=shop');
    await page.locator('nav a', { hasText: 'Outbox' }).click();
    await page.waitForSelector('.rows li');
    expect(await page.locator('.rows li').count()).toBe(50);
    expect(await findings(page)).toEqual([]);
    await page.locator('a', { hasText: 'Next rows' }).click();
    await expect.poll(() => page.locator('.rows li').count()).toBe(10);
    await page.locator('a', { hasText: 'dead' }).click();
    await expect.poll(() => page.locator('.rows li').count()).toBe(1);
    expect(await page.locator('.rows').textContent()).toContain('refused by the mailer');
    expect(complaints).toEqual([]);
  });

  /** What the command of the page prints, typed into a shell as it stands there. */
  async function typeCommand(page: Page): Promise<string> {
    const words = (await page.locator('.command code').textContent()) ?? '';
    const script = `semel() { "$NODE" "$SEMEL_BUILT_COMMAND" "$@"; }; ${words} --json`;
    const env = { ...process.env, NODE: process.execPath, SEMEL_STORE: `sqlite:${path}` };
    return (await promisify(execFile)('bash', ['-c', script], { env, maxBuffer: 50_000_000 })).stdout;
  }

  /** Every text named `key` in the output: one value, or one per line. */
  const keysIn = (output: string) => {
    const keys = new Set<string>();
    const isLines = /^\{.*\}$/m.test(output);
    for (const json of isLines ? output.trim().split('\n') : [output.trim() || '[]'])
      JSON.parse(json, (name, value) => {
        if (name === 'key' && typeof value === 'string') keys.add(value);
        return value;
      });
    return [...keys].sort();
  };

  const keysOn = async (page: Page, links: string) => {
    const hrefs = await page
      .locator(links)
      .evaluateAll((all) => all.map((each) => (each as unknown as { href: string }).href));
    return [...new Set(hrefs.map((href) => new URL(href).searchParams.get('key') ?? ''))].sort();
  };

  test.each([
    ['/doubts', '.group', 'a.row'],
    ['/doubts?tool=mail.send', '.group', 'a.row'],
    ['/doubts?tool=refund&error=socket%20hang%20up', '.group', 'a.row'],
    ['/search?q=call_8f31c2', '.results li', 'a.row'],
    ['/search?q=re_p01Qk3PZ2x8', '.results li', 'a.row'],
    ['/search?q=p-9-', '.results li', 'a.row'],
    ['/jobs', '.jobs', 'a.slot'],
    ['/outbox', '.rows li, .empty', 'a.row'],
    ['/outbox?state=dead', '.rows li, .empty', 'a.row'],
  ] as const)('the command on %s names the same records', async (way, sign, links) => {
    const { page } = await open(`${way}${way.includes('?') ? '&' : '?'}ns=shop`);
    await page.locator(sign).first().waitFor();
    await expect.poll(() => page.locator('.notice', { hasText: 'going on' }).count()).toBe(0);
    for (const more of await page.locator('button', { hasText: /^Show all/ }).all()) await more.click();
    const shown = await keysOn(page, links);
    const printed = keysIn(await typeCommand(page));
    // A page of the outbox has fewer rows than the command.
    expect(way.startsWith('/outbox') ? printed.filter((key) => shown.includes(key)) : printed).toEqual(shown);
  });

  test('the commands on a record and on the overview print the same', async () => {
    const { page } = await open('/search?q=call_8f31c2&ns=shop');
    await page.locator('a.row').first().click();
    await page.waitForSelector('.record');
    const key = new URL(page.url()).searchParams.get('key');
    expect(keysIn(await typeCommand(page))).toContain(key);
    for (const range of ['24h', '7d']) {
      await page.goto(`${server.url}/overview?range=${range}&ns=shop`);
      await page.waitForSelector('.headline');
      await page.getByText('Counted from').or(page.getByText('Counted all')).first().waitFor();
      const { totals } = JSON.parse(await typeCommand(page)) as { totals: { saved: number } };
      expect(await page.locator('.headline strong').textContent()).toBe(totals.saved.toLocaleString('en'));
    }
  });

  test('hostile texts stay texts', async () => {
    const { page, complaints } = await open('/doubts?ns=shop&tool=mail.send');
    await page.waitForSelector('.group');
    await page.locator('a.row', { hasText: 'onerror' }).click();
    await page.waitForSelector('.record');
    const shown = await page.locator('.value pre').first().textContent();
    expect(shown).toContain('<img src=x onerror=');
    expect(shown).toContain('safe‹U+202E›gnp.exe‹U+2066›');
    expect(shown).toContain(`${hostile.huge.length.toLocaleString('en')} characters`);
    expect(shown!.length).toBeLessThan(6_000);
    expect(await page.evaluate('globalThis.pwned')).toBeUndefined();
    expect(await page.locator('main img, main script').count()).toBe(0);
    expect(complaints).toEqual([]);
    // A secret is shown when asked for.
    await page.goto(`${server.url}/search?q=slower%40example.com&ns=shop`);
    await page.locator('a.row').click();
    await page.waitForSelector('.value');
    expect(await page.locator('main').textContent()).not.toContain('sk_live_canary');
    await page.locator('button', { hasText: '1 hidden, show' }).click();
    expect(await page.locator('main').textContent()).toContain('sk_live_canary');
  });

  test('a token that may only read sees no button that decides', async () => {
    const { page } = await open('/', 'reader');
    await page.waitForSelector('.group');
    expect(await page.locator('text=Decide').count()).toBe(0);
    expect(await page.locator('footer').textContent()).toContain('reader, role read: view only');
    await page.keyboard.press('j');
    await page.keyboard.press('d');
    expect(await page.locator('dialog').count()).toBe(0);
  });

  test('what another process writes appears by itself', async () => {
    const { page } = await open('/doubts?ns=shop&tool=late');
    await page.waitForSelector('.empty');
    expect(await page.locator('.empty').textContent()).toContain('Nothing of late is in doubt in shop.');
    await page.waitForSelector('.live.on');
    const semel = createSemel({ store: sqliteStore({ path }), namespace: 'shop', prune: false });
    const fails = () => Promise.reject(new Error('the line went dead'));
    await semel.once('late', 'x', {}, fails).catch(() => undefined);
    await semel.close();
    await page.waitForSelector('.group');
    expect(await page.locator('.group').textContent()).toContain('the line went dead');
  });

  test('decides by keyboard only; what changed meanwhile is left alone, and the person is told', async () => {
    const { page, complaints } = await open('/doubts?ns=shop&tool=refund');
    await page.waitForSelector('.group');
    await page.keyboard.press('j');
    await page.keyboard.press('d');
    await page.waitForSelector('dialog[open]');
    expect(await findings(page)).toEqual([]);
    await page.keyboard.press('Space');
    await page.keyboard.press('Tab');
    await page.keyboard.type('re_found');
    await page.keyboard.press('Tab');
    await page.keyboard.type('re_found');
    await page.keyboard.press('Enter');
    await page.locator('dialog', { hasText: 'The result is not JSON.' }).waitFor();
    await page.keyboard.press('Home');
    await page.keyboard.type('{"id":"');
    await page.keyboard.press('End');
    await page.keyboard.type('"}');
    await page.keyboard.press('Tab');
    await page.keyboard.type('seen in Stripe');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.group .rows li').count()).toBe(2);
    const semel = createSemel({ store: sqliteStore({ path }), namespace: 'shop', prune: false });
    const [settled] = (await semel.records.list({ contract: 'refund', limit: 1_000 })).items.filter(
      ({ remoteRef }) => remoteRef === 're_found',
    );
    expect(settled).toMatchObject({ status: 'succeeded', value: { id: 're_found' } });
    expect((await semel.records.history(settled!.key)).at(-1)).toMatchObject({
      type: 'resolved',
      detail: { by: 'operator', act: 'landed', note: 'seen in Stripe' },
    });

    await page.locator('button', { hasText: 'Decide all 2' }).click();
    await page.waitForSelector('dialog[open]');
    expect(await page.locator('.samples li').count()).toBe(2);
    const [first] = (await semel.doubts.list({ contract: 'refund' })).items;
    await semel.doubts.resolve(first!.ref, 'landed', { by: 'a colleague' });
    await semel.close();
    await page.locator('label', { hasText: 'Give it up' }).click();
    await page.locator('dialog button.primary').click();
    await page.waitForSelector('.report');
    const report = await page.locator('.report').textContent();
    expect(report).toContain('1 record decided, 1 left as it is');
    expect(report).toContain('has changed since this page was loaded');
    await page.keyboard.press('Escape');
    await page.waitForSelector('.empty');
    expect(await page.locator('.empty').textContent()).toContain('A filter is set.');
    expect(complaints).toEqual([]);
  });

  test('without a session it asks for a token, and a used link is refused', async () => {
    context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${server.url}/doubts?ns=shop#login=used-already`);
    await page.waitForSelector('.login .problem');
    expect(page.url()).not.toContain('login');
    await page.locator('input').fill(secret('reader'));
    await page.keyboard.press('Enter');
    await page.waitForSelector('.group, .empty');
    expect(await page.evaluate('JSON.stringify({ ...sessionStorage, ...localStorage })')).not.toContain(
      secret('reader'),
    );
  });

  test('a server that ended is said so, and what was read stays', async () => {
    const { page } = await open('/jobs?ns=shop');
    await page.waitForSelector('.jobs');
    await page.route('**/v1/**', (route) => route.abort());
    await page.keyboard.press('g');
    await page.keyboard.press('o');
    await page.waitForSelector('.problem');
    expect(await page.locator('.problem').first().textContent()).toContain('The server does not answer.');
    await page.unroute('**/v1/**');
    await page.locator('button', { hasText: 'Try again' }).first().click();
    await page.waitForSelector('.headline');
  });

  test('counts all that is in doubt, shows five of them, and decides each as it was looked at', async () => {
    await fillCrowd(path, crowd);
    const { page, complaints } = await open('/doubts?ns=wholesale');
    await page.waitForSelector('.group');
    expect(await page.locator('.group .count').allTextContents()).toEqual([
      (crowd - 7).toLocaleString('en'),
      '7',
    ]);
    // The one that has changed since is not the first page's, nor the last one.
    const semel = createSemel({ store: sqliteStore({ path }), namespace: 'wholesale', prune: false });
    await page.locator('button', { hasText: `Decide all ${crowd - 7}` }).click();
    await page.waitForSelector('dialog[open]');
    expect(await page.locator('dialog h2').textContent()).toBe(`Did these ${crowd - 7} records land?`);
    expect(await page.locator('.samples li').count()).toBe(6);
    expect(await page.locator('.samples li').last().textContent()).toBe(`… and ${crowd - 12} more`);
    const { items } = await semel.doubts.list({ limit: 1_000 });
    const changed = items.filter(({ error }) => error?.message === 'socket hang up')[550]!;
    await semel.doubts.resolve(changed.ref, 'landed', { by: 'a colleague' });
    await page.locator('label', { hasText: 'Give it up' }).click();
    await page.locator('dialog button.primary').click();
    await page.waitForSelector('.report');
    expect(await page.locator('.report').textContent()).toContain(
      `${crowd - 8} records decided, 1 left as it is`,
    );
    await page.keyboard.press('Escape');
    await expect.poll(() => page.locator('.group .count').allTextContents()).toEqual(['7']);
    await page.locator('.error a').click();
    expect(await page.locator('.command code').textContent()).toBe(
      "semel doubt --tool refund --error 'timeout at the bank' --namespace wholesale",
    );
    expect(await page.getByRole('link', { name: 'Open it at Stripe' }).first().getAttribute('href')).toMatch(
      /^https:\/\/dashboard\.stripe\.com\/search\?query=re_/,
    );
    await semel.close();
    expect(complaints).toEqual([]);
  });

  test('says when not all doubts were counted, and never that nothing is in doubt', async () => {
    const { page } = await open('/overview?ns=shop');
    const lost = { contract: 'aaa', error: 'socket hang up', refs: ['0123456789abcdef@1'] };
    const semel = createSemel({ store: sqliteStore({ path }), namespace: 'cut', prune: false });
    const fails = () => Promise.reject(new Error('the line went dead'));
    await semel.once('zzz', 'x', {}, fails).catch(() => undefined);
    await semel.close();
    const tools: (string | null)[] = [];
    await page.route('**/v1/doubts/groups**', async (route) => {
      tools.push(new URL(route.request().url()).searchParams.get('tool'));
      await route.fulfill({ json: { groups: [lost], isCut: true } });
    });
    await page.goto(`${server.url}/doubts?ns=cut`);
    await page.locator('.group').nth(1).waitFor();
    expect(await page.locator('.group h2').allTextContents()).toEqual(['aaa1+', 'zzz1+']);
    expect(await page.locator('.notice').textContent()).toBe(
      'Only the first 10,000 were counted: there may be more. Choose one tool.',
    );
    expect(await findings(page)).toEqual([]);
    await page.goto(`${server.url}/doubts?tool=unknown&ns=cut`);
    await page.waitForSelector('.notice');
    expect(await page.locator('.empty').count()).toBe(0);
    expect(tools).toContain('unknown');
    // The count may be older than the records.
    await page.unroute('**/v1/doubts/groups**');
    await page.route('**/v1/doubts/groups**', (route) => route.fulfill({ json: { groups: [] } }));
    await page.goto(`${server.url}/doubts?tool=zzz&ns=cut`);
    await page.waitForSelector('.group');
    expect(await page.locator('.group h2').textContent()).toBe('zzz1+');
    expect(await page.locator('.empty').count()).toBe(0);
  });

  test('an open group is read again when it has changed, and not for other writes', async () => {
    await fillCrowd(path, 150, 'retail');
    const { page } = await open('/doubts?ns=retail');
    let read = 0;
    const count = () => page.locator('.group .count').first().textContent();
    page.on('request', (request) => {
      if (request.url().includes('limit=500')) read += 1;
    });
    await page.locator('.live.on').waitFor();
    const before = Number(await count());
    await page.locator('button', { hasText: `Show all ${before}` }).click();
    const rows = () => page.locator('.group').first().locator('.rows li').count();
    await expect.poll(rows).toBe(before);
    expect(read).toBe(1);
    const semel = createSemel({ store: sqliteStore({ path }), namespace: 'retail', prune: false });
    const again = page.waitForResponse((response) => response.url().includes('limit=100'));
    await semel.once('mail', 'x', {}, () => 'sent');
    await again;
    const { items } = await semel.doubts.list({ limit: 1_000 });
    const one = items.find(({ error }) => error?.message === 'socket hang up')!;
    await semel.doubts.resolve(one.ref, 'landed', { by: 'a colleague' });
    await semel.close();
    await expect.poll(rows).toBe(before - 1);
    expect(read).toBe(2);
  });

  test('a slow answer arrives while the ledger is written to, and is asked for again', async () => {
    const { page } = await open('/overview?ns=shop');
    let asked = 0;
    let isHeld = true;
    const waiting: (() => void)[] = [];
    await page.route('**/v1/doubts/groups**', async (route) => {
      asked += 1;
      if (isHeld) await new Promise<void>((resolve) => waiting.push(resolve));
      await route.continue().catch(() => undefined);
    });
    await page.goto(`${server.url}/doubts?tool=slow&ns=shop`);
    await expect.poll(() => asked).toBe(1);
    await page.waitForSelector('.live.on');
    const semel = createSemel({ store: sqliteStore({ path }), namespace: 'shop', prune: false });
    const fails = () => Promise.reject(new Error('the line went dead'));
    for (const n of [1, 2]) {
      const told = page.waitForRequest('**/v1/summary**');
      await semel.once('slow', String(n), {}, fails).catch(() => undefined);
      await told;
    }
    expect(asked).toBe(1);
    isHeld = false;
    for (const free of waiting) free();
    await expect.poll(() => page.locator('.group .count').allTextContents()).toEqual(['2']);
    await expect.poll(() => asked).toBeGreaterThan(1);
    await semel.close();
  });

  test('from a Slack alert to the evidence and the verdict, in a browser that has no session', async () => {
    const semel = createSemel({ store: sqliteStore({ path }), namespace: 'desk', prune: false });
    const refund = semel.tool({
      name: 'refund',
      effect: 'irreversible',
      per: 'ever',
      identity: ['payment'],
      content: ['reason'],
      run: async (_: { payment: string; reason: string }, ctx): Promise<void> => {
        ctx.note('re_1Qk3PZ2x8desk');
        throw new Error('socket hang up');
      },
    });
    await refund({ payment: 'p-desk', reason: 'broken' }).catch(() => undefined);
    const messages: string[] = [];
    const slack = createServer(async (request, response) => {
      let text = '';
      for await (const part of request) text += String(part);
      messages.push(text);
      response.end('ok');
    }).listen(0, '127.0.0.1');
    await once(slack, 'listening');
    const watch = createWatch({
      store: sqliteStore({ path }),
      ...{ namespace: 'desk', olderMs: 0, needsDecision: () => true, optionsFor: () => '', url: server.url },
      targets: [slackTarget(`http://127.0.0.1:${(slack.address() as AddressInfo).port}/hook`)],
      ...{ onAlert: () => undefined, onWarning: () => undefined },
    });
    await watch.pass();
    await watch.close();
    slack.close();
    const { blocks } = JSON.parse(messages[0] ?? '{}') as { blocks: { text: { text: string } }[] };
    const [, link = ''] = /<(http[^|]+)\|Open in the dashboard>/.exec(blocks[0]?.text.text ?? '') ?? [];

    context = await browser.newContext({ viewport: { width: 1200, height: 800 } });
    const page = await context.newPage();
    await page.goto(link.replaceAll('&amp;', '&'));
    await page.waitForSelector('.login');
    expect(await page.locator('.login').textContent()).toContain('serve.token');
    expect(await findings(page)).toEqual([]);
    await page.locator('input').fill(secret('operator'));
    await page.keyboard.press('Enter');
    await page.waitForSelector('.record');
    const text = await page.locator('main').textContent();
    expect(text).toContain('Nobody knows: it may have landed');
    expect(text).toContain('Look for re_1Qk3PZ2x8desk at the target first.');
    expect(await page.getByRole('link', { name: 'Open it at Stripe' }).count()).toBeGreaterThan(0);
    // Its key, field by field, although the server knows no tool of that name.
    const key = await page.locator('section', { hasText: 'digest of the namespace' }).last().textContent();
    expect(key).toMatch(/payment .*p-desk.*identity: another value is another intent/);
    expect(key).toMatch(/reason .*broken.*content: may be worded differently/);
    await page.keyboard.press('d');
    await page.waitForSelector('dialog[open]');
    await page.keyboard.press('Space');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('Yes, it landed').waitFor();
    const [record] = (await semel.records.list()).items;
    expect(record).toMatchObject({ status: 'succeeded', remoteRef: 're_1Qk3PZ2x8desk' });
    await semel.close();
  });

  test('a tab that nobody looks at asks for nothing, and catches up when somebody does', async () => {
    const { page } = await open('/doubts?ns=shop&tool=unseen');
    await page.waitForSelector('.empty');
    await page.waitForSelector('.live.on');
    const show = (is: boolean) =>
      page.evaluate(`
        Object.defineProperty(document, 'hidden', { configurable: true, value: ${!is} });
        Object.defineProperty(document, 'visibilityState', { configurable: true, value: '${is ? 'visible' : 'hidden'}' });
        document.dispatchEvent(new Event('visibilitychange'));
      `);
    await show(false);
    await page.waitForSelector('.live.off');
    let asked = 0;
    page.on('request', () => {
      asked += 1;
    });
    const semel = createSemel({ store: sqliteStore({ path }), namespace: 'shop', prune: false });
    const fails = () => Promise.reject(new Error('the line went dead'));
    await semel.once('unseen', 'x', {}, fails).catch(() => undefined);
    // Longer than the feed takes to tell of a write.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(asked).toBe(0);
    expect(await page.locator('.empty').count()).toBe(1);
    await show(true);
    await page.waitForSelector('.group');
    await semel.close();
  });

  test.each(['light', 'dark'] as const)(
    'every view can be used by everyone, in the %s theme',
    async (colorScheme) => {
      const { page, complaints } = await open('/overview?ns=shop', 'operator', { colorScheme });
      const ways = ['/overview', '/doubts', '/jobs', '/outbox', '/search?q=p-1-1'];
      for (const way of ways) {
        await page.goto(`${server.url}${way}${way.includes('?') ? '&' : '?'}ns=shop`);
        await page.waitForSelector('.headline, .group, .jobs, .rows, .empty');
        expect([way, await findings(page)]).toEqual([way, []]);
      }
      await page.locator('a.row').first().click();
      await page.waitForSelector('.record');
      expect(await findings(page)).toEqual([]);
      expect(complaints).toEqual([]);
    },
  );
});
