// What the dashboard reads, over real HTTP and a real SQLite ledger.

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { limits } from '../../src/core/limits.ts';
import { createSemel, day, hour, type Semel, week } from '../../src/index.ts';
import { overrideStore } from '../../src/semel/index.ts';
import type { Context } from '../../src/server/endpoint.ts';
import { digestToken, type RunningServer, startServer } from '../../src/server/index.ts';
import type { Space } from '../../src/server/space.ts';
import { listJobs } from '../../src/server/views/jobs-view.ts';
import { listen, type Stream } from '../../src/server/views/live.ts';
import { search } from '../../src/server/views/search.ts';
import { showStats } from '../../src/server/views/stats.ts';
import { showSummary } from '../../src/server/views/summary.ts';
import { createMetrics, createWatch } from '../../src/signals/index.ts';
import { memoryStore } from '../../src/store/memory.ts';
import type { Store } from '../../src/store/store.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const secret = (name: string) => `token-of-${name}-which-is-long-enough-to-be-one`;

async function open(kind: 'sqlite' | 'memory' = 'sqlite') {
  const folder = mkdtempSync(join(tmpdir(), 'semel-views-'));
  ends.push(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'ledger.db');
  const store = kind === 'sqlite' ? sqliteStore({ path }) : memoryStore();
  const server: RunningServer = await startServer({
    store,
    policies: { version: 1 },
    mayDefine: false,
    tokens: [
      { name: 'reader', role: 'read', namespace: 'shop', sha256: digestToken(secret('reader')) },
      { name: 'operator', role: 'admin', namespace: '*', sha256: digestToken(secret('operator')) },
    ],
    version: '0.0.0',
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: () => undefined,
  });
  ends.push(() => server.close(0));
  const semel = createSemel({
    store: kind === 'sqlite' ? sqliteStore({ path }) : store,
    namespace: 'shop',
    prune: false,
  });
  if (kind === 'sqlite') ends.push(() => semel.close());
  const get = async (way: string, token = secret('reader'), headers: Record<string, string> = {}) => {
    const response = await fetch(`${server.url}${way}`, {
      headers: { authorization: `Bearer ${token}`, ...headers },
    });
    // biome-ignore lint/suspicious/noExplicitAny: each endpoint has its own.
    return { status: response.status, body: (await response.json()) as any };
  };
  return { server, semel, get };
}

async function fill(semel: Semel) {
  const refund = semel.tool({
    name: 'refund',
    effect: 'irreversible',
    per: 'ever',
    identity: ['order'],
    run: async ({ order }: { order: string; reason: string }, ctx) => {
      if (order === 'o-lost') throw new Error('socket hang up');
      ctx.note(`re_${order}`);
      return { id: `re_${order}` };
    },
  });
  await refund({ order: 'o-1', reason: 'broken' }, { toolCallId: 'call_abc123' });
  await refund({ order: 'o-1', reason: 'wrong size' });
  await refund({ order: 'o-1', reason: 'broken' });
  await refund({ order: 'o-lost', reason: 'late' }).catch(() => undefined);
  await semel.records.history('refund/-/x');
  return refund;
}

test.each(['sqlite', 'memory'] as const)('counts what landed and what was prevented, on %s', async (kind) => {
  const { semel, get } = await open(kind);
  await fill(semel);
  const { status, body } = await get('/v1/stats?range=24h');
  expect(status).toBe(200);
  expect(body.totals).toMatchObject({ executed: 1, replayed: 2, saved: 2, inDoubt: 1 });
  expect(body.contracts).toMatchObject([{ contract: 'refund', executed: 1 }]);
  expect(body.coverage).toMatchObject({ looked: 2, isCounting: false, isNewest: kind === 'sqlite' });
  expect(body.inFlight).toHaveLength(body.slots.length);
});

