// `semel serve` as a process: its token, its places, and what a restart keeps.

import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { receiver } from '../signals/receiver.ts';

/** As it was built for this run of the tests (build.ts), not as it was built last. */
const command = process.env.SEMEL_BUILT_COMMAND ?? '';
let folder: string;
const started: (() => Promise<void>)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'semel-serve-'));
  writeFileSync(
    join(folder, 'policy.json'),
    JSON.stringify({
      version: 1,
      tools: { refund: { effect: 'irreversible', per: 'ever', identity: ['payment'] } },
    }),
  );
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((stop) => stop()));
  rmSync(folder, { recursive: true, force: true });
});

function run(args: readonly string[], env: Record<string, string> = {}) {
  const { SEMEL_CONTEXT: _, ...clean } = process.env;
  return spawn(process.execPath, [command, 'serve', ...args], {
    env: { ...clean, XDG_STATE_HOME: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

async function start(args: readonly string[], env?: Record<string, string>) {
  const child = run(args, env);
  const lines: string[] = [];
  const kill = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill(signal);
      await once(child, 'exit');
    }
  };
  started.push(() => kill('SIGKILL'));
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line);
    if (line.includes('listening')) break;
    if (lines.length > 20) break;
  }
  const url = /listening(?: on |":")([^\s"]+)/.exec(lines.join('\n'))?.[1];
  if (url === undefined) throw new Error(lines.join('\n'));
  return { url, kill, child, lines };
}

async function ended(args: readonly string[], env?: Record<string, string>) {
  const child = run(args, env);
  // One that should have refused would serve for ever.
  started.push(async () => void child.kill('SIGKILL'));
  let text = '';
  child.stderr.on('data', (part) => (text += part));
  let out = '';
  child.stdout.on('data', (part) => (out += part));
  const [code] = await once(child, 'close');
  return { code, text, out };
}

const tokenIn = (name = 'serve.token') => readFileSync(join(folder, 'semel', name), 'utf8').trim();

async function post(url: string, path: string, body: unknown, token: string) {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const call = { tool: 'refund', args: { payment: 'p1' } };

test('a server that is killed loses no attempt: the next one takes its report', async () => {
  const options = ['--port', '0', '--policy', join(folder, 'policy.json')];
  const first = await start(options);
  const token = tokenIn();
  expect(statSync(join(folder, 'semel', 'serve.token')).mode & 0o777).toBe(0o600);
  const { attempt } = (await post(first.url, '/v1/begin', call, token)).body;
  await first.kill('SIGKILL');
  const second = await start(options);
  expect(tokenIn()).toBe(token);
  expect(await post(second.url, '/v1/begin', call, token)).toMatchObject({
    status: 409,
    body: { code: 'IN_FLIGHT' },
  });
  expect(
    await post(second.url, '/v1/settle', { attempt, outcome: 'succeeded', value: 7 }, token),
  ).toMatchObject({ status: 200 });
  expect((await post(second.url, '/v1/begin', call, token)).body).toMatchObject({
    outcome: 'replay',
    value: 7,
  });
  await second.kill('SIGTERM');
  expect(second.child.exitCode).toBe(0);
});

test('a token of its own has a role and a namespace, and is kept as a digest', async () => {
  const file = join(folder, 'tokens.json');
  const made = await ended(['token', '--tokens', file, '--name', 'ci', '--namespace', 'shop']);
  expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/^semel_[\w-]{43}\n$/) });
  const token = made.out.trim();
  expect(readFileSync(file, 'utf8')).not.toContain(token);
  expect(await ended(['token', '--tokens', file, '--name', 'ci'])).toMatchObject({ code: 64 });
  const server = await start(['--port', '0', '--policy', join(folder, 'policy.json'), '--tokens', file]);
  expect(await post(server.url, '/v1/begin', call, token)).toMatchObject({ status: 200 });
  expect(await post(server.url, '/v1/resolve', { ref: 'x@1', verdict: 'landed' }, token)).toMatchObject({
    status: 403,
  });
  chmodSync(file, 0o644);
  expect(await ended(['--port', '0', '--tokens', file])).toMatchObject({
    text: expect.stringContaining('chmod 600'),
  });
});

test('it listens on a socket that only its owner can open, and ends when nobody asks', async () => {
  const socket = join(folder, 'run', 'semel.sock');
  const server = await start(['--socket', socket, '--define', '--idle', '2s', '--log', 'json']);
  expect(server.url).toBe(`unix:${socket}`);
  expect(statSync(socket).mode & 0o777).toBe(0o600);
  const status = await new Promise<number | undefined>((resolve, reject) => {
    request(
      { socketPath: socket, path: '/v1/tools', headers: { authorization: `Bearer ${tokenIn()}` } },
      (response) => {
        response.resume();
        resolve(response.statusCode);
      },
    )
      .on('error', reject)
      .end();
  });
  expect(status).toBe(200);
  expect(await once(server.child, 'exit')).toEqual([0, null]);
});

