// The outside world behaves as the tests say it does; otherwise nothing that they prove means anything.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  conducts,
  type EffectServer,
  senderHeaders,
  startEffectServer,
} from '../support/effect-server/index.ts';

let world: EffectServer;

beforeAll(async () => {
  world = await startEffectServer();
});
afterAll(() => world.close());

let intents = 0;
const newIntent = () => `intent ${++intents}`;

async function act(
  target: string,
  {
    intent = newIntent(),
    key,
    body = '{}',
    signal,
  }: { intent?: string; key?: string; body?: string; signal?: AbortSignal } = {},
) {
  const response = await fetch(`${world.url}/do/${target}`, {
    method: 'POST',
    headers: { ...senderHeaders({ intent }), ...(key === undefined ? {} : { 'idempotency-key': key }) },
    body,
    ...(signal === undefined ? {} : { signal }),
  });
  const answer = (await response.json()) as { effect: number };
  return { status: response.status, headers: response.headers, body: answer };
}

const landed = (intent: string) => world.effects().filter((effect) => effect.intent === intent);

describe('what lands', () => {
  test('is on disk, numbered, with what its sender said of itself', async () => {
    const said = { namespace: 'shop ü', intent: 'order 1\n"quoted"', fence: 3, attempt: 2, pid: 41 };
    const response = await fetch(`${world.url}/do/mail`, {
      method: 'POST',
      headers: { ...senderHeaders(said), 'idempotency-key': 'k-1' },
      body: '{"to":"ada"}',
    });
    const { effect } = (await response.json()) as { effect: number };
    const [found] = world.effects().filter(({ seq }) => seq === effect);
    expect(found).toMatchObject({ ...said, target: 'mail', providerKey: 'k-1' });
    expect(readFileSync(world.log, 'utf8')).toContain('"order 1\\n\\"quoted\\""');
  });

  test('may name its intent in a JSON body', async () => {
    const response = await fetch(`${world.url}/do/mail`, {
      method: 'POST',
      body: JSON.stringify({ intent: 'in the body', namespace: 'shop', fence: 7 }),
    });
    expect(response.status).toBe(200);
    expect(landed('in the body')).toMatchObject([{ namespace: 'shop', fence: 7, providerKey: null }]);
  });

  test('is numbered in the order of arrival, however many arrive at once', async () => {
    const intent = newIntent();
    const answers = await Promise.all(Array.from({ length: 50 }, () => act('mail', { intent })));
    const numbers = landed(intent).map(({ seq }) => seq);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(answers.map(({ body }) => body.effect).toSorted((a, b) => a - b)).toEqual(numbers);
  });

  test('lands once per request if no key is honoured', async () => {
    const intent = newIntent();
    await act('mail', { intent, key: 'same' });
    await act('mail', { intent, key: 'same' });
    expect(landed(intent)).toHaveLength(2);
  });

  test('can be looked up by its intent', async () => {
    const intent = newIntent();
    await act('mail', { intent });
    const found = await fetch(`${world.url}/effects?intent=${encodeURIComponent(intent)}`);
    expect(await found.json()).toMatchObject({ effects: [{ intent }] });
    const other = await fetch(`${world.url}/effects?intent=nothing`);
    expect(await other.json()).toEqual({ effects: [] });
  });

  test('is seen by a lagging lookup later', async () => {
    await world.behave('lagging', { lookupLagMs: 60_000 });
    const intent = newIntent();
    await act('lagging', { intent });
    const found = await fetch(`${world.url}/effects?intent=${encodeURIComponent(intent)}`);
    expect(await found.json()).toEqual({ effects: [] });
    expect(landed(intent)).toHaveLength(1);
  });
});