test.each(['sqlite', 'memory'] as const)(
  'finds a record by anything that a person has in hand, on %s',
  async (kind) => {
    const { semel, get } = await open(kind);
    await fill(semel);
    const { items } = await semel.records.list();
    const done = items.find(({ status }) => status === 'succeeded')!;
    const lost = items.find(({ inDoubt }) => inDoubt)!;
    const found = async (q: string) => {
      const { body } = await get(`/v1/search?q=${encodeURIComponent(q)}`);
      return body.matches.map((match: { record: { id: string }; found: string[] }) => [
        match.record.id,
        match.found[0],
      ]);
    };
    expect(await found(done.key)).toEqual([[done.id, 'key']]);
    expect(await found(done.id)).toEqual(
      [[done.id, 'id']].map(([id]) => [id, expect.stringMatching(/id|key/)]),
    );
    expect(await found(lost.ref)).toEqual([[lost.id, 'id']]);
    expect(await found('call_abc123')).toEqual([[done.id, 'toolCallId']]);
    expect(await found('re_o-1')).toEqual([[done.id, 'remoteRef']]);
    expect(await found('o-lost')).toEqual([[lost.id, 'args.order']]);
    expect(await found('nothing has this')).toEqual([]);
  },
);

test("a text that happens to begin an open record's id, or a key, hides no other match", async () => {
  const { semel, get } = await open();
  await fill(semel);
  const lost = (await semel.records.list()).items.find(({ inDoubt }) => inDoubt)!;
  const chance = lost.id.slice(0, 4);
  await semel.once('note', { text: `order ${chance} arrived` }, () => 1);
  await semel.once('note', { text: 'see refund/-/ for it' }, () => 1);
  const placesOf = async (q: string) => {
    const { body } = await get(`/v1/search?q=${encodeURIComponent(q)}`);
    expect(body.next).toBeUndefined();
    return body.matches.map(({ found }: { found: string[] }) => found[0]).sort();
  };
  expect(await placesOf(chance)).toEqual(['args.text', 'id']);
  expect(await placesOf('refund/-/')).toEqual(['args.text', 'key', 'key']);
});

test('an old record is found by its id, the digest of its key and its own key, without a search', async () => {
  const store = memoryStore();
  const semel = createSemel({ store, namespace: 'shop', onWarning: () => undefined });
  const refund = await fill(semel);
  await refund({ order: 'o-9', reason: 'broken' }, { key: 'order 17' });
  const { items } = await semel.records.list();
  const done = items.find(({ key, status }) => key.includes('/-/') && status === 'succeeded')!;
  const own = items.find(({ key }) => key.includes('/='))!;
  // Newer records without end, of which none matches.
  const endless = overrideStore(store, {
    recent: {
      pulse: async () => '',
      newest: async ({ rows }) => ({ items: [], looked: rows, next: '1' }),
      newestKeys: async () => [],
    },
  });
  const { signal } = new AbortController();
  const context = { space: { engine: { store: endless, namespace: 'shop' } }, signal } as unknown as Context;
  const found = async (q: string) => {
    const answer = (await search({ q }, context)) as {
      matches: { record: { key: string } }[];
      looked: number;
    };
    return [answer.matches.map(({ record }) => record.key), answer.looked === 0];
  };
  expect(await found(done.id)).toEqual([[done.key], true]);
  expect(await found(done.ref)).toEqual([[done.key], true]);
  expect(await found(done.key.slice(-32))).toEqual([[done.key], true]);
  expect(await found('order 17')).toEqual([[own.key], false]);
});

interface Answer {
  readonly matches: readonly { readonly record: { readonly id: string } }[];
  readonly next: string | undefined;
}

/** The ids found when each answer's `next` is followed to the end of the ledger. */
async function searchAll(q: string, store: Store): Promise<readonly string[]> {
  const { signal } = new AbortController();
  const context = { space: { engine: { store, namespace: 'shop' } }, signal } as unknown as Context;
  const found: string[] = [];
  let after: string | undefined;
  do {
    const answer = (await search({ q, ...(after === undefined ? {} : { after }) }, context)) as Answer;
    found.push(...answer.matches.map(({ record }) => record.id));
    after = answer.next;
  } while (after !== undefined);
  return found;
}

