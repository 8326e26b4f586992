// Abuse of the HTTP API: what a hostile client, with any token or none, can send. Nothing of it ends in a server error, shows a
// secret, or acts where its token may not.

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PolicyFile } from '../../../src/mcp/index.ts';
import { rootsNamespace } from '../../../src/semel/index.ts';
import type { Endpoint } from '../../../src/server/endpoint.ts';
import { object, text } from '../../../src/server/exchange/schema.ts';
import {
  digestToken,
  endpoints,
  type RunningServer,
  startServer,
  type TokenEntry,
} from '../../../src/server/index.ts';
import type { Store } from '../../../src/store/store.ts';
import { type Abuse, corpusFor, type Known, rawRequests, usualRequest } from './corpus.ts';

const secret = (name: string) => `CANARY-token-of-${name}-which-is-long-enough`;
const entry = (name: string, role: TokenEntry['role'], namespace: string): TokenEntry => ({
  name,
  role,
  namespace,
  sha256: digestToken(secret(name)),
});
const tokens = [
  entry('reader', 'read', 'shop'),
  entry('worker', 'execute', 'shop'),
  entry('admin', 'admin', 'shop'),
  entry('vault', 'admin', 'vault'),
  entry('operator', 'admin', '*'),
];
/** Each may do what those before it may. The test's own word, not the server's. */
const ranks = ['read', 'execute', 'admin'];
const canary = { args: 'CANARY-args', value: 'CANARY-value', password: 'CANARY-password' };

const policies: PolicyFile = {
  version: 1,
  tools: {
    plain: { effect: 'write-non-idempotent', per: 'ever', lease: '1h' },
    look: 'read',
  },
};

/** What the store was asked, and where. */
interface Asked {
  readonly method: string;
  readonly namespace: string;
}

function watched(store: Store, asked: Asked[], isDown: () => boolean): Store {
  return new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: readonly unknown[]) => {
        if (isDown() && name !== 'close')
          throw new Error(`connect ECONNREFUSED postgres://semel:${canary.password}@db.internal/ledger`);
        const [first] = args as [{ readonly namespace?: string } | string | undefined];
        const namespace = typeof first === 'string' ? first : first?.namespace;
        if (namespace !== undefined) asked.push({ method: String(name), namespace });
        return Reflect.apply(value as (...all: readonly unknown[]) => unknown, target, args);
      };
    },
  });
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

const nothing = object({});
const opened = (path: string): Endpoint => ({
  ...{ method: 'GET', path, role: 'read', about: '', input: nothing },
  run: async () => ({}),
});

/** They have no row in the list of endpoints. No token is needed for these. */
const open: readonly Endpoint[] = [
  { ...opened('/login'), method: 'POST', input: object({ code: text({ max: 200 }) }) },
  ...[
    '/livez',
    '/readyz',
    '/openapi.json',
    '/docs',
    '/',
    '/record',
    '/assets/app.js',
    '/assets/index.html',
  ].map(opened),
];
const others: readonly Endpoint[] = [...open, opened('/metrics')];

function makeDashboard(): string {
  const folder = mkdtempSync(join(tmpdir(), 'semel-pages-'));
  for (const name of ['index.html', 'app.js', 'app.css', 'theme.js', 'icon.svg'])
    writeFileSync(join(folder, name), `the file ${name}`);
  return folder;
}

