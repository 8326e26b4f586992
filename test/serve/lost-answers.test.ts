// Clients that give up, repeat themselves, stand still or mix things up. What counts is how often an effect would be made, so
// each test asks how many clients were allowed to make it.

import { afterEach, expect, test } from 'vitest';
import { createSemel } from '../../src/index.ts';
import type { PolicyFile } from '../../src/mcp/index.ts';
import { googleCalendar } from '../../src/providers/index.ts';
import { digestToken, type RunningServer, startServer } from '../../src/server/index.ts';
import { memoryStore } from '../../src/store/memory.ts';
import type { ClaimAnswer, Store } from '../../src/store/store.ts';

const servers: RunningServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close(0)));
});

const policies: PolicyFile = {
  version: 1,
  tools: {
    refund: { effect: 'irreversible', per: 'ever', identity: ['payment'], lease: '10s' },
    push: {
      effect: 'irreversible',
      per: 'ever',
      provider: { name: 'google.calendar', window: '1h' },
      window: '30m',
      lease: '10s',
    },
  },
};
const secret = 'token-of-the-client-which-is-long-enough-to-be-one';
const tokens = [{ name: 'client', role: 'admin', namespace: '*', sha256: digestToken(secret) }] as const;
const refund = { tool: 'refund', args: { payment: 'p1' } };
const token = 'chosen-by-the-client-0001';

/** A ledger whose time the test moves, and whose claims it can delay or lose. */
function openLedger() {
  let aheadMs = 0;
  const time = () => ({
    wall: Date.now() + aheadMs,
    mono: performance.now() + aheadMs,
    boot: 'memory',
    steady: true,
  });
  const store = memoryStore({ time });
  const faults: { onClaimed?: ((answer: ClaimAnswer) => Promise<void>) | undefined; isFull?: boolean } = {};
  const asked = { settle: 0 };
  const claim: Store['claim'] = async (request) => {
    const answer = await store.claim(request);
    await faults.onClaimed?.(answer);
    return answer;
  };
  const settle: Store['settle'] = async (request) => {
    asked.settle += 1;
    if (faults.isFull === true) throw new Error('database or disk is full');
    return store.settle(request);
  };
  return {
    faults,
    asked,
    store: { ...store, claim, settle, close: async () => undefined } satisfies Store,
    sleep: (ms: number) => {
      aheadMs += ms;
    },
  };
}

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: each endpoint has its own.
  readonly body: any;
}

