// What one client can take of the server: large values, many of them, and answers that it does not read.

import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/core/limits.ts';
import { digestToken, type RunningServer, startServer } from '../../src/server/index.ts';
import { memoryStore } from '../../src/store/memory.ts';
import type { Store } from '../../src/store/store.ts';

const token = 'a-token-that-is-long-enough-to-be-one-of-them';
const otherToken = 'another-token-that-is-long-enough-to-be-one-of-them';
const count = 30;
let server: RunningServer;
let served = 0;
let claims = 0;
let reads = 0;
const warnings: string[] = [];

beforeAll(async () => {
  const store = memoryStore();
  const counted: Store = new Proxy(store, {
    get(target, name) {
      if (name === 'claim') claims += 1;
      if (name === 'read') reads += 1;
      return Reflect.get(target, name);
    },
  });
  server = await startServer({
    store: counted,
    policies: { version: 1, tools: { keep: { effect: 'write-non-idempotent', per: 'ever' } } },
    mayDefine: true,
    tokens: [
      { name: 'all', role: 'admin', namespace: 'shop', sha256: digestToken(token) },
      { name: 'other', role: 'execute', namespace: 'other', sha256: digestToken(otherToken) },
    ],
    version: '0.0.0',
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: (message) => void warnings.push(message),
    onRequest: () => {
      served += 1;
    },
  });
  for (const { tool, args } of calls) {
    const { attempt } = await post('/v1/begin', { tool, args });
    await post('/v1/settle', { attempt, outcome: 'succeeded', value: 'x'.repeat(1_000_000) });
  }
});
afterAll(() => server.close(0));

const calls = Array.from({ length: count }, (_, at) => ({ tool: 'keep', args: { at } }));
const authorization = `Bearer ${token}`;

// biome-ignore lint/suspicious/noExplicitAny: each endpoint has its own.
async function post(path: string, body: object, as = token, signal?: AbortSignal): Promise<any> {
  const headers = { authorization: `Bearer ${as}`, 'content-type': 'application/json' };
  const request = { method: 'POST', headers, body: JSON.stringify(body), ...(signal && { signal }) };
  const answer = await fetch(`${server.url}${path}`, request);
  return answer.json();
}

async function get(path: string) {
  const answer = await fetch(`${server.url}${path}`, { headers: { authorization } });
  return { status: answer.status, text: await answer.text() };
}

test('a page of large records ends early, and the next one goes on', async () => {
  const seen: string[] = [];
  for (let next: string | undefined = ''; next !== undefined; ) {
    const after: string = next === '' ? '' : `&after=${encodeURIComponent(next)}`;
    const { status, text } = await get(`/v1/records?limit=1000${after}`);
    expect(status).toBe(200);
    // And the few that were read with the last one.
    expect(text.length).toBeLessThan(limits.answerBytes + 11_000_000);
    const page = JSON.parse(text);
    seen.push(...page.items.map(({ key }: { readonly key: string }) => key));
    next = page.next;
  }
  expect(new Set(seen).size).toBe(count);
  expect(seen).toHaveLength(count);
});

test('a page is as long as asked for if it is short', async () => {
  const { items, next } = JSON.parse((await get('/v1/records?limit=7')).text);
  expect(items).toHaveLength(7);
  expect(next).toEqual(expect.any(String));
});

test('a batch of large replays answers as many as fit, and each by itself', async () => {
  const { items } = await post('/v1/begin', { items: calls });
  const statuses = items.map(({ status }: { readonly status: number }) => status);
  expect(statuses.filter((status: number) => status === 200).length).toBeGreaterThan(10);
  expect(statuses.filter((status: number) => status === 503).length).toBeGreaterThan(10);
  expect(JSON.stringify(items).length).toBeLessThan(2 * limits.answerBytes);
  const late = items.findIndex(({ status }: { readonly status: number }) => status === 503);
  expect(items[late].body).toMatchObject({ retriable: true, correctiveAction: 'Send this item by itself.' });
  expect((await post('/v1/begin', calls[late] as object)).outcome).toBe('replay');
});

test('a batch of decisions says of each what became of it, also where the whole is too long', async () => {
  const attempts: string[] = [];
  const refs = await Promise.all(
    Array.from({ length: 300 }, async (_, at) => {
      const begun = await post('/v1/begin', {
        tool: 'keep',
        args: { doubtful: at, text: 'x'.repeat(60_000) },
      });
      await post('/v1/settle', { attempt: begun.attempt, outcome: 'unknown' });
      attempts.push(begun.attempt);
      return `${begun.recordKey}@${begun.fence}`;
    }),
  );
  const items = refs.map((ref) => ({ ref, verdict: 'abandon', note: 'nobody knows' }));
  const decided = await post('/v1/resolve', { items });
  expect(JSON.stringify(decided).length).toBeLessThan(limits.answerBytes + 1_000_000);
  const short = decided.items.filter(({ body }: { readonly body: object }) => 'isShort' in body);
  expect(short.length).toBeGreaterThan(10);
  for (const [at, { status, body }] of decided.items.entries()) {
    expect(status).toBe(200);
    expect(`${body.record.key}@1`).toBe(refs[at]);
    expect(body.record).toMatchObject({ status: 'failed', inDoubt: false });
  }
  // Late reports of what was decided: each says so, and brings no value.
  const reports = attempts.map((attempt) => ({ attempt, outcome: 'unknown' }));
  for (const { status } of (await post('/v1/settle', { items: reports })).items) expect(status).not.toBe(503);
});

