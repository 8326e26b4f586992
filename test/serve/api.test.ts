// The API over real HTTP: what a client in any language can rely on.

import { afterEach, expect, test, vi } from 'vitest';
import type { PolicyFile } from '../../src/mcp/index.ts';
import { overrideStore } from '../../src/semel/index.ts';
import {
  describeApi,
  digestToken,
  endpoints,
  type RunningServer,
  startServer,
  type TokenEntry,
} from '../../src/server/index.ts';
import { memoryStore } from '../../src/store/memory.ts';
import type { Store } from '../../src/store/store.ts';

const servers: RunningServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close(0)));
});

const names = ['admin', 'worker', 'reader', 'other', 'operator'] as const;
type Name = (typeof names)[number];
const secret = (name: Name) => `token-of-${name}-which-is-long-enough-to-be-one`;
const entry = (name: Name, role: TokenEntry['role'], namespace: string): TokenEntry => ({
  name,
  role,
  namespace,
  sha256: digestToken(secret(name)),
});
const tokens = [
  entry('admin', 'admin', 'shop'),
  entry('worker', 'execute', 'shop'),
  entry('reader', 'read', 'shop'),
  entry('other', 'execute', 'other-shop'),
  entry('operator', 'admin', '*'),
];

const policies: PolicyFile = {
  version: 1,
  tools: {
    refund: { effect: 'irreversible', per: 'ever', identity: ['payment'], content: ['reason'], lease: '10s' },
    'mail.send': { effect: 'write-non-idempotent', per: 'turn', content: ['body'] },
    'light.set': { effect: 'write-idempotent', identity: ['lamp'] },
    look: 'read',
    charge: { effect: 'irreversible', per: 'ever', provider: 'stripe', window: '1d' },
    brief: { effect: 'irreversible', per: 'ever', timeout: '100ms' },
  },
};

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: each endpoint has its own.
  readonly body: any;
}

async function open({ mayDefine = false, store = memoryStore() as Store } = {}) {
  const server = await startServer({
    store,
    policies,
    mayDefine,
    tokens,
    version: '0.0.0',
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: () => undefined,
  });
  servers.push(server);
  const send = async (
    method: string,
    path: string,
    init: RequestInit = {},
    as: Name | null = 'worker',
  ): Promise<Answer> => {
    const response = await fetch(`${server.url}${path}`, {
      method,
      ...init,
      headers: { ...(as === null ? {} : { authorization: `Bearer ${secret(as)}` }), ...init.headers },
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? undefined : JSON.parse(text),
    };
  };
  const post = (path: string, body: unknown, as?: Name, headers: Record<string, string> = {}) =>
    send(
      'POST',
      path,
      { body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } },
      as,
    );
  const get = (path: string, as: Name = 'reader', headers: Record<string, string> = {}) =>
    send('GET', path, { headers }, as);
  return { server, send, post, get };
}

const refund = { tool: 'refund', args: { payment: 'p1', reason: 'broken' } };

test('a call is executed once, and repeats get its value, also in other words', async () => {
  const { post } = await open();
  const begun = await post('/v1/begin', refund);
  expect(begun).toMatchObject({
    status: 200,
    body: { outcome: 'execute', number: 1, args: refund.args, leaseMs: 10_000 },
  });
  const busy = await post('/v1/begin', refund);
  expect(busy).toMatchObject({ status: 409, body: { code: 'IN_FLIGHT', retriable: true } });
  expect(busy.headers.get('content-type')).toBe('application/problem+json');
  expect(Number(busy.headers.get('retry-after'))).toBeGreaterThan(0);
  const { attempt } = begun.body;
  expect(await post('/v1/renew', { attempt })).toMatchObject({ status: 200, body: { held: true } });
  const settled = await post('/v1/settle', {
    attempt,
    outcome: 'succeeded',
    value: { id: 're_1' },
    remoteRef: 're_1',
  });
  expect(settled).toMatchObject({
    status: 200,
    body: { outcome: 'settled', recorded: true, receipt: { executed: true } },
  });
  const again = await post('/v1/begin', {
    tool: 'refund',
    args: { payment: 'p1', reason: 'in other words' },
  });
  expect(again).toMatchObject({
    status: 200,
    body: {
      outcome: 'replay',
      value: { id: 're_1' },
      receipt: { replayed: true, drift: ['reason'], remoteRef: 're_1' },
    },
  });
  // The answer to the report was lost: the client sends it again.
  expect(await post('/v1/settle', { attempt, outcome: 'succeeded', value: { id: 're_1' } })).toMatchObject({
    status: 200,
  });
});