/** Their ids are digests: no index leads to them. */
async function fillOwnKeys(semel: Semel, count: number): Promise<readonly string[]> {
  const mail = semel.tool({ name: 'mail', effect: 'irreversible', per: 'ever', run: () => 1 });
  for (let n = 0; n < count; n += 1) await mail({ n }, { key: `order-${n}` });
  const ids: string[] = [];
  for await (const { id } of eachRecord(semel)) ids.push(id);
  return ids;
}

async function* eachRecord(semel: Semel) {
  let after: string | undefined;
  do {
    const page = await semel.records.list({ limit: 100, ...(after === undefined ? {} : { after }) });
    yield* page.items;
    after = page.next;
  } while (after !== undefined);
}

test.each([
  ['in one answer while others are written', 0, 1, 2],
  ['in an answer for each page', 2_000, 0, 101],
])('a search by id finds each record, %s', async (_, pageMs, writes, oldest) => {
  const folder = mkdtempSync(join(tmpdir(), 'semel-views-'));
  ends.push(() => rmSync(folder, { recursive: true, force: true }));
  const store = sqliteStore({ path: join(folder, 'ledger.db') });
  const semel = createSemel({ store, namespace: 'shop', prune: false, onWarning: () => undefined });
  ends.push(() => semel.close());
  const ids = await fillOwnKeys(semel, 101);
  const recent = store.recent!;
  let written = 0;
  const busy = overrideStore(store, {
    recent: {
      ...recent,
      newest: async (query) => {
        const page = await recent.newest(query);
        for (let n = 0; n < writes; n += 1, written += 1) await semel.once('note', String(written), () => 1);
        return page;
      },
    },
  });
  const now = performance.now.bind(performance);
  let later = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
    later += pageMs;
    return now() + later;
  });
  ends.push(() => clock.mockRestore());
  for (const id of ids.slice(0, oldest)) expect(await searchAll(id, busy), id).toEqual([id]);
});

test('a search by id leaves out no record of a store that reads by key', async () => {
  const store = memoryStore();
  const semel = createSemel({ store, namespace: 'shop', onWarning: () => undefined });
  const ids = await fillOwnKeys(semel, 800);
  for (const id of ids.filter((_, n) => n % 30 === 0)) expect(await searchAll(id, store), id).toEqual([id]);
});

test('a mail address is searched as it was typed, and a ref by its name', async () => {
  const { semel, get } = await open();
  const mail = semel.tool({ name: 'mail', effect: 'irreversible', per: 'ever', run: () => 1 });
  await mail({ to: 'zhang@126.com' });
  await mail({ to: 'zhangwei@example.com' }, { key: 'zhangwei' });
  const found = async (q: string) => {
    const { body } = await get(`/v1/search?q=${encodeURIComponent(q)}`);
    return body.matches.map((match: { record: { key: string }; found: string[] }) => match.found[0]);
  };
  expect(await found('zhang@163.com')).toEqual([]);
  expect(await found('zhang@126.com')).toEqual(['args.to']);
  await mail({ n: 1 }, { key: 'order@12' });
  await mail({ n: 2 }, { key: 'order' });
  expect(await found('order@12')).toEqual(['key']);
  expect(await found('mail/=order@1')).toEqual(['key']);
  expect(await found('mail/=order%4012')).toEqual(['key']);
  const { id } = (await semel.records.get('mail/=order'))!;
  for (const ref of [`${id}@1`, `${id.slice(0, 6)}@1`]) expect(await found(ref)).toEqual(['id']);
});

