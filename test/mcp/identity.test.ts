// Who asks, and by which key: what a call says of itself, what its proxy was told, and what nobody says.

import { createSemel } from 'semel';
import { describe, expect, test } from 'vitest';
import { eventually } from '../cli/place.ts';
import { httpProxy } from './http-proxy.ts';
import { startV2 } from './http-servers.ts';
import { errorOf, isKept, proxyPlace } from './proxy.ts';

const meta = (names: Record<string, string>) => ({
  _meta: Object.fromEntries(Object.entries(names).map(([name, value]) => [`dev.semel/${name}`, value])),
});

/** As an agent gives it to another one. */
async function handoffOf(conversation: string, turn: string): Promise<string> {
  await using semel = createSemel({ store: 'memory:' });
  return semel.within({ conversation, turn }, semel.handoff);
}

describe('a key of the caller', () => {
  test.each([
    ['params.idempotencyKey', (key: string) => ({ idempotencyKey: key })],
    ['_meta', (key: string) => meta({ 'idempotency-key': key })],
  ])('in %s: is honoured; other args under it are a conflict, as SEP-3182 tells it', async (_, more) => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('act', { n: 1 }, more('k-1'));
    expect(isKept(await client.call('act', { n: 1 }, more('k-1')))).toBe(true);
    expect(isKept(await client.call('act', { n: 1 }, more('k-2')))).toBe(false);
    const conflict = await client.call('act', { n: 2 }, more('k-1'));
    expect(conflict.error).toMatchObject({ code: -32602, data: { type: 'idempotency_key_conflict' } });
    expect(errorOf(conflict)?.code).toBe('KEY_CONFLICT');
    expect(here.effects()).toHaveLength(2);
    const long = 'x'.repeat(5_000);
    await client.call('act', { n: 3 }, more(long));
    expect(isKept(await client.call('act', { n: 3 }, more(long)))).toBe(true);
  });

  test('means nothing to another caller: another Authorization is another caller', async () => {
    const here = proxyPlace();
    const proxy = await httpProxy(await startV2({ effects: here.path('effects') }), here.env);
    const as = (token: string) => ({ authorization: `Bearer ${token}` });
    const more = { idempotencyKey: 'k-1' };
    for (const token of ['ann', 'bob', 'ann', 'bob'])
      await proxy.call('send', { to: 'x' }, { more, headers: as(token) });
    expect(here.effects()).toHaveLength(2);
    const conflict = await proxy.call('send', { to: 'y' }, { more, headers: as('ann') });
    expect(conflict.error?.data?.type).toBe('idempotency_key_conflict');
    const fresh = await proxy.call('send', { to: 'y' }, { more, headers: as('eve') });
    expect(fresh.error).toBeUndefined();
  });
});

test("two unidentified callers are two: neither gets the other one's answer", async () => {
  const here = proxyPlace();
  const proxy = await httpProxy(await startV2({ effects: here.path('effects') }), here.env);
  for (const token of ['ann', 'bob', 'ann', 'bob'])
    await proxy.call('send', { to: 'x' }, { headers: { authorization: `Bearer ${token}` } });
  expect(here.effects()).toHaveLength(2);
});