test('a begin whose answer was lost is repeated with its token, and gets the same attempt', async () => {
  const { post } = await open();
  const token = 'x'.repeat(22);
  const [one, two] = [
    await post('/v1/begin', { ...refund, token }),
    await post('/v1/begin', { ...refund, token }),
  ];
  expect(two.body).toMatchObject({ outcome: 'execute', fence: one.body.fence, number: 1 });
  expect(await post('/v1/settle', { attempt: two.body.attempt, outcome: 'notLanded' })).toMatchObject({
    status: 200,
  });
  // A copy that was delayed on its way must not take the claim for a client that does not wait for it.
  expect(await post('/v1/begin', { ...refund, token })).toMatchObject({
    status: 409,
    body: { code: 'IN_FLIGHT' },
  });
  expect(await post('/v1/begin', refund)).toMatchObject({ body: { outcome: 'execute', number: 2 } });
});

test.each([
  ['failed', 'FAILED', { message: 'no such payment', code: 'E404' }],
  ['unknown', 'IN_DOUBT', { message: 'socket hang up' }],
] as const)('what is reported as %s reaches the next caller', async (outcome, code, error) => {
  const { post } = await open();
  const { attempt } = (await post('/v1/begin', refund)).body;
  expect(await post('/v1/settle', { attempt, outcome, error })).toMatchObject({
    status: 200,
    body: { outcome: 'settled' },
  });
  const next = await post('/v1/begin', refund);
  expect(next).toMatchObject({ status: 409, body: { code, ref: expect.stringMatching(/@1$/) } });
  expect(JSON.stringify(next.body)).toContain(error.message);
});

test('a doubt names the command that decides it, and not where the ledger is', async () => {
  const store = memoryStore();
  const { post } = await open({
    store: overrideStore(store, {
      open: async () => ({ ...(await store.open()), address: 'postgres://db.internal/ledger' }),
    }),
  });
  const { attempt } = (await post('/v1/begin', refund)).body;
  await post('/v1/settle', { attempt, outcome: 'unknown' });
  const { ref, correctiveAction } = (await post('/v1/begin', refund)).body;
  expect(correctiveAction).toContain(`run: npx semel resolve ${ref} landed/not-landed --namespace shop`);
  expect(correctiveAction).not.toContain('db.internal');
  expect((await post('/v1/resolve', { ref, verdict: 'landed' })).body).toMatchObject({
    detail: 'The token worker has the role execute.',
    correctiveAction: 'Use a token with the role admin.',
  });
});

test('a timeout counts by a clock that no step of the wall clock moves, also on another server', async () => {
  const store = memoryStore();
  const [one, other] = [await open({ store }), await open({ store })];
  const begin = async (tool: string) => (await one.post('/v1/begin', { tool, args: {} })).body.attempt;
  const renew = (attempt: string) => other.post('/v1/renew', { attempt });
  const hour = 3_600_000;
  for (const stepMs of [hour, -hour]) {
    const [charge, brief] = [await begin('charge'), await begin('brief')];
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + stepMs });
    try {
      expect(await renew(charge)).toMatchObject({ status: 200, body: { held: true } });
      await new Promise((resolve) => setTimeout(resolve, 120));
      expect(await renew(brief)).toMatchObject({ status: 409, body: { code: 'LEASE_LOST' } });
      for (const attempt of [charge, brief]) await one.post('/v1/settle', { attempt, outcome: 'notLanded' });
    } finally {
      vi.useRealTimers();
    }
  }
});

test('a report counts under the terms of its attempt, though the server has learned others since', async () => {
  const store = memoryStore();
  const [before, after] = [await open({ store, mayDefine: true }), await open({ store, mayDefine: true })];
  const terms = { effect: 'irreversible', per: 'ever' };
  const older = { ...terms, identity: ['order'] };
  const newer = { ...terms, identity: ['order', 'part'] };
  const ship = (policy: object, part: number) => ({ tool: 'ship', policy, args: { order: 7, part } });
  const { attempt } = (await before.post('/v1/begin', ship(older, 1))).body;
  // The program was changed, and the server started again: the older program still runs.
  expect(await after.post('/v1/begin', ship(newer, 1))).toMatchObject({ body: { outcome: 'execute' } });
  expect(await after.post('/v1/renew', { attempt })).toMatchObject({ status: 200, body: { held: true } });
  const report = { attempt, outcome: 'succeeded', value: 'sent' };
  expect(await after.post('/v1/settle', report)).toMatchObject({ status: 200, body: { recorded: true } });
  expect(await before.post('/v1/begin', ship(older, 1))).toMatchObject({ body: { value: 'sent' } });
  // Calls are still of the newer terms only.
  expect(await after.post('/v1/begin', ship(newer, 2))).toMatchObject({ body: { outcome: 'execute' } });
  expect(await after.post('/v1/begin', ship(older, 3))).toMatchObject({ body: { code: 'CONTRACT_INVALID' } });
});