test('clients that do not read are disconnected before their answers fill the memory', async () => {
  const before = served;
  const { hostname, port } = new URL(server.url);
  // Those of other tests are small.
  const text = `GET /v1/records?status=succeeded HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: ${authorization}\r\n\r\n`;
  const clients = Array.from({ length: 11 }, () => {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    socket.pause();
    socket.write(text);
    return socket;
  });
  await expect.poll(() => served - before, { timeout: 60_000 }).toBe(clients.length);
  const sizes = await Promise.all(
    clients.map(async (socket) => {
      let size = 0;
      socket.on('data', (part: Buffer) => {
        size += part.length;
      });
      socket.resume();
      await once(socket, 'close');
      return size;
    }),
  );
  const whole = sizes.filter((size) => size >= limits.answerBytes).length;
  expect(whole).toBeGreaterThan(0);
  expect(whole * limits.answerBytes).toBeLessThanOrEqual(limits.unfinishedBytes);
  expect((await get('/v1/tools')).status).toBe(200);
});

test('answers behind a stream that does not end do not fill the memory', async () => {
  const { hostname, port } = new URL(server.url);
  const ask = (path: string) =>
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\n\r\n`;
  const client = connect(Number(port), hostname);
  client.on('error', () => undefined);
  client.write(ask('/v1/events'));
  await once(client, 'data');
  client.resume();
  client.write(ask('/v1/records').repeat(10));
  await once(client, 'close', { signal: AbortSignal.timeout(30_000) });
  expect((await get('/v1/tools')).status).toBe(200);
});

test('calls that wait for another worker leave half of the places to other namespaces', async () => {
  const before = served;
  const call = { tool: 'keep', args: 'waited for' };
  const stop = new AbortController();
  for (const as of [token, otherToken])
    expect(await post('/v1/begin', call, as)).toMatchObject({ outcome: 'execute' });
  const waiting = { ...call, waitMs: 60_000 };
  const items = Array.from({ length: limits.batchItems }, () => waiting);
  const batches = Array.from({ length: limits.waitingCalls / limits.batchItems }, () =>
    post('/v1/begin', { items }, token, stop.signal),
  );
  try {
    // Half of them are told at once.
    const { items: told } = await Promise.race(batches);
    expect(told[0].body).toMatchObject({ code: 'IN_FLIGHT', retriable: true });
    expect(await post('/v1/begin', waiting)).toMatchObject({ code: 'IN_FLIGHT' });
    const late = post('/v1/begin', { ...waiting, waitMs: 700 }, otherToken);
    expect(await Promise.race([late, new Promise((resolve) => setTimeout(resolve, 500))])).toBeUndefined();
    await late;
  } finally {
    stop.abort();
    await Promise.allSettled(batches);
  }
  await expect.poll(() => served - before).toBe(batches.length + 4);
  const again = async () => {
    const from = performance.now();
    await post('/v1/begin', { ...waiting, waitMs: 300 });
    return performance.now() - from;
  };
  await expect.poll(again).toBeGreaterThan(290);
});

test('a record is read once a second, however many wait for it', async () => {
  const { recordKey } = await post('/v1/begin', { tool: 'keep', args: 'listened to' });
  const stop = new AbortController();
  const listening = Array.from({ length: 50 }, () =>
    fetch(`${server.url}/v1/events?key=${encodeURIComponent(recordKey)}`, {
      headers: { authorization },
      signal: stop.signal,
    }),
  );
  for (const { status } of await Promise.all(listening)) expect(status).toBe(200);
  await expect.poll(() => reads).toBeGreaterThan(50);
  const before = { reads, served };
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  stop.abort();
  expect(reads - before.reads).toBeLessThan(10);
  await expect.poll(() => served - before.served).toBe(listening.length);
});

/** Sends the beginning of a body, and waits for the rest. */
function sendHalf(path: string, announced: number, sent: number) {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.resume();
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: ${authorization}\r\nContent-Length: ${announced}\r\n\r\n`,
  );
  socket.write(' '.repeat(sent));
  return socket;
}

test('halves of logins, which need no token, keep nobody out who has one', async () => {
  const before = served;
  const half = 1024 * 1024;
  const strangers = Array.from({ length: 130 }, () => sendHalf('/login', half, half - 1));
  try {
    await expect.poll(() => served - before).toBe(strangers.length);
    const { outcome } = await post('/v1/begin', { tool: 'keep', args: 'x'.repeat(half - 1_000) });
    expect(outcome).toBe('execute');
  } finally {
    for (const socket of strangers) socket.destroy();
  }
});

test('a client that breaks off is not told to the operator as a failure of the server', async () => {
  const before = served;
  const told = warnings.length;
  const client = sendHalf('/v1/begin', 1_000, 500);
  await new Promise((resolve) => client.write(' ', resolve));
  client.destroy();
  await expect.poll(() => served - before).toBe(1);
  expect(warnings.slice(told)).toEqual([]);
});

test('asking for readiness often writes no more than asking once', async () => {
  await get('/readyz');
  const before = claims;
  await Promise.all(Array.from({ length: 50 }, () => get('/readyz')));
  expect(claims - before).toBeLessThan(10);
});

test('a policy that would make its attempts too long to be reported is refused', async () => {
  const policy = { effect: 'write-non-idempotent', per: 'ever', $comment: 'x'.repeat(100_000) };
  expect(await post('/v1/begin', { tool: 'wordy', args: 1, policy })).toMatchObject({ path: 'policy' });
});