test('a search does not leave the namespace of its token', async () => {
  const { semel, get, server } = await open();
  await fill(semel);
  const other = await get('/v1/search?q=o-lost', secret('operator'), { 'semel-namespace': 'other' });
  expect(other.body.matches).toEqual([]);
  expect(other.body.looked).toBe(2);
  const me = await get('/v1/whoami', secret('operator'));
  expect(me.body.namespaces).toMatchObject([{ name: 'default' }, { name: 'shop', inDoubt: 1 }]);
  expect((await get('/v1/whoami')).body.namespaces).toMatchObject([{ name: 'shop' }]);
  expect(server.url).toContain('127.0.0.1');
});

test('a search goes on where it stopped, and says how many records it looked at', async () => {
  const { semel, get } = await open();
  await semel.once('first', 'needle-in-here', () => 1);
  for (let n = 0; n < 30; n += 1) await semel.once('mail', `m${n}`, () => n);
  const { body } = await get('/v1/search?q=needle-in');
  expect(body).toMatchObject({ looked: 31, isNewest: true });
  expect(body.next).toBeUndefined();
  expect(body.matches).toHaveLength(1);
});

test('a search goes on behind a long key', async () => {
  const { semel, get } = await open('memory');
  const tool = semel.tool({ name: 'mail', effect: 'irreversible', per: 'ever', run: () => 1 });
  const keyOf = (n: number) => `${'k'.repeat(400)}-${n}`;
  for (let n = 1_000; n < 2_000; n += 1) await tool({ n }, { key: keyOf(n) });
  const { body } = await get('/v1/search?q=k-1999');
  expect(body.matches).toEqual([]);
  const { body: more } = await get(`/v1/search?q=k-1999&after=${encodeURIComponent(body.next)}`);
  expect(more.matches).toMatchObject([{ found: ['key'] }]);
});

test('a login code works once, and its session has the rights of its token', async () => {
  const { server, get } = await open();
  const post = (way: string, body: object, headers: Record<string, string> = {}) =>
    fetch(`${server.url}${way}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const created = await post('/v1/logins', {}, { authorization: `Bearer ${secret('reader')}` });
  const { code } = (await created.json()) as { code: string };
  const login = await post('/login', { code });
  const session = (await login.json()) as { session: string; role: string };
  expect(session).toMatchObject({ role: 'read', namespace: 'shop', name: 'reader' });
  expect(login.headers.get('set-cookie')).toBeNull();
  expect((await post('/login', { code })).status).toBe(401);
  expect((await post('/login', { code: 'made up' })).status).toBe(401);
  expect((await post('/login', { code }, { origin: 'http://evil.example' })).status).toBe(403);
  expect((await get('/v1/summary', session.session)).status).toBe(200);
  // Whoever stole it would have the next one, and the next.
  expect((await post('/v1/logins', {}, { authorization: `Bearer ${session.session}` })).status).toBe(403);
  const refused = await post(
    '/v1/resolve',
    { ref: 'x@1', verdict: 'landed' },
    { authorization: `Bearer ${session.session}` },
  );
  expect(refused.status).toBe(403);
});

test('a session that is over listens no longer', async () => {
  const { server } = await open();
  const post = async (way: string, body: object) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${secret('reader')}` };
    const made = await fetch(`${server.url}${way}`, { method: 'POST', headers, body: JSON.stringify(body) });
    return (await made.json()) as { code: string; session: string };
  };
  const { code } = await post('/v1/logins', {});
  const { session } = await post('/login', { code });
  const now = performance.now.bind(performance);
  let later = 12 * 3_600_000 - 1_000;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + later);
  ends.push(() => clock.mockRestore());
  // A connection of its own: those that the test has are as old as the clock says.
  const events = async () => {
    const headers = { authorization: `Bearer ${session}` };
    const request = httpGet(`${server.url}/v1/events`, { headers, agent: false });
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    const tooLong = setTimeout(() => request.destroy(), 10_000);
    let heard = '';
    for await (const part of answer) heard += part;
    clearTimeout(tooLong);
    return { status: answer.statusCode, heard };
  };
  expect(await events()).toMatchObject({ status: 200, heard: expect.stringContaining('semel') });
  // A timer of Node counts from when its loop last looked at the clock, so it may end some milliseconds early.
  later += 1_000;
  expect((await events()).status).toBe(401);
});