test('a client that stops renewing is a worker that died: in doubt, and settled by a person', async () => {
  const { post, get } = await open();
  const { attempt } = (await post('/v1/begin', refund)).body;
  await new Promise((resolve) => setTimeout(resolve, 10_100));
  const doubt = await post('/v1/begin', refund);
  expect(doubt).toMatchObject({ status: 409, body: { code: 'IN_DOUBT' } });
  const { ref } = doubt.body;
  expect((await get('/v1/doubts')).body.items).toMatchObject([{ contract: 'refund', inDoubt: true, ref }]);
  expect((await get('/v1/doubts/groups')).body.groups).toMatchObject([{ contract: 'refund', refs: [ref] }]);
  expect(
    await post('/v1/resolve', { ref, verdict: 'landed', value: { id: 're_9' }, note: 'seen in Stripe' }),
  ).toMatchObject({
    status: 403,
    body: { code: 'NOT_PERMITTED' },
  });
  const landed = { ref, verdict: 'landed', value: { id: 're_9' }, note: 'seen in Stripe' };
  expect(await post('/v1/resolve', landed, 'admin')).toMatchObject({
    status: 200,
    body: { record: { status: 'succeeded' } },
  });
  expect(await post('/v1/resolve', landed, 'admin')).toMatchObject({
    status: 409,
    body: { code: 'RESOLVE_STALE' },
  });
  expect((await post('/v1/begin', refund)).body).toMatchObject({ outcome: 'replay', value: { id: 're_9' } });
  // It was alive after all: its report is kept, and nothing is done again.
  expect(await post('/v1/renew', { attempt })).toMatchObject({ status: 409, body: { code: 'LEASE_LOST' } });
  expect((await post('/v1/settle', { attempt, outcome: 'succeeded', value: { id: 're_1' } })).status).toBe(
    200,
  );
  const shown = (await get(`/v1/record?ref=${encodeURIComponent(ref)}`)).body;
  expect(shown.history).toContainEqual(
    expect.objectContaining({ type: 'resolved', detail: expect.objectContaining({ by: 'admin' }) }),
  );
});

test('an attempt with an explicit dispatch is free if its client dies before', async () => {
  const { post } = await open();
  const first = await post('/v1/begin', { ...refund, dispatch: 'explicit' });
  expect(first.body.outcome).toBe('execute');
  // Succeeding without a dispatch cannot be true: it is in doubt.
  expect((await post('/v1/settle', { attempt: first.body.attempt, outcome: 'succeeded' })).status).toBe(409);
  const other = { tool: 'refund', args: { payment: 'p2' }, dispatch: 'explicit' };
  const { attempt } = (await post('/v1/begin', other)).body;
  expect(await post('/v1/dispatch', { attempt, prepared: { text: 'Dear Ada' } })).toMatchObject({
    status: 200,
  });
  expect((await post('/v1/settle', { attempt, outcome: 'succeeded', value: 1 })).status).toBe(200);
});

test('the key for a provider is given out, and stays the same for a re-run', async () => {
  const { post } = await open();
  const call = { tool: 'charge', args: { order: 7 } };
  const first = (await post('/v1/begin', call)).body;
  expect(first.key).toEqual(expect.any(String));
  await post('/v1/settle', { attempt: first.attempt, outcome: 'unknown', error: { message: 'timed out' } });
  const rerun = (await post('/v1/begin', call)).body;
  expect(rerun).toMatchObject({ outcome: 'execute', number: 2, key: first.key });
});

test('a note is on the record before the attempt ends', async () => {
  const { post, get } = await open();
  const { attempt, recordKey } = (await post('/v1/begin', refund)).body;
  await post('/v1/renew', { attempt, remoteRef: 're_1' });
  expect((await get(`/v1/record?ref=${encodeURIComponent(recordKey)}`)).body.record).toMatchObject({
    remoteRef: 're_1',
  });
  await post('/v1/renew', { attempt, remoteRef: 're_2' });
  await post('/v1/settle', { attempt, outcome: 'succeeded', value: 1 });
  expect((await get(`/v1/record?ref=${encodeURIComponent(recordKey)}`)).body.record).toMatchObject({
    remoteRef: 're_2',
    status: 'succeeded',
  });
});