describe('conversation and turn', () => {
  test('of the call: one turn is one intent, another turn another one', async () => {
    const here = proxyPlace();
    const client = here.client();
    const say = (conversation: string, turn: string) =>
      client.call('act', { n: 1 }, meta({ conversation, turn }));
    await say('c', 't1');
    expect(isKept(await say('c', 't1'))).toBe(true);
    expect(isKept(await say('c', 't2'))).toBe(false);
    expect(isKept(await say('d', 't1'))).toBe(false);
    expect(here.effects()).toHaveLength(3);
    const wrong = await client.call('act', { n: 1 }, { _meta: { 'dev.semel/conversation': 7 } });
    expect(errorOf(wrong)?.code).toBe('INVALID_ARGS');
  });

  test('of the proxy, if the call names none; the call may add its turn', async () => {
    const here = proxyPlace();
    const one = here.client(['--conversation', 'c', '--turn', 't1']);
    await one.call('act', { n: 1 });
    expect(isKept(await one.call('act', { n: 1 }, meta({ conversation: 'c', turn: 't1' })))).toBe(true);
    expect(isKept(await one.call('act', { n: 1 }, meta({ turn: 't2' })))).toBe(false);
    const two = here.client(['--conversation', 'c', '--turn', 't2']);
    expect(isKept(await two.call('act', { n: 1 }))).toBe(true);
    expect(here.effects()).toHaveLength(2);
  });

  test("unknown: equal calls are one for the policy's weakWindow, with one warning, not one per tool", async () => {
    const here = proxyPlace();
    const client = here.client(['--policy', here.policy({}, { weakWindow: '7m' })]);
    await client.call('act', { n: 1 });
    expect(isKept(await client.call('act', { n: 1 }))).toBe(true);
    expect(here.effects()).toHaveLength(1);
    const records = (await here.json('ls')) as { contract: string; settledAt: string; expiresAt: string }[];
    const { settledAt, expiresAt } = records.find(({ contract }) => contract.endsWith('.act'))!;
    expect(Date.parse(expiresAt) - Date.parse(settledAt)).toBe(7 * 60_000);
    await client.call('fail', { n: 1 });
    await eventually(() => client.stderr().includes('does not say which turn a call belongs to'));
    expect(client.stderr().split('does not say which turn')).toHaveLength(2);
    const careful = here.client([
      '--policy',
      here.policy({ put: { effect: 'write-non-idempotent' } }, { hints: 'ignore' }),
    ]);
    await careful.call('put', { n: 1 });
    await eventually(() => /put looks as if it sets a value.*semel asks the model/.test(careful.stderr()));
  });

  test('a tool per conversation does not run without one: strangers might share a guess', async () => {
    const here = proxyPlace();
    const terms = { effect: 'write-non-idempotent', per: 'conversation' };
    const client = here.client(['--policy', here.policy({ act: terms })]);
    expect(errorOf(await client.call('act', { n: 1 }))?.code).toBe('NO_IDENTITY');
    const placed = meta({ conversation: 'chat-7' });
    for (const _ of [1, 2]) await client.call('act', { n: 1 }, placed);
    expect(here.effects()).toHaveLength(1);
  });

  test('an irreversible tool per turn is not run on a guess', async () => {
    const here = proxyPlace();
    const client = here.client(['--policy', here.policy({ act: { effect: 'irreversible', per: 'turn' } })]);
    expect(errorOf(await client.call('act', { n: 1 }))?.code).toBe('NO_IDENTITY');
    expect(client.stderr()).toMatch(
      /act: .* known, not guessed.* dev\.semel\/turn in _meta, or .* policy file/,
    );
    await client.call('act', { n: 1 }, meta({ conversation: 'c', turn: 't' }));
    expect(here.effects()).toHaveLength(1);
  });
});

describe('a hand-off: A gives a task to B, does not hear of it, and gives it again', () => {
  const terms = { act: { effect: 'write-non-idempotent', identity: ['to'] } };

  test('in _meta: B words it differently, and it lands once', async () => {
    const here = proxyPlace();
    const context = await handoffOf('order-7', 'task-1');
    const policy = ['--policy', here.policy(terms)];
    await here.client(policy).call('act', { to: 'ann', body: 'Hello Ann' }, meta({ context }));
    const again = await here.client(policy).call('act', { to: 'ann', body: 'Dear Ann' }, meta({ context }));
    expect(isKept(again)).toBe(true);
    expect(again.result?.content?.at(-1)?.text).toContain('your `body` was not used');
    const other = meta({ context: await handoffOf('order-7', 'task-2') });
    expect(isKept(await here.client(policy).call('act', { to: 'ann' }, other))).toBe(false);
    expect(here.effects()).toHaveLength(2);
  });

  test('in the environment of the proxy', async () => {
    const context = await handoffOf('order-7', 'task-1');
    const here = proxyPlace({ SEMEL_CONTEXT: context });
    const policy = ['--policy', here.policy(terms)];
    await here.client(policy).call('act', { to: 'ann', body: 'Hello Ann' });
    expect(isKept(await here.client(policy).call('act', { to: 'ann', body: 'Dear Ann' }))).toBe(true);
    const records = JSON.stringify(await here.json('ls'));
    expect(records).toContain('"conversation":"order-7"');
    expect(here.effects()).toHaveLength(1);
  });

  test('in the header Semel-Context', async () => {
    const here = proxyPlace();
    const policy = here.policy({ send: { effect: 'write-non-idempotent', identity: ['to'] } });
    const upstream = await startV2({ effects: here.path('effects') });
    const proxy = await httpProxy(upstream, here.env, ['--policy', policy]);
    const headers = { 'semel-context': await handoffOf('order-7', 'task-1') };
    await proxy.call('send', { to: 'ann', body: 'Hello Ann' }, { headers });
    expect(isKept(await proxy.call('send', { to: 'ann', body: 'Dear Ann' }, { headers }))).toBe(true);
    const other = { 'semel-context': await handoffOf('order-7', 'task-2') };
    await proxy.call('send', { to: 'ann', body: 'Dear Ann' }, { headers: other });
    expect(here.effects()).toHaveLength(2);
  });

  test('one that is damaged is refused, and nothing runs', async () => {
    const context = `${(await handoffOf('c', 't')).slice(0, -1)}!`;
    const here = proxyPlace();
    const client = here.client();
    expect(errorOf(await client.call('act', {}, meta({ context })))?.code).toBe('NO_IDENTITY');
    expect(errorOf(await client.call('act', {}, { _meta: { 'dev.semel/context': null } }))?.code).toBe(
      'NO_IDENTITY',
    );
    expect(here.effects()).toEqual([]);
    const said = await here.with({ env: { SEMEL_CONTEXT: context } }).semel('mcp', '--', 'cat');
    expect(said.stderr).toContain('not a valid semel hand-off');
    expect(said.code).not.toBe(0);
  });
});