test('logins of one token end no session of another', async () => {
  const { server, get } = await open();
  const post = async (way: string, body: object, token: string) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    const made = await fetch(`${server.url}${way}`, { method: 'POST', headers, body: JSON.stringify(body) });
    return (await made.json()) as { code: string; session: string };
  };
  const login = async (token: string) => {
    const { code } = await post('/v1/logins', {}, token);
    return (await post('/login', { code }, token)).session;
  };
  const operator = await login(secret('operator'));
  const first = await login(secret('reader'));
  // Sessions of all tokens together were limited to a thousand.
  for (let n = 0; n < 20; n += 1)
    await Promise.all(Array.from({ length: 50 }, () => login(secret('reader'))));
  expect((await get('/v1/summary', operator)).status).toBe(200);
  expect((await get('/v1/summary', first)).status).toBe(401);
});

test('a waiter hears of its record, and a view that something was written by another process', async () => {
  const { server, semel } = await open();
  await semel.once('first', 'x', () => 1);
  const { items } = await semel.records.list();
  const stop = new AbortController();
  const way = `/v1/events?key=${encodeURIComponent(items[0]!.key)}`;
  const response = await fetch(`${server.url}${way}`, {
    headers: { authorization: `Bearer ${secret('reader')}` },
    signal: stop.signal,
  });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  let heard = '';
  const reading = (async () => {
    for await (const chunk of response.body!) heard += Buffer.from(chunk as Uint8Array).toString();
  })().catch(() => undefined);
  await expect.poll(() => heard).toContain('"status":"succeeded"');
  let n = 0;
  await expect
    .poll(async () => {
      n += 1;
      await semel.once('second', String(n), () => 1);
      return heard;
    })
    .toContain('event: change');
  await semel.records.forget(items[0]!.key);
  await semel.records.prune();
  await expect.poll(() => heard).toContain('"status":"gone"');
  stop.abort();
  await reading;
});

test('a listener that comes and goes does not make the store be asked more often', async () => {
  const store = memoryStore();
  let asked = 0;
  const counted = overrideStore(store, {
    list: async (query) => {
      if (query.status === 'unknown') asked += 1;
      return store.list(query);
    },
  });
  const space = { engine: { store: counted, namespace: 'shop' } } as unknown as Space;
  const { stream } = (await listen({}, { space } as Context)) as Stream;
  for (let n = 0; n < 50; n += 1) {
    const stop = new AbortController();
    const ended = stream(() => undefined, stop.signal);
    await new Promise((resolve) => setImmediate(resolve));
    stop.abort();
    await ended;
  }
  expect(asked).toBeLessThan(5);
});

test('what is open is counted without holding more than a page of records', async () => {
  const store = memoryStore();
  const semel = createSemel({ store, namespace: 'shop', onWarning: () => undefined });
  const lost = () => {
    throw new Error('socket hang up');
  };
  for (let n = 0; n < 120; n += 1) await semel.once('pay', String(n), lost).catch(() => undefined);
  let most = 0;
  const counted = overrideStore(store, {
    list: async (query) => {
      most = Math.max(most, query.limit ?? Number.POSITIVE_INFINITY);
      return store.list(query);
    },
  });
  const space = { engine: { store: counted, namespace: 'shop' } } as unknown as Space;
  expect(await showSummary({}, { space, signal: new AbortController().signal } as Context)).toMatchObject({
    inDoubt: 120,
    inFlight: 0,
  });
  const metrics = createMetrics({ store: counted, version: '1' });
  expect(await metrics.text()).toContain('semel_in_doubt{namespace="shop",tool="pay"} 120');
  const { stream } = (await listen({}, { space } as Context)) as Stream;
  const stop = new AbortController();
  const listening = stream(() => undefined, stop.signal);
  const watch = createWatch({
    store: counted,
    ...{ namespace: 'shop', targets: [], olderMs: 0, needsDecision: () => true },
    ...{ optionsFor: () => '', onAlert: () => undefined, onWarning: () => undefined },
  });
  await watch.pass();
  await watch.close();
  stop.abort();
  await listening;
  expect(most).toBeLessThanOrEqual(50);
});

