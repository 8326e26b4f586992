// Steps, hand-offs and values that cannot be sent, over HTTP: with the names and keys of the library.

import { afterEach, expect, test } from 'vitest';
import { limits } from '../../src/core/limits.ts';
import { createSemel } from '../../src/index.ts';
import { digestToken, type RunningServer, startServer } from '../../src/server/index.ts';
import { memoryStore } from '../../src/store/memory.ts';

const secret = 'a-token-that-is-long-enough-to-be-one';
const servers: RunningServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close(0)));
});

async function open({ mayDefine = false } = {}) {
  const store = memoryStore();
  const server = await startServer({
    store,
    policies: {
      version: 1,
      tools: {
        'order.pay': { effect: 'irreversible', per: 'ever', identity: ['order'] },
        mail: { effect: 'irreversible', per: 'turn' },
        look: 'read',
      },
    },
    mayDefine,
    tokens: [{ name: 'worker', role: 'execute', namespace: 'shop', sha256: digestToken(secret) }],
    version: '0.0.0',
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: () => undefined,
  });
  servers.push(server);
  const post = async (path: string, body: unknown) => {
    const response = await fetch(`${server.url}/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    // biome-ignore lint/suspicious/noExplicitAny: each endpoint has its own.
    return { status: response.status, body: (await response.json()) as any };
  };
  return { store, post };
}

const pay = { tool: 'order.pay', args: { order: 7 } };

test('a step that landed is replayed by the next attempt, here and in the library', async () => {
  const { store, post } = await open();
  const { attempt } = (await post('begin', pay)).body;
  const step = await post('step', { attempt, step: 'charge' });
  expect(step).toMatchObject({ status: 200, body: { outcome: 'execute' } });
  await post('settle', { attempt: step.body.attempt, outcome: 'succeeded', value: 'ch_1' });
  expect(await post('step', { attempt, step: 'charge' })).toMatchObject({
    body: { outcome: 'replay', value: 'ch_1' },
  });
  await post('settle', { attempt, outcome: 'notLanded' });
  const semel = createSemel({ store, namespace: 'shop', onWarning: () => undefined });
  const charged: unknown[] = [];
  const tool = semel.tool({
    name: 'order.pay',
    effect: 'irreversible',
    per: 'ever',
    identity: ['order'],
    run: async (_: { order: number }, ctx) => {
      charged.push(await ctx.step('charge', () => 'ch_2'));
      return 'paid';
    },
  });
  expect(await tool({ order: 7 })).toBe('paid');
  expect(charged).toEqual(['ch_1']);
});

test('steps with ids in their names refuse no further ones, and reports of the first still count', async () => {
  const { post } = await open();
  const { attempt } = (await post('begin', pay)).body;
  const first = (await post('step', { attempt, step: 'line-0' })).body;
  for (let n = 1; n < limits.guardedTools + 20; n += 20)
    await Promise.all(
      Array.from({ length: 20 }, async (_, k) => {
        const { body } = await post('step', { attempt, step: `line-${n + k}` });
        expect(body.outcome, body.detail).toBe('execute');
      }),
    );
  const settled = await post('settle', { attempt: first.attempt, outcome: 'succeeded', value: 'l_0' });
  expect(settled.body).toMatchObject({ recorded: true });
  expect((await post('step', { attempt, step: 'line-0' })).body).toMatchObject({
    outcome: 'replay',
    value: 'l_0',
  });
});

test('a step of an attempt that is over, or of a read, is refused', async () => {
  const { post } = await open();
  const { attempt } = (await post('begin', pay)).body;
  await post('settle', { attempt, outcome: 'succeeded' });
  expect(await post('step', { attempt, step: 'charge' })).toMatchObject({ body: { code: 'LEASE_LOST' } });
  const read = (await post('begin', { tool: 'look', args: {} })).body;
  expect(await post('step', { attempt: read.attempt, step: 'charge' })).toMatchObject({ status: 400 });
  expect(await post('step', { attempt, step: 'a.b' })).toMatchObject({ status: 400 });
});

test('a hand-off carries an identity, and a new conversation in it has no turn', async () => {
  const { post } = await open();
  const { handoff } = (await post('handoff', { conversation: 'c-1', turn: 't-1' })).body;
  const first = await post('begin', { tool: 'mail', args: { to: 'ann' }, handoff });
  expect(first).toMatchObject({ body: { outcome: 'execute' } });
  const same = { tool: 'mail', args: { to: 'ann' }, conversation: 'c-1', turn: 't-1' };
  expect(await post('begin', same)).toMatchObject({ body: { code: 'IN_FLIGHT' } });
  const other = { tool: 'mail', args: { to: 'ann' }, handoff, conversation: 'c-2' };
  expect(await post('begin', other)).toMatchObject({ body: { code: 'NO_IDENTITY' } });
  const nested = (await post('handoff', { handoff, turn: 't-2' })).body.handoff;
  expect(await post('begin', { tool: 'mail', args: { to: 'ann' }, handoff: nested })).toMatchObject({
    body: { outcome: 'execute' },
  });
  expect(await post('handoff', {})).toMatchObject({ body: { code: 'NO_IDENTITY' } });
});

test('a value that the executor cannot send is recorded as done, and a repeat is told so', async () => {
  const { post } = await open();
  const { attempt, key } = (await post('begin', pay)).body;
  expect(key).toMatch(/^[0-9a-f-]{36}$/);
  const settled = await post('settle', { attempt, outcome: 'succeeded', omitted: 'it is a socket' });
  expect(settled).toMatchObject({ status: 200, body: { receipt: { omitted: 'it is a socket' } } });
  expect(await post('begin', pay)).toMatchObject({ status: 409, body: { code: 'RESULT_OMITTED' } });
});

test('a program that was started again with other terms is served, and reports of the old one still count', async () => {
  const { post } = await open({ mayDefine: true });
  const old = {
    tool: 'note',
    args: { id: 1 },
    policy: { effect: 'irreversible', per: 'ever', lease: '10s' },
  };
  const { attempt } = (await post('begin', old)).body;
  const changed = { ...old, args: { id: 2 }, policy: { ...old.policy, lease: '20s' } };
  expect(await post('begin', changed)).toMatchObject({ body: { outcome: 'execute', leaseMs: 20_000 } });
  expect(await post('renew', { attempt })).toMatchObject({ body: { held: true, leaseMs: 10_000 } });
  expect(await post('settle', { attempt, outcome: 'succeeded', value: 1 })).toMatchObject({ status: 200 });
  expect(await post('begin', old)).toMatchObject({ body: { outcome: 'replay', value: 1 } });
  const filed = { ...pay, policy: { effect: 'irreversible', per: 'ever' } };
  expect(await post('begin', filed)).toMatchObject({ body: { code: 'CONTRACT_INVALID' } });
});

test('a client cannot keep a job from running by a tool or a step with a name of the job', async () => {
  const { post } = await open({ mayDefine: true });
  const { attempt } = (await post('jobs/begin', { job: 'nightly', per: 'day' })).body;
  expect(await post('step', { attempt, step: 'late' })).toMatchObject({ status: 400 });
  expect(await post('jobs/begin', { job: 'nightly.late', per: 'day' })).toMatchObject({
    body: { outcome: 'execute' },
  });
  const policy = { effect: 'irreversible', per: 'ever' };
  for (const tool of ['run.weekly', 'lock.weekly', 'step.load'])
    expect(await post('begin', { tool, policy, args: {} })).toMatchObject({
      status: 400,
      body: { code: 'CONTRACT_INVALID' },
    });
  expect(await post('jobs/begin', { job: 'weekly', per: 'week' })).toMatchObject({
    body: { outcome: 'execute' },
  });
});

test('the lock of a job is only given back: no report of it ends the job for good', async () => {
  const { post } = await open();
  const { lock, attempt } = (await post('jobs/begin', { job: 'nightly', per: 'day' })).body;
  for (const outcome of ['succeeded', 'failed', 'unknown'])
    expect(await post('settle', { attempt: lock, outcome })).toMatchObject({ status: 400 });
  await post('settle', { attempt, outcome: 'notLanded' });
  expect(await post('settle', { attempt: lock, outcome: 'notLanded' })).toMatchObject({ status: 200 });
  expect(await post('jobs/begin', { job: 'nightly', per: 'day' })).toMatchObject({
    body: { outcome: 'execute' },
  });
});
