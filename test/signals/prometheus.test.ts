// Metrics: strict in format, bounded in series, and true about what a crash left.

import { createSemel } from 'semel';
import { memoryStore } from 'semel/memory';
import { prometheus } from 'semel/prometheus';
import { expect, test } from 'vitest';
import { overrideStore } from '../../src/semel/index.ts';
import { expose } from '../../src/signals/metrics/exposition.ts';
import { createScopes, maxTools } from '../../src/signals/metrics/labels.ts';
import { readExposition } from './strict-exposition.ts';

function shop(store = memoryStore()) {
  const semel = createSemel({ store, namespace: 'shop', onWarning: () => undefined });
  const mail = semel.tool({
    name: 'mail.send',
    effect: 'write-non-idempotent',
    per: 'ever',
    run: ({ to }: { to: string }) => {
      if (to.startsWith('lost')) throw new Error('socket hang up');
      return to;
    },
  });
  return { semel, mail, metrics: prometheus(semel) };
}

const of = { namespace: 'shop', tool: 'mail.send' };

test('calls are counted by outcome, and doubts are read from the ledger', async () => {
  const { mail, metrics } = shop();
  for (const to of ['ann', 'ann', 'bob', 'lost-1', 'lost-2']) await mail.try({ to });
  const { find, types } = readExposition(await metrics.text());
  expect(metrics.contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(find('semel_calls_total', { ...of, outcome: 'executed' })).toBe(2);
  expect(find('semel_calls_total', { ...of, outcome: 'replayed' })).toBe(1);
  expect(find('semel_calls_total', { ...of, outcome: 'in_doubt' })).toBe(2);
  expect(find('semel_in_doubt', of)).toBe(2);
  expect(find('semel_oldest_doubt_age_seconds', { namespace: 'shop' })).toBeGreaterThanOrEqual(0);
  expect(find('semel_effect_duration_seconds_count', of)).toBe(4);
  expect(find('semel_store_up')).toBe(1);
  expect(find('semel_build_info', {})).toBe(1);
  expect(types.get('semel_effect_duration_seconds')).toBe('histogram');
});

test('what runs is in flight, and nothing is counted after the end', async () => {
  const { semel, metrics } = shop();
  let finish: (value: string) => void = () => undefined;
  const slow = semel.once(
    'slow',
    1,
    () =>
      new Promise<string>((resolve) => {
        finish = resolve;
      }),
  );
  await expect
    .poll(async () => readExposition(await prometheus(semel).text()).find('semel_in_flight'))
    .toBe(1);
  finish('done');
  await slow;
  metrics.stop();
  await semel.once('slow', 2, () => 'done');
  expect(readExposition(await metrics.text()).find('semel_calls_total', { tool: 'slow' })).toBe(1);
});

test('ten thousand keys and conversations make no series, and no label holds one', async () => {
  const { semel, mail, metrics } = shop();
  const call = async (n: number) =>
    semel.within({ conversation: `talk-${n}` }, () =>
      mail.try({ to: n % 1000 === 0 ? `lost-canary${n}` : `canary${n}` }),
    );
  await call(0);
  await call(1);
  await call(1);
  const before = readExposition(await metrics.text()).series.length;
  for (let n = 2; n < 10_000; n += 1) await call(n);
  const text = await metrics.text();
  expect(readExposition(text).series.length).toBe(before);
  expect(text).not.toMatch(/canary|talk-/);
});

test('tools beyond the limit share one label, and so do namespaces', () => {
  const scopes = createScopes();
  const made = new Set<string>();
  for (let n = 0; n < 5_000; n += 1) {
    const { namespace, tool } = scopes.of(`shop${n % 300}`, `tool${n}`);
    made.add(`${namespace} ${tool}`);
  }
  expect(made.size).toBeLessThanOrEqual(maxTools + 52);
  expect(scopes.of('shop299', 'tool4999')).toEqual({ namespace: '(other)', tool: 'other' });
  expect(scopes.of('shop0', 'tool0')).toEqual({ namespace: 'shop0', tool: 'tool0' });
});

test('open records of many tools are series that a scraper takes, once each', async () => {
  const store = memoryStore();
  const semel = createSemel({ store, namespace: 'shop', onWarning: () => undefined });
  const metrics = prometheus(semel);
  for (let n = 0; n < maxTools + 20; n += 1)
    await semel.once(`tool${n}`, 'x', () => Promise.reject(new Error('gone'))).catch(() => undefined);
  await semel.once('other', 'x', () => Promise.reject(new Error('gone'))).catch(() => undefined);
  const { find } = readExposition(await metrics.text());
  expect(find('semel_in_doubt', { namespace: 'shop', tool: 'other' })).toBe(21);
  expect(find('semel_in_doubt', { namespace: 'shop', tool: 'tool0' })).toBe(1);
});

test('a store that does not answer is down, and the rest is still told', async () => {
  const store = memoryStore();
  let isBroken = false;
  const failing = overrideStore(store, {
    list: (query) => (isBroken ? Promise.reject(new Error('gone')) : store.list(query)),
  });
  const { mail, metrics } = shop(failing as ReturnType<typeof memoryStore>);
  await mail.try({ to: 'ann' });
  isBroken = true;
  const { find } = readExposition(await metrics.text());
  expect(find('semel_store_up')).toBe(0);
  expect(find('semel_calls_total', of)).toBe(1);
  expect(find('semel_in_doubt')).toBeUndefined();
});

test('hostile names are escaped', () => {
  const name = 'a"b\\c\nd} 1';
  const family = {
    name: 'x',
    help: 'a\\b\nc',
    type: 'gauge' as const,
    samples: () => [{ labels: { name }, value: 1 }],
  };
  expect(readExposition(expose([family])).series).toEqual([{ name: 'x', labels: { name }, value: 1 }]);
});

test('only a Semel instance is taken', () => {
  expect(() => prometheus({} as never)).toThrow('expects a Semel instance');
});