test('reads and writes that may be repeated always run', async () => {
  const { post } = await open();
  const read = await post('/v1/begin', { tool: 'look', args: {} });
  expect(read.body).toMatchObject({ outcome: 'execute', claimed: false });
  expect(await post('/v1/settle', { attempt: read.body.attempt, outcome: 'succeeded' })).toMatchObject({
    status: 200,
  });
  for (const on of [true, false, true]) {
    const { attempt, outcome } = (await post('/v1/begin', { tool: 'light.set', args: { lamp: 1, on } })).body;
    expect(outcome).toBe('execute');
    await post('/v1/settle', { attempt, outcome: 'succeeded', value: on });
  }
});

test('a waiter gets the value of the one who executes', async () => {
  const { post } = await open();
  const { attempt } = (await post('/v1/begin', refund)).body;
  const waiting = post('/v1/begin', { ...refund, waitMs: 20_000 });
  await post('/v1/settle', { attempt, outcome: 'succeeded', value: 'done' });
  expect((await waiting).body).toMatchObject({ outcome: 'replay', value: 'done' });
});

test('a batch answers for each item', async () => {
  const { post } = await open();
  const items = [1, 2, 1].map((payment) => ({ tool: 'refund', args: { payment } }));
  const { body } = await post('/v1/begin', { items: [...items, { tool: 'nothing' }] });
  expect(body.items.map(({ status }: Answer) => status).sort()).toEqual([200, 200, 400, 409]);
  const attempts = body.items
    .filter((item: Answer) => item.status === 200)
    .map((item: Answer) => item.body.attempt);
  const settled = await post('/v1/settle', {
    items: attempts.map((attempt: string) => ({ attempt, outcome: 'succeeded' })),
  });
  expect(settled.body.items).toMatchObject([{ status: 200 }, { status: 200 }]);
});

test('tools are defined by clients only where the operator allows it, and never differently', async () => {
  const policy = { effect: 'write-non-idempotent', per: 'ever', identity: ['id'] };
  const call = { tool: 'note.add', args: { id: 1, text: 'a' }, policy };
  const closed = await open();
  expect(await closed.post('/v1/begin', call)).toMatchObject({
    status: 400,
    body: { code: 'CONTRACT_INVALID' },
  });
  const free = await open({ mayDefine: true });
  const { attempt } = (await free.post('/v1/begin', call)).body;
  expect(attempt).toEqual(expect.any(String));
  expect(await free.post('/v1/begin', { ...call, policy: { ...policy, identity: ['text'] } })).toMatchObject({
    status: 400,
    body: {
      code: 'CONTRACT_INVALID',
      detail: expect.stringContaining('fields'),
      correctiveAction: expect.stringContaining('restart it'),
    },
  });
  expect(await free.post('/v1/begin', { ...refund, policy: { effect: 'read' } })).toMatchObject({
    status: 400,
  });
  expect(await free.post('/v1/settle', { attempt, outcome: 'succeeded' })).toMatchObject({ status: 200 });
  expect((await free.get('/v1/tools')).body.tools).toContainEqual(
    expect.objectContaining({ name: 'note.add', source: 'client' }),
  );
});

test('a server that was restarted takes reports about tools that clients had defined', async () => {
  const store = memoryStore();
  const kept: Store = new Proxy(store, {
    get: (target, name) => (name === 'close' ? async () => undefined : Reflect.get(target, name)),
  });
  const before = await open({ mayDefine: true, store: kept });
  const call = { tool: 'note.add', args: { id: 1 }, policy: { effect: 'write-non-idempotent', per: 'ever' } };
  const { attempt } = (await before.post('/v1/begin', call)).body;
  await before.server.close(0);
  const after = await open({ mayDefine: true, store: kept });
  expect((await after.post('/v1/settle', { attempt, outcome: 'succeeded', value: 7 })).status).toBe(200);
  expect((await after.post('/v1/begin', call)).body).toMatchObject({ outcome: 'replay', value: 7 });
});