export function abuse(openStore: () => Store): void {
  const asked: Asked[] = [];
  const lines: string[] = [];
  let isDown = false;
  let server: RunningServer;
  const pages = makeDashboard();
  let known: Known;
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });

  type Request = Omit<Abuse, 'name'>;

  /** A connection may be closed while the next request is on its way, as after a body that was not read. */
  async function send(abuse: Request, token: string | null): Promise<Answer> {
    for (let left = 3; left > 0; left -= 1)
      try {
        return await sendOnce(abuse, token, agent);
      } catch (error) {
        if (!/hang up|ECONNRESET|EPIPE/.test(String(error))) throw error;
      }
    return sendOnce(abuse, token, false);
  }

  function sendOnce(
    { method, path, headers, body }: Request,
    token: string | null,
    by: Agent | false,
  ): Promise<Answer> {
    const { hostname, port } = new URL(server.url);
    return new Promise((resolve, reject) => {
      const sent = request({
        agent: by,
        hostname,
        port,
        method,
        path,
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
          ...headers,
        },
      });
      sent.on('error', reject);
      sent.on('response', (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => {
          parts.push(part);
          // Events have no end: what comes first is enough.
          if (response.headers['content-type'] === 'text/event-stream') {
            resolve({ status: response.statusCode ?? 0, headers: response.headers, text: part.toString() });
            sent.destroy();
          }
        });
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(parts).toString(),
          }),
        );
      });
      sent.end(body);
    });
  }

  async function call(path: string, body: object, as: string) {
    const headers = { 'content-type': 'application/json' };
    const { text } = await send({ method: 'POST', path, headers, body: JSON.stringify(body) }, secret(as));
    return JSON.parse(text);
  }

  /** A record whose secrets nobody else may see, one that runs, and one in doubt. */
  async function fill(as: string) {
    const begin = (args: unknown) => call('/v1/begin', { tool: 'plain', args }, as);
    const done = await begin({ which: 'done', secret: as === 'vault' ? canary.args : 'x' });
    const value = as === 'vault' ? canary.value : 'x';
    await call('/v1/settle', { attempt: done.attempt, outcome: 'succeeded', value }, as);
    const doubtful = await begin({ which: 'doubtful' });
    await call('/v1/settle', { attempt: doubtful.attempt, outcome: 'unknown' }, as);
    const running = await begin({ which: 'running' });
    const { text } = await send({ method: 'GET', path: '/v1/doubts', headers: {} }, secret(as));
    return { attempt: running.attempt, ref: JSON.parse(text).items[0].ref, key: doubtful.recordKey };
  }

  async function recordsOf(as: string): Promise<unknown[]> {
    const { text } = await send({ method: 'GET', path: '/v1/records', headers: {} }, secret(as));
    const { items } = JSON.parse(text) as { readonly items: Record<string, unknown>[] };
    return items.map(({ leaseLeftMs: _, ...rest }) => rest);
  }

  beforeAll(async () => {
    server = await startServer({
      store: watched(openStore(), asked, () => isDown),
      policies,
      mayDefine: true,
      tokens,
      version: '0.0.0',
      dashboard: pages,
      listen: { host: '127.0.0.1', port: 0 },
      onWarning: (message) => lines.push(message),
      onRequest: (served) => lines.push(JSON.stringify(served)),
    });
    const own = await fill('worker');
    const vault = await fill('vault');
    known = {
      attempt: own.attempt,
      ref: own.ref,
      stolenAttempt: vault.attempt,
      stolenRef: vault.ref,
      stolenKey: vault.key,
    };
  });
  afterAll(async () => {
    agent.destroy();
    await server.close(0);
    rmSync(pages, { recursive: true });
  });

  function expectHarmless(name: string, { status, headers, text }: Answer): void {
    const isLater = status === 503 && headers['retry-after'] !== undefined;
    expect(status < 500 || isLater, `${name}: ${status} ${text.slice(0, 300)}`).toBe(true);
    expect(text, name).not.toContain('CANARY');
    if (status === 200 && text.startsWith('{"items":[{"status":'))
      for (const item of JSON.parse(text).items) expect(item.status, `${name}: ${text}`).toBeLessThan(500);
  }

  /** Eight at a time. */
  async function each(all: readonly Abuse[], act: (abuse: Abuse) => Promise<void>): Promise<void> {
    const left = [...all];
    const work = async () => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) await act(next);
    };
    await Promise.all(Array.from({ length: 8 }, work));
  }

  test('a token acts only where its role and its namespace allow it', async () => {
    const before = [await recordsOf('admin'), await recordsOf('vault')];
    asked.length = 0;
    let refused = 0;
    for (const endpoint of endpoints) {
      const usual = usualRequest(endpoint, known);
      const strangers = [null, '', 'x'.repeat(40), secret('worker').slice(1), digestToken(secret('admin'))];
      for (const token of strangers) {
        const answer = await send(usual, token);
        expectHarmless(usual.name, answer);
        expect(answer.status, usual.name).toBe(401);
        refused += 1;
      }
      for (const { name, role } of tokens.filter(({ namespace }) => namespace === 'shop')) {
        const elsewhere = { ...usual, headers: { ...usual.headers, 'semel-namespace': 'vault' } };
        const answers = [await send(elsewhere, secret(name))];
        if (ranks.indexOf(role) < ranks.indexOf(endpoint.role)) answers.push(await send(usual, secret(name)));
        for (const answer of answers) {
          expectHarmless(`${usual.name} by ${name}`, answer);
          expect(answer.status, `${usual.name} by ${name}`).toBe(403);
          refused += 1;
        }
      }
    }
    expect(refused).toBeGreaterThan(endpoints.length * 8);
    expect(asked).toEqual([]);
    expect([await recordsOf('admin'), await recordsOf('vault')]).toEqual(before);
  });

  test('every endpoint takes abuse without failing, telling, or reaching another namespace', async () => {
    const vault = await recordsOf('vault');
    const abuses = (of: readonly Endpoint[]) => of.flatMap((endpoint) => corpusFor(endpoint, known));
    const [corpus, elsewhere] = [abuses(endpoints), abuses(others)];
    const asAdmin = async (abuse: Abuse) => expectHarmless(abuse.name, await send(abuse, secret('admin')));
    // What is open is counted for all namespaces at once, and shown to each its own.
    await each(elsewhere, asAdmin);
    expect(corpus.length).toBeGreaterThan(500);
    asked.length = 0;
    const memory = process.memoryUsage().rss;
    await each(corpus, asAdmin);
    await each(
      [...corpus, ...elsewhere].filter((_, at) => at % 7 === 0),
      async (abuse) => {
        const answer = await send(abuse, null);
        expectHarmless(abuse.name, answer);
        const isOpen = ({ method, path }: Endpoint) => abuse.name.startsWith(`${method} ${path},`);
        if (!open.some(isOpen)) expect(answer.status, abuse.name).toBeGreaterThanOrEqual(400);
      },
    );
    expect(process.memoryUsage().rss - memory).toBeLessThan(700 * 1024 * 1024);
    const own = ['shop', rootsNamespace('readyz')];
    expect(asked.filter(({ namespace }) => !own.includes(namespace))).toEqual([]);
    expect(await recordsOf('vault')).toEqual(vault);
    expect(lines.join('\n')).not.toContain('CANARY');
    // Names of tools and namespaces only, also for the one who sees all of them.
    const metrics = await send({ method: 'GET', path: '/metrics', headers: {} }, secret('operator'));
    expect(metrics.text).toContain('semel_store_up 1');
    expect(metrics.text).not.toContain('CANARY');
  });

  test('bytes that are not a request are refused, and none hides another', async () => {
    asked.length = 0;
    const { hostname, port } = new URL(server.url);
    for (const [name, text] of Object.entries(rawRequests('/v1/begin'))) {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => undefined);
      let answer = '';
      socket.on('data', (part: Buffer) => {
        answer += part.toString('latin1');
      });
      socket.end(Buffer.from(text.replaceAll('TOKEN', secret('worker')), 'latin1'));
      await once(socket, 'close');
      expect(answer, name).not.toContain('CANARY');
      const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
      expect(
        statuses.filter((status) => status >= 500 && status !== 503),
        name,
      ).toEqual([]);
      for (const one of answer.split('HTTP/1.1 '))
        if (one.startsWith('503')) expect(one.toLowerCase(), name).toContain('retry-after: ');
    }
    // None of them says what to do.
    expect(asked).toEqual([]);
  });

  test('while the store is down, everything says so without its address', async () => {
    isDown = true;
    try {
      for (const endpoint of [...endpoints, ...others]) {
        const answer = await send(usualRequest(endpoint, known), secret('admin'));
        expectHarmless(endpoint.path, answer);
      }
      const ready = await send({ method: 'GET', path: '/readyz', headers: {} }, null);
      expect(ready.status).toBe(503);
      expect(ready.text).not.toContain('CANARY');
    } finally {
      isDown = false;
    }
    expect(lines.join('\n')).not.toContain('CANARY');
    // The operator can see what it is.
    expect(lines.join('\n')).toContain('ECONNREFUSED');
  });

  test('after all of it, the server answers honest clients', async () => {
    await expect
      .poll(async () => (await call('/v1/begin', { tool: 'plain', args: 'honest' }, 'worker')).outcome, {
        timeout: 30_000,
      })
      .toBe('execute');
    expect((await call('/v1/begin', { tool: 'look', args: 1 }, 'worker')).outcome).toBe('execute');
    expect(await recordsOf('vault')).toHaveLength(3);
  });
}