test.each<[string, readonly string[], Record<string, string>, string]>([
  ['other machines without TLS', ['--host', '0.0.0.0'], {}, '--tls-cert'],
  ['a short token', ['--port', '0'], { SEMEL_TOKEN: 'short' }, '32 characters'],
  ['a port that is none', ['--port', 'x'], {}, '--port'],
  ['an agent that could decide', ['--port', '0'], { SEMEL_AGENT: '1' }, 'operator'],
])('it refuses %s', async (_, args, env, words) => {
  const { code, text } = await ended(args, env);
  expect(text).toContain(words);
  expect(code).not.toBe(0);
});

function makeCertificate(): readonly string[] {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const about = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const kind = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-keyout', key, '-out', cert];
  execFileSync('openssl', ['req', ...kind, ...about], { stdio: 'ignore' });
  return ['--tls-cert', cert, '--tls-key', key];
}

async function getBy(send: typeof request, url: string, options: object): Promise<number | undefined> {
  const sent = send(url, options);
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

test('with a certificate it speaks TLS to other machines, and nothing else', async () => {
  const { url } = await start(['--host', '0.0.0.0', '--port', '0', ...makeCertificate()]);
  expect(url).toMatch(/^https:/);
  const ca = readFileSync(join(folder, 'cert.pem'));
  const { port } = new URL(url);
  const headers = { host: `0.0.0.0:${port}`, authorization: `Bearer ${tokenIn()}` };
  expect(await getBy(secureRequest, `https://127.0.0.1:${port}/v1/tools`, { ca, headers })).toBe(200);
  await expect(getBy(secureRequest, `https://127.0.0.1:${port}/livez`, { headers })).rejects.toThrow(
    /self-signed/,
  );
  await expect(getBy(request, `http://127.0.0.1:${port}/livez`, { headers })).rejects.toThrow(
    /hang up|RESET/,
  );
});

test('behind a proxy, only the proxy may connect', async () => {
  const options = ['--host', '0.0.0.0', '--port', '0', '--allow-host', 'ledger.example.com'];
  const ask = async (proxy: string, more: object = {}) => {
    const { url, kill } = await start([...options, '--behind-proxy', proxy]);
    const headers = { host: 'ledger.example.com', ...more };
    const { port } = new URL(url);
    return getBy(request, `http://127.0.0.1:${port}/livez`, { headers }).finally(() => kill('SIGTERM'));
  };
  expect(await ask('127.0.0.1', { 'x-forwarded-proto': 'https' })).toBe(200);
  expect(await ask('127.0.0.0/8', { 'x-forwarded-proto': 'http' })).toBe(403);
  await expect(ask('192.0.2.1')).rejects.toThrow(/hang up|RESET/);
  expect((await ended([...options, '--behind-proxy', 'proxy'])).text).toContain('not the address of a proxy');
});

test('with --log json every line is JSON, and none holds a secret', async () => {
  const options = ['--port', '0', '--policy', join(folder, 'policy.json'), '--log', 'json', '--define'];
  const { url, kill, child, lines } = await start(options);
  child.stderr.setEncoding('utf8').on('data', (text: string) => lines.push(...text.split('\n')));
  const token = tokenIn();
  const canary = 'CANARY-arg';
  const begun = await post(url, '/v1/begin', { tool: 'refund', args: { payment: canary } }, token);
  const { attempt } = begun.body as { readonly attempt: string };
  await post(url, '/v1/settle', { attempt, outcome: 'succeeded', value: canary }, token);
  await post(url, '/v1/begin', { tool: 'refund', args: { payment: canary }, policy: { canary } }, token);
  await post(url, `/${canary}\n{"forged":true}`, {}, token);
  await post(url, '/v1/begin', { tool: canary }, `${canary}-wrong-token`);
  await fetch(`${url}/v1/record?ref=${canary}`, { headers: { authorization: `Bearer ${token}` } });
  await kill('SIGTERM');
  const read = lines.filter((line) => line !== '').map((line) => JSON.parse(line));
  expect(read.filter(({ method }) => method !== undefined).length).toBeGreaterThanOrEqual(6);
  for (const line of read) expect(line).toMatchObject({ time: expect.stringMatching(/^\d{4}-.*Z$/) });
  for (const secret of [token, attempt, 'CANARY', 'forged', 'Bearer'])
    expect(lines.join('\n')).not.toContain(secret);
});

test('a decision is logged with its token, behind one prefix', async () => {
  const { url, kill, child } = await start(['--port', '0', '--policy', join(folder, 'policy.json')]);
  let log = '';
  child.stderr.on('data', (part) => (log += part));
  const { attempt, recordId, fence } = (await post(url, '/v1/begin', call, tokenIn())).body;
  await post(url, '/v1/settle', { attempt, outcome: 'unknown', error: { message: 'timeout' } }, tokenIn());
  const ref = `${recordId}@${fence}`;
  expect((await post(url, '/v1/resolve', { ref, verdict: 'landed' }, tokenIn())).status).toBe(200);
  await expect.poll(() => log).toMatch(/^semel: local: landed refund \w+ in default$/m);
  await kill('SIGTERM');
});

test('alerts are sent by the server too', async () => {
  const { url: hook, got } = await receiver();
  const server = await start(['--policy', join(folder, 'policy.json'), '--port', '0', '--webhook', hook]);
  const token = readFileSync(join(folder, 'semel', 'serve.token'), 'utf8').trim();
  const post = (path: string, body: object) =>
    fetch(`${server.url}/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }).then((response) => response.json() as Promise<{ attempt: string }>);
  const { attempt } = await post('begin', { tool: 'refund', args: { payment: 'pay_1' } });
  await post('settle', { attempt, outcome: 'unknown', error: { message: 'timeout' } });
  await expect.poll(() => got.length).toBe(1);
  expect(got[0]?.event).toMatchObject({
    data: { tool: 'refund', link: expect.stringContaining(server.url) },
  });
  await server.kill('SIGTERM');
});

test('its log is a line of JSON per request and alert, in which no name reaches the terminal as a command', async () => {
  const { url: hook, got } = await receiver();
  const namespace = 'shop\u202e';
  const file = join(folder, 'tokens.json');
  const token = 'a-token-for-the-log-which-nobody-else-knows';
  const sha256 = createHash('sha256').update(token).digest('hex');
  const tokens = [{ name: 'ci', role: 'execute', namespace, sha256 }];
  writeFileSync(file, JSON.stringify({ version: 1, tokens }), { mode: 0o600 });
  const policy = join(folder, 'policy.json');
  const server = await start(
    ['--policy', policy, '--tokens', file, '--port', '0', '--webhook', hook, '--log', 'json'],
    { SEMEL_WEBHOOK_SECRET: 'whsec_bG9uZyBlbm91Z2ggdG8gYmUgYSBzZWNyZXQgb2Ygb3Vycw==' },
  );
  let log = '';
  server.child.stderr.on('data', (part) => (log += part));
  const { attempt } = (await post(server.url, '/v1/begin', call, token)).body;
  await post(server.url, '/v1/settle', { attempt, outcome: 'unknown', error: { message: token } }, token);
  await expect.poll(() => got.length).toBe(1);
  await expect.poll(() => log).toContain('"alert"');
  // What it says when it starts is for people.
  const lines = log.split('\n').filter((line) => line.startsWith('{'));
  expect(lines.map((line) => JSON.parse(line))).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ method: 'POST', path: '/v1/begin', status: 200, token: 'ci' }),
      expect.objectContaining({ alert: 'opened', namespace }),
    ]),
  );
  expect(lines.join('')).not.toMatch(/\p{Bidi_Control}/u);
  for (const secret of [token, attempt, 'whsec_']) expect(log).not.toContain(secret);
  await server.kill('SIGTERM');
});

test('an agent cannot bring a token that decides', async () => {
  const file = join(folder, 'tokens.json');
  const sha256 = createHash('sha256').update('a-token-that-the-agent-made-up-itself').digest('hex');
  for (const role of ['admin', 'read']) {
    const tokens = [{ name: 'mine', role, namespace: '*', sha256 }];
    writeFileSync(file, JSON.stringify({ version: 1, tokens }), { mode: 0o600 });
    const { code, text } = await ended(['--port', '0', '--role', 'execute', '--tokens', file], {
      SEMEL_AGENT: '1',
    });
    expect(text).toContain('operator');
    expect(code).not.toBe(0);
  }
});

test('servers that start at the same time have one token', async () => {
  const servers = await Promise.all(Array.from({ length: 4 }, () => start(['--port', '0', '--define'])));
  const policy = { effect: 'read' };
  for (const { url } of servers)
    expect(await post(url, '/v1/begin', { tool: 'look', args: { a: 1 }, policy }, tokenIn())).toMatchObject({
      status: 200,
    });
  expect(readdirSync(join(folder, 'semel')).filter((name) => name.includes('token'))).toEqual([
    'serve.token',
  ]);
});

test('a file without a token is not taken for one', async () => {
  mkdirSync(join(folder, 'semel'), { mode: 0o700 });
  for (const text of ['', '\n', 'short']) {
    writeFileSync(join(folder, 'semel', 'serve.token'), text, { mode: 0o600 });
    expect(await ended(['--port', '0'])).toMatchObject({ text: expect.stringContaining('Delete it') });
  }
});

test('a socket in a folder that others can write is warned about, and is never open to them', async () => {
  const shared = join(folder, 'shared');
  mkdirSync(shared);
  chmodSync(shared, 0o1777);
  const server = await start(['--socket', join(shared, 's.sock'), '--define']);
  expect(server.lines.join('\n')).toContain('can be written by every user');
  expect(statSync(join(shared, 's.sock')).mode & 0o777).toBe(0o600);
  // One that lives is not taken away.
  expect(await ended(['--socket', join(shared, 's.sock')])).toMatchObject({
    text: expect.stringContaining('another program listens there'),
  });
  await server.kill('SIGKILL');
  await start(['--socket', join(shared, 's.sock')]);
});