test('groups of doubts say when not all were counted, and count one tool by itself', async () => {
  const { semel, get } = await open('memory');
  const lost = () => Promise.reject(new Error('socket hang up'));
  const fail = (name: string, n: number) => semel.once(name, String(n), lost).catch(() => undefined);
  await Promise.all(Array.from({ length: limits.groupedDoubts }, (_, n) => fail('aaa', n)));
  await fail('zzz', 0);
  const all = (await get('/v1/doubts/groups')).body;
  expect(all.groups.map(({ contract }: { contract: string }) => contract)).toEqual(['aaa']);
  expect(all.isCut).toBe(true);
  const { body } = await get('/v1/doubts/groups?tool=zzz');
  expect(body).toMatchObject({ groups: [{ contract: 'zzz', error: 'socket hang up' }] });
  expect(body.groups[0].refs).toHaveLength(1);
  expect(body.isCut).toBeUndefined();
});

test('a search holds no more than a page of records, and ends with enough matches', async () => {
  const store = memoryStore();
  const semel = createSemel({ store, namespace: 'shop', onWarning: () => undefined });
  for (let n = 0; n < 300; n += 1) {
    await semel
      .once('pay', String(n), () => Promise.reject(new Error('socket hang up')))
      .catch(() => undefined);
    await semel.once('mail', String(n), () => ({ needle: n }));
  }
  const { items } = await store.list({ namespace: 'shop', limit: 1_000 });
  let most = 0;
  let newest = 0;
  const counted = overrideStore(store, {
    list: async (query) => {
      most = Math.max(most, query.limit);
      return store.list(query);
    },
    recent: {
      pulse: async () => '',
      newest: async ({ rows, before = '0', text = '' }) => {
        newest = Math.max(newest, rows);
        const from = Number(before);
        const page = items.slice(from, from + rows);
        return {
          items: page
            .filter((record) => JSON.stringify(record).includes(text))
            .map((record) => ({ record, history: [] })),
          looked: page.length,
          next: from + rows < items.length ? String(from + rows) : undefined,
        };
      },
      newestKeys: async () => [],
    },
  });
  const signal = new AbortController().signal;
  const context = (its: typeof store) =>
    ({ space: { engine: { store: its, namespace: 'shop' } }, signal }) as unknown as Context;
  // It could be an id: what is open is looked through too.
  expect(await search({ q: 'abcdefgh' }, context(counted))).toMatchObject({ matches: [], looked: 600 });
  expect(most).toBeLessThanOrEqual(50);
  expect(newest).toBeLessThanOrEqual(200);
  newest = 0;
  const found = (await search({ q: 'needle' }, context(counted))) as { looked: number; matches: object[] };
  expect(found).toMatchObject({ isCut: true });
  expect(found.matches).toHaveLength(50);
  expect(newest).toBeLessThanOrEqual(50);
  expect(found.looked).toBeLessThan(600);
});