async function open(store: Store) {
  const server = await startServer({
    store,
    policies,
    mayDefine: false,
    tokens,
    version: '0.0.0',
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: () => undefined,
  });
  servers.push(server);
  const post = async (
    path: string,
    body: unknown,
    { signal, namespace = 'shop' }: { readonly signal?: AbortSignal; readonly namespace?: string } = {},
  ): Promise<Answer> => {
    const response = await fetch(`${server.url}/v1/${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
        'semel-namespace': namespace,
      },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
    return { status: response.status, body: await response.json() };
  };
  return { post, server };
}

function gate() {
  let pass: () => void = () => undefined;
  const passed = new Promise<void>((resolve) => {
    pass = resolve;
  });
  return { pass, passed };
}

test('a client that hangs up and repeats its begin keeps the attempt that it got', async () => {
  const { store, faults } = openLedger();
  const client = await open(store);
  const { post } = client;
  const [isClaimed, mayAnswer] = [gate(), gate()];
  faults.onClaimed = async () => {
    faults.onClaimed = undefined;
    isClaimed.pass();
    await mayAnswer.passed;
  };
  const impatient = new AbortController();
  const lost = post('begin', { ...refund, token }, { signal: impatient.signal }).catch(() => 'hung up');
  await isClaimed.passed;
  impatient.abort();
  expect(await lost).toBe('hung up');
  expect((await post('begin', { ...refund, token })).body.outcome).toBe('execute');
  // The claim of the first request is answered now, and its client is gone.
  mayAnswer.pass();
  await expectHeld(client, store);
});

test('a call whose client hung up before its answer is free for the next client', async () => {
  const { store, faults } = openLedger();
  const client = await open(store);
  const { post } = client;
  const [isClaimed, mayAnswer] = [gate(), gate()];
  faults.onClaimed = async () => {
    faults.onClaimed = undefined;
    isClaimed.pass();
    await mayAnswer.passed;
  };
  const impatient = new AbortController();
  const lost = post('begin', refund, { signal: impatient.signal }).catch(() => 'hung up');
  await isClaimed.passed;
  impatient.abort();
  expect(await lost).toBe('hung up');
  // The server has noticed it, since it answers later requests.
  await post('begin', { tool: 'refund', args: { payment: 'other' } });
  mayAnswer.pass();
  await expect.poll(async () => (await post('begin', refund)).body).toMatchObject({ outcome: 'execute' });
});

test('an ordinary call asks the store twice: its claim and its settlement', async () => {
  const { store } = openLedger();
  const asked: string[] = [];
  const counted = Object.fromEntries(
    (['claim', 'read', 'settle', 'renew', 'list'] as const).map((name) => [
      name,
      (...params: never[]) => {
        asked.push(name);
        return (store[name] as (...params: never[]) => unknown)(...params);
      },
    ]),
  );
  const { post } = await open({ ...store, ...counted });
  const begin = (payment: string) => post('begin', { tool: 'refund', args: { payment } });
  // The first one makes the key that attempts are signed with.
  const { attempt: first } = (await begin('p0')).body;
  await post('settle', { attempt: first, outcome: 'succeeded', value: 1 });
  asked.length = 0;
  const { attempt } = (await begin('p1')).body;
  const settled = await post('settle', { attempt, outcome: 'succeeded', value: { id: 're_1' } });
  expect(settled.body).toMatchObject({
    outcome: 'settled',
    recorded: true,
    value: { id: 're_1' },
    receipt: { executed: true, replayed: false, fence: 1, attempt: 1, drift: [] },
  });
  expect(asked).toEqual(['claim', 'settle']);
  expect((await begin('p1')).body).toMatchObject({ outcome: 'replay', value: { id: 're_1' } });
});

test('a success after somebody decided about its record is judged by the record', async () => {
  const { store } = openLedger();
  const { post } = await open(store);
  const { attempt, recordId, fence } = (await post('begin', refund)).body;
  await post('settle', { attempt, outcome: 'unknown' });
  const decision = { ref: `${recordId}@${fence}`, verdict: 'notLanded', force: true, note: 'not seen there' };
  expect((await post('resolve', decision)).status).toBe(200);
  const late = await post('settle', { attempt, outcome: 'succeeded', value: 1 });
  expect(late.body).toMatchObject({ outcome: 'settled', recorded: true, value: 1 });
  expect((await post('begin', refund)).body).toMatchObject({ outcome: 'replay', value: 1 });
  const again = await post('settle', { attempt, outcome: 'succeeded', value: 1 });
  expect(again.body).toMatchObject({ outcome: 'settled', recorded: true });
  expect((await post('settle', { attempt, outcome: 'failed' })).status).not.toBe(500);
});

test.each(['settle', 'read'] as const)(
  'a report that the store did not take (%s) is not answered with "nothing was run"',
  async (method) => {
    const { store } = openLedger();
    let isDown = false;
    const failing = async (...given: [never]) => {
      if (isDown) throw new Error('the connection was refused');
      return (store[method] as (...given: [never]) => unknown)(...given);
    };
    const { post } = await open({ ...store, [method]: failing });
    const { attempt } = (await post('begin', refund)).body;
    isDown = true;
    const outcome = method === 'settle' ? 'succeeded' : 'unknown';
    expect(await post('settle', { attempt, outcome, value: 1 })).toMatchObject({
      status: 503,
      body: { retriable: true, correctiveAction: expect.stringMatching(/^Do not run it again:/) },
    });
    isDown = false;
    if (method === 'read') return;
    // Whether its client reports again or not.
    await expect
      .poll(async () => (await post('begin', refund)).body, { timeout: 5_000 })
      .toMatchObject({ outcome: 'replay', value: 1 });
  },
);

test('a begin that failed because the store did not answer is repeated, and keeps its attempt', async () => {
  const { store, faults } = openLedger();
  const client = await open(store);
  const { post } = client;
  faults.onClaimed = async () => {
    throw new Error('the connection was lost');
  };
  expect(await post('begin', { ...refund, token })).toMatchObject({ status: 503, body: { retriable: true } });
  faults.onClaimed = undefined;
  expect((await post('begin', { ...refund, token })).body.outcome).toBe('execute');
  await expectHeld(client, store);
});

test('a dispatch after another client has taken the call over is refused', async () => {
  const { store, sleep } = openLedger();
  const { post } = await open(store);
  const slow = (await post('begin', { ...refund, dispatch: 'explicit' })).body;
  sleep(11_000);
  const quick = (await post('begin', { ...refund, dispatch: 'explicit' })).body;
  expect((await post('dispatch', { attempt: quick.attempt })).body).toEqual({ dispatched: true });
  expect(await post('dispatch', { attempt: slow.attempt })).toMatchObject({
    status: 409,
    body: { code: 'LEASE_LOST' },
  });
  expect((await post('settle', { attempt: quick.attempt, outcome: 'succeeded', value: 1 })).status).toBe(200);
  expect((await post('dispatch', { attempt: slow.attempt })).status).toBe(409);
});

test('a repeated dispatch is refused once the lease is over, or the attempt has ended', async () => {
  const { store, sleep } = openLedger();
  const { post } = await open(store);
  const { attempt } = (await post('begin', { ...refund, dispatch: 'explicit' })).body;
  expect((await post('dispatch', { attempt })).status).toBe(200);
  expect((await post('dispatch', { attempt })).status).toBe(200);
  sleep(11_000);
  expect(await post('dispatch', { attempt })).toMatchObject({ status: 409, body: { code: 'LEASE_LOST' } });
  expect((await post('renew', { attempt })).status).toBe(200);
  expect((await post('dispatch', { attempt })).status).toBe(200);
  expect((await post('settle', { attempt, outcome: 'succeeded', value: 1 })).status).toBe(200);
  expect((await post('dispatch', { attempt })).status).toBe(409);
});

test('a begin that is repeated late gets a whole lease', async () => {
  const { store, sleep } = openLedger();
  const { post } = await open(store);
  await post('begin', { ...refund, token });
  sleep(11_000);
  expect((await post('begin', { ...refund, token })).body.outcome).toBe('execute');
  expect((await post('begin', refund)).body).toMatchObject({ code: 'IN_FLIGHT' });
  sleep(9_000);
  expect((await post('begin', refund)).body).toMatchObject({ code: 'IN_FLIGHT' });
});

test('a begin is not answered again once its attempt was dispatched: its client has had the answer', async () => {
  const { store, sleep } = openLedger();
  const { post } = await open(store);
  const call = { ...refund, token, dispatch: 'explicit' };
  const { attempt } = (await post('begin', call)).body;
  expect((await post('begin', call)).body.outcome).toBe('execute');
  await post('dispatch', { attempt });
  expect(await post('begin', call)).toMatchObject({ status: 409, body: { code: 'IN_FLIGHT' } });
  sleep(11_000);
  expect(await post('begin', call)).toMatchObject({ status: 409 });
  expect(await post('begin', { ...call, token: `${token}-2` })).toMatchObject({
    status: 409,
    body: { code: 'IN_DOUBT' },
  });
});

test('equal items of a batch with one token get one attempt', async () => {
  const { store } = openLedger();
  const { post } = await open(store);
  const answer = await post('begin', { items: [1, 2].map(() => ({ ...refund, token })) });
  const executed = (answer.body.items ?? []).filter(({ body }: Answer) => body.outcome === 'execute');
  expect(executed.length).toBeLessThan(2);
});

test('a program and a client send the same key to a provider that has a format of its own', async () => {
  const { store } = openLedger();
  const { post } = await open(store);
  const { key, attempt } = (await post('begin', { tool: 'push', args: { topic: 'a' } })).body;
  await post('settle', { attempt, outcome: 'unknown' });
  const semel = createSemel({ store, namespace: 'shop', onWarning: () => undefined });
  const push = semel.tool({
    name: 'push',
    effect: 'irreversible',
    per: 'ever',
    provider: { ...googleCalendar, window: '1h', verified: true },
    window: '30m',
    lease: '10s',
    run: async (_: { topic: string }, ctx) => ctx.key,
  });
  expect(await push({ topic: 'a' })).toBe(key);
  await semel.close();
});

test('a report counts only in the namespace in which its attempt began', async () => {
  const { store } = openLedger();
  const { post } = await open(store);
  const call = { ...refund, key: 'order-7' };
  const mine = (await post('begin', call)).body;
  const theirs = (await post('begin', call, { namespace: 'bank' })).body;
  await post('settle', { attempt: theirs.attempt, outcome: 'unknown' }, { namespace: 'bank' });
  expect(
    (
      await post(
        'settle',
        { attempt: mine.attempt, outcome: 'succeeded', value: 'mine' },
        { namespace: 'bank' },
      )
    ).status,
  ).not.toBe(200);
  expect(await post('begin', call, { namespace: 'bank' })).toMatchObject({
    status: 409,
    body: { code: 'IN_DOUBT' },
  });
});

test('a token that was used for another call or caller gives nothing of that one away', async () => {
  const { store } = openLedger();
  const { post } = await open(store);
  const call = { ...refund, key: 'order-7', token, caller: 'ada' };
  expect((await post('begin', call)).body.outcome).toBe('execute');
  expect((await post('begin', call)).body.outcome).toBe('execute');
  const others = await post('begin', { ...call, caller: 'bob' });
  expect(others).toMatchObject({ status: 409, body: { code: 'IN_FLIGHT' } });
  expect(JSON.stringify(others.body)).not.toContain('p1');
  expect(await post('begin', { ...call, args: { payment: 'p2' } })).toMatchObject({
    status: 422,
    body: { code: 'KEY_CONFLICT' },
  });
});

test('a re-run gets the key of the first attempt, and cannot be sent without it', async () => {
  const { store } = openLedger();
  const { post } = await open(store);
  const call = { tool: 'push', args: { topic: 'a' } };
  const first = (await post('begin', call)).body;
  await post('settle', { attempt: first.attempt, outcome: 'unknown' });
  const { attempt, key } = (await post('begin', call)).body;
  expect(key).toBe(first.key);
  const unkeyed = await post('dispatch', { attempt, keyed: false });
  expect(unkeyed).toMatchObject({ status: 409, body: { code: 'IN_DOUBT' } });
  expect((await post('dispatch', { attempt })).status).toBe(200);
});

test('a request without the key may be dispatched again, if the answer was lost', async () => {
  const { store } = openLedger();
  const { post } = await open(store);
  const { attempt } = (await post('begin', { tool: 'push', args: { topic: 'a' } })).body;
  for (const _ of [1, 2]) expect((await post('dispatch', { attempt, keyed: false })).status).toBe(200);
});

test('a report that the record does not take over is not called recorded', async () => {
  const { store, sleep } = openLedger();
  const { post } = await open(store);
  const { attempt } = (await post('begin', refund)).body;
  sleep(11_000);
  const { ref } = (await post('begin', refund)).body;
  await post('resolve', { ref, verdict: 'abandon' });
  const landed = { attempt, outcome: 'succeeded', value: 1 };
  expect((await post('settle', landed)).body).toMatchObject({ outcome: 'settled', recorded: false });
  const other = (await post('begin', { ...refund, args: { payment: 'p2' } })).body;
  const settle = (outcome: string) => post('settle', { attempt: other.attempt, outcome, value: 1 });
  expect((await settle('succeeded')).body).toMatchObject({ recorded: true });
  expect((await settle('failed')).body).toMatchObject({ outcome: 'settled', recorded: false });
});

test('a step is refused once the lease of its attempt is over', async () => {
  const { store, sleep } = openLedger();
  const { post } = await open(store);
  const { attempt } = (await post('begin', refund)).body;
  const step = (name: string) => post('step', { attempt, step: name });
  expect((await step('one')).body.outcome).toBe('execute');
  sleep(11_000);
  expect(await step('two')).toMatchObject({ status: 409, body: { code: 'LEASE_LOST' } });
  expect((await post('renew', { attempt })).status).toBe(200);
  expect((await step('two')).body.outcome).toBe('execute');
});

const nightly = { job: 'nightly', per: 'day', at: '2026-06-19T07:00:00Z', lease: 60_000 };

test('a step of a job is refused once its lease is over', async () => {
  const { store, sleep } = openLedger();
  const { post } = await open(store);
  const { attempt, lock } = (await post('jobs/begin', nightly)).body;
  const step = () => post('jobs/step', { attempt, kind: 'step', name: 'draft' });
  sleep(61_000);
  // The run of another slot may have the lock by then.
  const next = (await post('jobs/begin', { ...nightly, at: '2026-06-20T07:00:00Z' })).body;
  expect(next.outcome).toBe('execute');
  expect(await step()).toMatchObject({ status: 409, body: { code: 'LEASE_LOST' } });
  expect((await post('renew', { attempt: lock })).status).toBe(409);
  await post('settle', { attempt: next.attempt, outcome: 'notLanded' });
  await post('settle', { attempt: next.lock, outcome: 'notLanded' });
  expect((await post('renew', { attempt })).status).toBe(200);
  expect((await step()).body.outcome).toBe('execute');
});

test('a step of a job waits for one that somebody else computes', async () => {
  const { store } = openLedger();
  const { post } = await open(store);
  const { attempt } = (await post('jobs/begin', nightly)).body;
  const step = (more = {}) => post('jobs/step', { attempt, kind: 'step', name: 'draft', ...more });
  const first = (await step()).body;
  expect(await step()).toMatchObject({ status: 409, body: { code: 'IN_FLIGHT' } });
  const waiting = step({ waitMs: 60_000 });
  await post('settle', { attempt: first.attempt, outcome: 'succeeded', value: 'text' });
  expect((await waiting).body).toMatchObject({ outcome: 'replay', value: 'text' });
});

test('a step of a job that was taken over while it waited is not begun', async () => {
  const { store, sleep, faults } = openLedger();
  const { post } = await open(store);
  const run = (await post('jobs/begin', nightly)).body;
  const step = (attempt: string, more = {}) =>
    post('jobs/step', { attempt, kind: 'step', name: 'draft', ...more });
  expect((await step(run.attempt)).body.outcome).toBe('execute');
  const isAsked = gate();
  faults.onClaimed = async () => isAsked.pass();
  const waiting = step(run.attempt, { waitMs: 60_000 });
  await isAsked.passed;
  faults.onClaimed = undefined;
  sleep(61_000);
  const next = (await post('jobs/begin', nightly)).body;
  expect(next.outcome).toBe('execute');
  expect(await waiting).toMatchObject({ status: 409, body: { code: 'LEASE_LOST' } });
  expect((await step(next.attempt)).body.outcome).toBe('execute');
});

test.each([
  ['lost', 'lock.'],
  ['not sent', 'lock.'],
  ['lost', 'run.'],
  ['not sent', 'run.'],
])(
  'a job whose claim was %s (%s) is begun by the repeated request, not called busy',
  async (how, contract) => {
    const ledger = openLedger();
    let isDown = true;
    const claim: Store['claim'] = async (request) => {
      const isHit = isDown && request.key.startsWith(contract);
      if (isHit && how === 'not sent') throw new Error('the connection was refused');
      const answer = await ledger.store.claim(request);
      if (isHit) throw new Error('the connection was lost');
      return answer;
    };
    const { post } = await open({ ...ledger.store, claim });
    const begin = (suffix = '') => post('jobs/begin', { ...nightly, token: token + suffix });
    for (const _ of [1, 2]) expect(await begin()).toMatchObject({ status: 503 });
    isDown = false;
    const begun = await begin();
    expect(begun.body.outcome).toBe('execute');
    // Its answer may be lost too.
    expect((await begin()).body).toMatchObject({ outcome: 'execute', fence: begun.body.fence });
    expect((await begin('-2')).body.outcome).toBe('busy');
  },
);

test('a job that is in doubt is not called busy where the first answer was lost', async () => {
  const { store } = openLedger();
  const { post } = await open(store);
  const held = { ...nightly, afterFailure: 'hold', token };
  const { attempt, lock } = (await post('jobs/begin', held)).body;
  await post('settle', { attempt, outcome: 'unknown', error: { message: 'failed: no network; held' } });
  await post('settle', { attempt: lock, outcome: 'notLanded' });
  for (const _ of [1, 2])
    expect(await post('jobs/begin', { ...held, token: `${token}-2` })).toMatchObject({
      status: 409,
      body: { code: 'IN_DOUBT' },
    });
});

/** Whatever a server still does in the background is done before it is closed. */
async function expectHeld({ server }: Awaited<ReturnType<typeof open>>, store: Store): Promise<void> {
  await server.close(0);
  const { post } = await open(store);
  expect((await post('begin', refund)).body).toMatchObject({ code: 'IN_FLIGHT' });
}

test('a report that is repeated while the store fails is kept once', async () => {
  const { store, faults, asked } = openLedger();
  const { post } = await open(store);
  const { body } = await post('begin', refund);
  faults.isFull = true;
  const report = { attempt: body.attempt, outcome: 'succeeded', value: 'sent' };
  const repeated = await Promise.all(Array.from({ length: 20 }, () => post('settle', report)));
  for (const { status } of repeated) expect(status).toBe(503);
  faults.isFull = false;
  asked.settle = 0;
  await expect.poll(async () => (await post('begin', refund)).body.outcome).toBe('replay');
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(asked.settle).toBe(1);
});