test('the namespace comes from the token', async () => {
  const { post, get } = await open();
  const { attempt } = (await post('/v1/begin', refund)).body;
  await post('/v1/settle', { attempt, outcome: 'succeeded', value: 'mine' });
  const others = await post('/v1/begin', refund, 'other');
  expect(others.body.outcome).toBe('execute');
  expect(await post('/v1/settle', { attempt, outcome: 'failed' }, 'other')).toMatchObject({ status: 400 });
  expect(await post('/v1/begin', refund, 'other', { 'semel-namespace': 'shop' })).toMatchObject({
    status: 403,
  });
  expect((await get('/v1/records', 'operator', { 'semel-namespace': 'shop' })).body.items).toHaveLength(1);
  expect((await get('/v1/records', 'operator')).body.items).toHaveLength(0);
  const [record] = (await get('/v1/records')).body.items;
  expect(record).toMatchObject({ namespace: 'shop', value: 'mine', status: 'succeeded' });
});

test('two callers of one namespace do not get each other’s results', async () => {
  const { post } = await open();
  const { attempt } = (await post('/v1/begin', { ...refund, caller: 'ada' })).body;
  await post('/v1/settle', { attempt, outcome: 'succeeded', value: 'for ada' });
  const other = await post('/v1/begin', { ...refund, caller: 'bob' });
  expect(other.status).not.toBe(200);
  expect(JSON.stringify(other.body)).not.toContain('for ada');
});

test.each([
  ['without a token', 401, 'POST', '/v1/begin', null, {}],
  ['with a wrong token', 401, 'POST', '/v1/begin', null, { authorization: `Bearer ${'x'.repeat(40)}` }],
  ['by a reader', 403, 'POST', '/v1/begin', 'reader', {}],
  ['of an unknown path', 404, 'GET', '/v1/nothing', 'admin', {}],
  ['with another method', 405, 'DELETE', '/v1/begin', 'admin', {}],
  ['by a web page', 403, 'POST', '/v1/begin', 'admin', { origin: 'https://evil.example' }],
  ['by a web page of another port', 403, 'POST', '/v1/begin', 'admin', { origin: 'http://127.0.0.1' }],
  ['by a web page of another name', 403, 'POST', '/v1/begin', 'admin', { origin: 'http://localhost' }],
  ['by a web page without an origin', 403, 'GET', '/v1/records', 'admin', { 'sec-fetch-site': 'cross-site' }],
  ['in another media type', 415, 'POST', '/v1/begin', 'admin', { 'content-type': 'text/plain' }],
  [
    'in another character set',
    415,
    'POST',
    '/v1/begin',
    'admin',
    { 'content-type': 'application/json; charset=utf-7' },
  ],
  ['compressed', 415, 'POST', '/v1/begin', 'admin', { 'content-encoding': 'gzip' }],
] as const)('a request %s is refused with %d', async (_, status, method, path, as, headers) => {
  const { send } = await open();
  const answer = await send(
    method,
    path,
    {
      headers: { 'content-type': 'application/json', ...headers },
      ...(method === 'GET' ? {} : { body: JSON.stringify(refund) }),
    },
    as as Name | null,
  );
  expect(answer.status).toBe(status);
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(answer.headers.get('access-control-allow-origin')).toBeNull();
});

test.each<[string, string, string]>([
  ['no JSON', '{', 'not JSON'],
  ['a list', '[]', 'not an object'],
  ['an unknown field', '{"tool":"refund","arg":1}', '`args`'],
  ['no tool', '{"args":{}}', '`tool` is missing'],
  ['a name twice', '{"tool":"refund","tool":"look"}', 'twice'],
  ['a number that would be rounded', '{"tool":"refund","args":{"payment":9007199254740993}}', 'exactly'],
  ['a fraction that would be rounded', '{"tool":"refund","args":{"payment":9007199254740993.0}}', 'exactly'],
  ['a number out of range', '{"tool":"refund","args":{"payment":1e400}}', 'exactly'],
  ['a wait that is too long', '{"tool":"refund","waitMs":999999}', 'integer from 0 to 60000'],
  ['an instant without an offset', '{"tool":"refund","at":"2026-11-18T09:00:00"}', 'instant'],
  ['deep nesting', `{"tool":"refund","args":${'['.repeat(600)}${']'.repeat(600)}}`, 'deeper'],
  ['a made-up attempt', '{"tool":"refund"}', ''],
])('bad input is refused with its place: %s', async (_, body, words) => {
  const { send } = await open();
  const headers = { 'content-type': 'application/json' };
  const answer = await send('POST', words === '' ? '/v1/renew' : '/v1/begin', { body, headers });
  expect(answer.status).toBe(400);
  expect(`${answer.body.detail} ${answer.body.correctiveAction}`).toContain(words);
});