test('jobs are read a few slots at a time', async () => {
  const store = memoryStore();
  const semel = createSemel({ store, namespace: 'shop', onWarning: () => undefined });
  for (let n = 0; n < 12; n += 1)
    for (let at = 0; at < 12; at += 1)
      await semel
        .job(`digest${n}`, { per: hour('UTC') }, async () => 'sent')
        .run({ at: new Date(Date.now() - at * 3_600_000) });
  let running = 0;
  let held = 0;
  const counted = overrideStore(store, {
    list: async (query) => {
      running += query.limit;
      held = Math.max(held, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= query.limit;
      return store.list(query);
    },
  });
  const signal = new AbortController().signal;
  const space = { engine: { store: counted, namespace: 'shop' } };
  const { jobs } = (await listJobs({ days: '14' }, { space, signal } as unknown as Context)) as {
    jobs: { days: { slots: object[]; isCut?: true }[] }[];
  };
  expect(jobs).toHaveLength(12);
  for (const { days } of jobs) {
    expect(days.flatMap(({ slots }) => slots)).toHaveLength(12);
    expect(days.every(({ isCut }) => isCut === undefined)).toBe(true);
  }
  expect(held).toBeLessThanOrEqual(40);
});

test('requests for jobs that wait for their turn read nothing', async () => {
  let reads = 0;
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const store = overrideStore(memoryStore(), {
    list: async () => {
      reads += 1;
      await answered;
      return { items: [], next: undefined };
    },
  });
  const { signal } = new AbortController();
  const space = { engine: { store, namespace: 'shop' } };
  const all = Array.from({ length: 50 }, () => listJobs({}, { space, signal } as unknown as Context));
  await new Promise((resolve) => setImmediate(resolve));
  expect(reads).toBe(1);
  answer();
  await Promise.all(all);
});

test('counts by many time zones are made one at a time for a namespace', async () => {
  const store = memoryStore();
  let running = 0;
  let most = 0;
  let made = 0;
  const slow = overrideStore(store, {
    list: async (query) => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running -= 1;
      made += 1;
      return store.list(query);
    },
  });
  const space = { engine: { store: slow, namespace: 'shop' } } as unknown as Space;
  const zones = Intl.supportedValuesOf('timeZone').slice(0, 40);
  await Promise.all(zones.map((tz) => showStats({ range: '24h', tz }, { space } as Context)));
  await expect.poll(() => made).toBe(zones.length);
  // Of one namespace.
  expect(most).toBe(1);
  // Another way of writing a name is not another count.
  await Promise.all(
    zones.map((tz) => showStats({ range: '24h', tz: tz.toUpperCase() }, { space } as Context)),
  );
  expect(made).toBe(zones.length);
});

test('of counts that wait for their turn only those stay that are kept', async () => {
  const store = memoryStore();
  const { promise: free, resolve: go } = Promise.withResolvers<void>();
  let made = 0;
  const slow = overrideStore(store, {
    list: async (query) => {
      await free;
      made += 1;
      return store.list(query);
    },
  });
  const space = { engine: { store: slow, namespace: 'shop' } } as unknown as Space;
  const zones = Intl.supportedValuesOf('timeZone').slice(0, 300);
  await Promise.all(zones.map((tz) => showStats({ range: '24h', tz }, { space } as Context)));
  go();
  const last = async () =>
    (await showStats({ range: '24h', tz: zones.at(-1) as string }, { space } as Context)) as Counted;
  await expect.poll(async () => (await last()).coverage.isCounting).toBe(false);
  expect(made).toBeGreaterThanOrEqual(200);
  expect(made).toBeLessThanOrEqual(201);
});

interface Counted {
  readonly coverage: { readonly isCounting: boolean };
}

test('listeners cannot take all connections, nor those of one namespace the places of others', async () => {
  const { server, get } = await open();
  const stop = new AbortController();
  ends.push(() => stop.abort());
  const listening = (name: string) =>
    fetch(`${server.url}/v1/events`, {
      headers: { authorization: `Bearer ${secret(name)}` },
      signal: stop.signal,
    });
  for (const name of ['reader', 'operator']) {
    const half = Array.from({ length: limits.eventStreams / 2 }, () => listening(name));
    for (const { status } of await Promise.all(half)) expect(status).toBe(200);
    expect((await listening(name)).status).toBe(503);
  }
  expect((await get('/v1/summary')).status).toBe(200);
});