describe('a target that honours keys', () => {
  beforeAll(() => world.behave('pay', { keyed: { windowMs: 3_600_000 } }));

  test('answers the stored response and does nothing again', async () => {
    const intent = newIntent();
    const first = await act('pay', { intent, key: intent });
    const again = await act('pay', { intent, key: intent });
    expect(again.body).toEqual(first.body);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(landed(intent)).toHaveLength(1);
  });

  test('refuses the key with another body', async () => {
    const intent = newIntent();
    await act('pay', { intent, key: intent, body: '{"amount":1}' });
    expect((await act('pay', { intent, key: intent, body: '{"amount":2}' })).status).toBe(422);
    expect(landed(intent)).toHaveLength(1);
  });

  test('answers 409 while the first request is under way', async () => {
    await world.behave('slow-pay', { keyed: { windowMs: 3_600_000 }, usually: conducts.slow(1_000) });
    const intent = newIntent();
    const both = await Promise.all([1, 2].map(() => act('slow-pay', { intent, key: intent })));
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect((await act('slow-pay', { intent, key: intent })).status).toBe(200);
    expect(landed(intent)).toHaveLength(1);
  });

  test('forgets the key after its window', async () => {
    const intent = newIntent();
    await act('pay', { intent, key: intent });
    await world.advance(3_599_000);
    await act('pay', { intent, key: intent });
    expect(landed(intent)).toHaveLength(1);
    await world.advance(2_000);
    await act('pay', { intent, key: intent });
    expect(landed(intent)).toHaveLength(2);
  });

  test('remembers the key of a request whose answer was lost', async () => {
    await world.behave('lossy-pay', { keyed: { windowMs: 3_600_000 }, first: [conducts.commitsThenCuts] });
    const intent = newIntent();
    await expect(act('lossy-pay', { intent, key: intent })).rejects.toThrow();
    expect(await act('lossy-pay', { intent, key: intent })).toMatchObject({ status: 200 });
    expect(landed(intent)).toHaveLength(1);
  });

  test('forgets its errors, or keeps them', async () => {
    await world.behave('errors', { keyed: { windowMs: 3_600_000 }, first: [conducts.refuses(500)] });
    const forgotten = newIntent();
    expect((await act('errors', { intent: forgotten, key: forgotten })).status).toBe(500);
    expect((await act('errors', { intent: forgotten, key: forgotten })).status).toBe(200);

    const keyed = { windowMs: 3_600_000, keepsErrors: true };
    await world.behave('errors', { keyed, first: [conducts.refuses(500)] });
    const kept = newIntent();
    expect((await act('errors', { intent: kept, key: kept })).status).toBe(500);
    expect((await act('errors', { intent: kept, key: kept })).status).toBe(500);
    expect(landed(kept)).toHaveLength(0);
  });
});

describe('a target that fails', () => {
  test.each([
    ['refuses before it commits', conducts.refuses(422), 422, 0],
    ['refuses after it committed', conducts.commitsThenRefuses(500), 500, 1],
    ['has had enough', conducts.limits(7), 429, 0],
  ])('%s', async (_name, conduct, status, effects) => {
    await world.behave('failing', { usually: conduct });
    const intent = newIntent();
    const answer = await act('failing', { intent });
    expect(answer.status).toBe(status);
    if (status === 429) expect(answer.headers.get('retry-after')).toBe('7');
    expect(landed(intent)).toHaveLength(effects);
  });

  test.each([
    ['commits, then cuts the connection', conducts.commitsThenCuts, 1],
    ['cuts the connection before it commits', conducts.cuts, 0],
  ])('%s', async (_name, conduct, effects) => {
    await world.behave('cutting', { usually: conduct });
    const intent = newIntent();
    await expect(act('cutting', { intent })).rejects.toThrow('fetch failed');
    expect(landed(intent)).toHaveLength(effects);
  });

  test.each([
    ['commits, then hangs', conducts.commitsThenHangs, 1],
    ['hangs before it commits', conducts.hangs, 0],
  ])('%s', async (_name, conduct, effects) => {
    await world.behave('hanging', { usually: conduct });
    const intent = newIntent();
    await expect(act('hanging', { intent, signal: AbortSignal.timeout(300) })).rejects.toThrow();
    expect(landed(intent)).toHaveLength(effects);
  });

  test('lands late what its client has given up on', async () => {
    await world.behave('late', { usually: conducts.slow(300) });
    const intent = newIntent();
    await expect(act('late', { intent, signal: AbortSignal.timeout(50) })).rejects.toThrow();
    expect(landed(intent)).toHaveLength(0);
    await expect.poll(() => landed(intent)).toHaveLength(1);
  });

  test('misbehaves only for the configured number of requests', async () => {
    await world.behave('moody', { first: [conducts.refuses(503), conducts.commitsThenCuts] });
    const intent = newIntent();
    expect((await act('moody', { intent })).status).toBe(503);
    await expect(act('moody', { intent })).rejects.toThrow();
    expect((await act('moody', { intent })).status).toBe(200);
    expect(landed(intent)).toHaveLength(2);
  });
});

test('runs as a script, and continues the numbering of its log', async () => {
  const log = join(mkdtempSync(join(tmpdir(), 'semel-effects-')), 'effects.jsonl');
  const main = join(import.meta.dirname, '../support/effect-server/main.ts');
  for (const seq of [1, 2]) {
    const child = spawn(process.execPath, [main, '--log', log, '--targets', '{"mail":{}}']);
    const [line] = await once(child.stdout, 'data');
    const { url } = JSON.parse(String(line));
    const response = await fetch(`${url}/do/mail`, { method: 'POST', body: '{"intent":"scripted"}' });
    expect(await response.json()).toEqual({ effect: seq });
    child.kill('SIGKILL');
    await once(child, 'close');
  }
});

test('it ends with the process that started it', async () => {
  const other = await startEffectServer();
  await other.close();
  await other.close();
  await expect(fetch(other.url)).rejects.toThrow();
  expect(other.effects()).toEqual([]);
});