test('numbers that are exact pass', async () => {
  const { send } = await open();
  const headers = { 'content-type': 'application/json' };
  const numbers = '[0.1,0.30000000000000004,1e21,-0,15e-1,9007199254740991,1.7976931348623157e308]';
  const answer = await send('POST', '/v1/begin', {
    body: `{"tool":"refund","args":{"payment":${numbers}}}`,
    headers,
  });
  expect(answer.body.outcome).toBe('execute');
});

test.each(['bm90IGEgdGlja2V0', 'W10', 'WzEsInJlZnVuZCIsbnVsbCxbXV0', '!!!'])(
  'a made-up attempt is refused: %s',
  async (attempt) => {
    const { post } = await open();
    expect(await post('/v1/settle', { attempt, outcome: 'succeeded' })).toMatchObject({
      status: 400,
      body: { path: 'attempt' },
    });
  },
);

test.each([
  [
    'another claim token',
    (bytes: Buffer) => bytes.toString('latin1').replace(/[0-9a-f]{16}/, '0'.repeat(16)),
  ],
  ['another tool', (bytes: Buffer) => bytes.toString('latin1').replace('"refund"', '"light.set"')],
  ['no signature', (bytes: Buffer) => bytes.subarray(32).toString('latin1')],
  ['an empty signature', (bytes: Buffer) => `${'\0'.repeat(32)}${bytes.subarray(32).toString('latin1')}`],
])('an attempt with %s is not an attempt', async (_, forge) => {
  const { post, get } = await open();
  const ended = (await post('/v1/begin', { ...refund, caller: 'ada' })).body;
  await post('/v1/settle', { attempt: ended.attempt, outcome: 'succeeded', value: 'for ada' });
  const doubtful = (await post('/v1/begin', { tool: 'refund', args: { payment: 'p2' } })).body;
  await post('/v1/settle', { attempt: doubtful.attempt, outcome: 'unknown' });
  for (const { attempt } of [ended, doubtful]) {
    const made = Buffer.from(forge(Buffer.from(attempt, 'base64url')), 'latin1').toString('base64url');
    expect(made).not.toBe(attempt);
    for (const [path, more] of [
      ['/v1/renew', {}],
      ['/v1/dispatch', {}],
      ['/v1/settle', { outcome: 'succeeded', value: 'forged' }],
      ['/v1/settle', { outcome: 'unknown' }],
    ] as const) {
      const answer = await post(path, { attempt: made, ...more });
      expect(answer).toMatchObject({ status: 400, body: { path: 'attempt' } });
      expect(JSON.stringify(answer.body)).not.toContain('for ada');
    }
  }
  // A doubt is decided by those who may.
  expect((await get('/v1/doubts')).body.items).toHaveLength(1);
});

test('an attempt counts in its own namespace only, also for an operator', async () => {
  const { post } = await open();
  const { attempt } = (await post('/v1/begin', refund)).body;
  const report = { attempt, outcome: 'succeeded' };
  const elsewhere = { 'semel-namespace': 'other-shop' };
  expect((await post('/v1/settle', report, 'operator', elsewhere)).status).toBe(400);
  expect((await post('/v1/settle', report, 'other')).status).toBe(400);
  expect((await post('/v1/settle', report, 'operator', { 'semel-namespace': 'shop' })).status).toBe(200);
});

test('it says whether it lives and can write, without a token', async () => {
  const { send } = await open();
  expect(await send('GET', '/livez', {}, null)).toMatchObject({ status: 200 });
  expect(await send('GET', '/readyz', {}, null)).toMatchObject({ status: 200, body: { status: 'ok' } });
  const api = await send('GET', '/openapi.json', {}, null);
  expect(api.body).toEqual(JSON.parse(JSON.stringify(describeApi(endpoints, '0.0.0'))));
});

test("in a program of one's own, other machines are only let in with TLS or behind a proxy", async () => {
  const options = { store: memoryStore(), tokens, listen: { host: '0.0.0.0', port: 0 } };
  await expect(startServer(options)).rejects.toMatchObject({ code: 'INVALID_ARGS', path: 'listen.host' });
  servers.push(await startServer({ ...options, behindProxy: ['10.0.0.0/8', '::1'] }));
});

test("in a program of one's own, a policy with a mistake is refused at the start", async () => {
  const policies = {
    version: 1 as const,
    tools: { refund: { effect: 'irreversible', pre: 'ever' } as never },
  };
  await expect(startServer({ store: memoryStore(), tokens, policies })).rejects.toThrow(/pre/);
});