test('jobs show their slots by day', async () => {
  const { semel, get } = await open();
  const job = semel.job('digest', { per: day('UTC') }, async () => 'sent');
  await job.run();
  const { body } = await get('/v1/jobs?days=3');
  expect(body.dates).toHaveLength(3);
  expect(body.jobs).toMatchObject([{ job: 'digest', per: 'day' }]);
  expect(body.jobs[0].days.at(-1).slots).toMatchObject([{ state: 'succeeded', attempts: 1 }]);
});

test('a slot is on the day of its own zone, and is not late there', async () => {
  const startedAt = Date.parse('2026-11-17T00:00Z');
  let ms = 0;
  const clock = { ...systemClock, now: () => startedAt + ms };
  const store = memoryStore({ clock });
  const semel = createSemel({ store, namespace: 'shop', clock, prune: false, onWarning: () => undefined });
  const jobs = { angeles: day('America/Los_Angeles'), tokyo: day('Asia/Tokyo'), weekly: week('UTC') };
  for (ms = 0; ms < 3 * 86_400_000; ms += 4 * 3_600_000)
    for (const [name, per] of Object.entries(jobs)) {
      // 20:00 in Los Angeles, 05:00 in Tokyo.
      const isDue = ms % 86_400_000 === (name === 'tokyo' ? 20 : 4) * 3_600_000;
      const at = new Date(startedAt + ms);
      if (isDue) await semel.job(name, { per }, async () => 'sent').run({ at });
    }
  const now = vi.spyOn(Date, 'now').mockImplementation(() => Date.parse('2026-11-19T21:00Z'));
  ends.push(() => now.mockRestore());
  const { signal } = new AbortController();
  const space = { engine: { store, namespace: 'shop' } };
  const { dates, jobs: shown } = (await listJobs({ days: '5' }, { space, signal } as unknown as Context)) as {
    dates: string[];
    jobs: {
      job: string;
      days: { date: string; missed: number; slots: { slot: string; isLate: boolean }[] }[];
    }[];
  };
  expect(dates.at(-1)).toBe('2026-11-20');
  const slotsOf = (name: string) =>
    shown
      .find(({ job }) => job === name)!
      .days.flatMap(({ date, slots }) =>
        slots.map(({ slot, isLate }) => `${date}: ${slot}${isLate ? ' late' : ''}`),
      );
  expect(slotsOf('angeles')).toEqual([
    '2026-11-16: 2026-11-16',
    '2026-11-17: 2026-11-17',
    '2026-11-18: 2026-11-18',
  ]);
  expect(slotsOf('tokyo')).toEqual([
    '2026-11-18: 2026-11-18',
    '2026-11-19: 2026-11-19',
    '2026-11-20: 2026-11-20',
  ]);
  expect(slotsOf('weekly')).toEqual(['2026-11-16: 2026-W47']);
  expect(shown.flatMap(({ days }) => days.filter(({ missed }) => missed > 0))).toEqual([]);
});

test('an outbox shows what is staged; a ledger without one says so', async () => {
  const { get } = await open();
  expect((await get('/v1/outbox')).body).toEqual({ isAvailable: true, rows: [] });
  const other = await open('memory');
  expect((await other.get('/v1/outbox')).body).toEqual({ isAvailable: false, rows: [] });
});

test('of a guarded command, the dashboard gets the args that its user gave', async () => {
  const { semel, get } = await open();
  const mail = semel.tool({
    name: 'mail',
    effect: 'irreversible',
    per: 'ever',
    content: ['$command'],
    run: (_: { lead: string; $command: string }) => 1,
  });
  await mail({ lead: '42', $command: 'a digest' });
  const { body } = await get('/v1/search?q=mail');
  expect(body.matches).toEqual([
    expect.objectContaining({ record: expect.objectContaining({ args: { lead: '42' }, byCommand: true }) }),
  ]);
});
