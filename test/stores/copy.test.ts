// A ledger moves to another store, on real files, a real Postgres and a real Redis: with programs that write, with copies that are
// killed, and with everything that can be in a ledger.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { storeAt } from '../../src/semel/index.ts';
import { memoryStore } from '../../src/store/memory.ts';
import { copyLedger, plan } from '../../src/store/move/copy.ts';
import type { Raw, RawRecord } from '../../src/store/move/raw.ts';
import type { Store } from '../../src/store/store.ts';
import { qualify } from '../../src/stores/postgres/schema.ts';
import { attemptOf, claimRequest, take } from '../../src/testing/store-contract/attempt.ts';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';
import { type RedisServer, startRedis } from '../servers/redis.ts';
import { all, expectSame, fill, isUsable, now } from './copied-ledger.ts';
import { emptyWrite } from './postgres-ledger.ts';
import { newPath } from './sqlite-folder.ts';

let server: PostgresServer;
let redis: RedisServer | undefined;
let pool: pg.Pool;
const stores: Store[] = [];

beforeAll(async () => {
  [server, redis] = await Promise.all([startPostgres(), startRedis()]);
  pool = new pg.Pool({ connectionString: server.url, max: 4 });
  pool.on('error', () => {});
});

afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await pool.end();
  await Promise.all([server.stop(), redis?.stop()]);
});

const hasRedis = inject('redisUrl') !== '';
const kinds = ['sqlite', 'postgres', 'memory', ...(hasRedis ? ['redis'] : [])];
let places = 0;

/** Without those for which there is no server on this machine. */
function possible<T extends readonly [from: string, to: string, ...unknown[]]>(
  ways: readonly T[],
): readonly T[] {
  return ways.filter(([from, to]) => kinds.includes(from) && kinds.includes(to));
}

function newUrl(kind: string): string {
  if (kind === 'sqlite') return `sqlite:${newPath()}`;
  if (kind === 'memory') return 'memory:';
  places += 1;
  if (kind === 'redis') return `${redis?.url}?prefix=copy-${places}`;
  return `${server.url}?schema=copy_${places}`;
}

async function at(url: string): Promise<Store & { raw: Raw }> {
  const store = await storeAt(url);
  stores.push(store);
  return store as Store & { raw: Raw };
}

const ways = possible([
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
  ['postgres', 'postgres'],
  ['sqlite', 'sqlite'],
  ['memory', 'sqlite'],
  ['sqlite', 'memory'],
  ['sqlite', 'redis'],
  ['postgres', 'redis'],
  ['redis', 'postgres'],
  ['redis', 'sqlite'],
  ['redis', 'redis'],
]);

describe.each(ways)('%s to %s', (from, to) => {
  test('every record arrives with its token, fence and history, and a running attempt can settle there', async () => {
    const [source, target] = [await at(newUrl(from)), await at(newUrl(to))];
    const { running } = await fill(source);
    const before = await source.read('shop', 'pay/=unknown');
    const history = await source.history('shop', 'pay/=unknown');
    const there = await source.raw.about();
    expect(there.floor).toBeGreaterThan(0);

    const copied = await copyLedger({ source: source.raw, target: target.raw });
    expect(copied).toMatchObject({ before: false, records: there.records, open: there.open });
    await expectSame(source.raw, target.raw);

    // The same question, under the same name, with what is known of it.
    expect(before?.inDoubt).toBe(true);
    expect(await target.read('shop', 'pay/=unknown')).toMatchObject({
      inDoubt: true,
      fence: before?.fence,
      generation: before?.generation,
      providerKeyFence: before?.providerKeyFence,
    });
    expect(await target.history('shop', 'pay/=unknown')).toEqual(history);
    expect(history.length).toBeGreaterThan(1);

    // Nobody takes over what still runs; its holder goes on with its token.
    const record = await target.read('shop', 'pay/=running');
    expect(record).toMatchObject({ status: 'running', lapsed: false, fence: running.fence });
    expect(record?.leaseLeftMs).toBeGreaterThan(300_000);
    expect(await target.read('shop', 'pay/=lapsed')).toMatchObject({ lapsed: true, inDoubt: true });
    const held = attemptOf(
      target,
      claimRequest({ key: 'pay/=running', token: running.token }),
      running.record,
      false,
    );
    expect((await held.renew()).held).toBe(true);
    await held.succeed('"landed"');
    expect(await target.read('shop', 'pay/=running')).toMatchObject({
      status: 'succeeded',
      result: { text: '"landed"' },
    });

    // What was pruned there is not given again here.
    const fresh = await take(target, { key: 'fresh/=1' });
    expect(fresh.fence).toBeGreaterThan(there.floor);

    // And retention finds what it has to take.
    expect(await target.read('shop', 'old/=1')).toMatchObject({ expired: true });
    expect(await target.prune(100)).toBe(1);
    expect(await target.read('shop', 'old/=1')).toBeUndefined();

    // The old one refuses, and says where to go.
    const error = await running.succeed().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'STORE_MOVED' });
    expect(String(error)).toContain(copied.movedTo);
    await expect(source.append([])).rejects.toMatchObject({ code: 'STORE_MOVED' });

    // Once more: nothing is changed, although both differ now.
    expect(await copyLedger({ source: source.raw, target: target.raw })).toMatchObject({ before: true });
    expect(await target.read('shop', 'fresh/=1')).toMatchObject({ status: 'running' });
  });

  test('what changes between the passes is copied: new, settled, renewed, pruned', async () => {
    const [source, target] = [await at(newUrl(from)), await at(newUrl(to))];
    const { running } = await fill(source);
    const short = await take(source, { key: 'pay/=short', leaseMs: 2_000 });
    const meanwhile: Raw = {
      ...source.raw,
      async seal(where) {
        await short.renew(900_000);
        await running.succeed('"in time"');
        await take(source, { key: 'new/=open', crossing: true });
        await (await take(source, { key: 'mail.send/=released', retention: now })).succeed();
        await source.prune(100);
        await source.raw.seal(where);
      },
    };
    // Nobody else gets in while it is filled.
    const closed: unknown[] = [];
    const watched: Raw = {
      ...target.raw,
      async write(...args) {
        await target.raw.write(...args);
        closed.push(await target.claim(claimRequest({ key: 'new/=open' })).catch((error: unknown) => error));
      },
    };
    await copyLedger({ source: meanwhile, target: watched });
    expect(closed.length).toBeGreaterThan(2);
    for (const error of closed) expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retriable: true });

    await expectSame(source.raw, target.raw);
    expect(await target.read('shop', 'mail.send/=released')).toBeUndefined();
    expect(await target.read('shop', 'pay/=running')).toMatchObject({ status: 'succeeded' });
    expect((await target.read('shop', 'pay/=short'))?.leaseLeftMs).toBeGreaterThan(890_000);
    const { floor } = await source.raw.about();
    // A ledger in Redis starts with a floor of its own, which is higher.
    expect((await target.raw.about()).floor)[to === 'redis' ? 'toBeGreaterThanOrEqual' : 'toBe'](floor);
    const lost = await target.claim(claimRequest({ key: 'new/=open' }));
    expect(lost.won).toBe(false);
  });
});

test.each(kinds)('no fence that the old ledger may have given is given in %s, however high', async (kind) => {
  const [source, target] = [await at(newUrl('sqlite')), await at(newUrl(kind))];
  await fill(source);
  const floor = 8_000_000_000_000_000;
  const high: Raw = { ...source.raw, about: async () => ({ ...(await source.raw.about()), floor }) };
  await copyLedger({ source: high, target: target.raw });
  expect((await take(target, { key: 'fresh/=1' })).fence).toBeGreaterThan(floor);
});

interface Writer {
  readonly child: ChildProcess;
  lines(): string[];
}

async function startWriter(url: string, name: string): Promise<Writer> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'copy-writer.ts'), url, name], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  await once(child.stdout, 'data');
  return { child, lines: () => output.split('\n').filter((line) => line !== '') };
}

test.each(
  possible([
    ['sqlite', 'postgres'],
    ['postgres', 'sqlite'],
    ['sqlite', 'redis'],
    ['redis', 'postgres'],
  ]),
)(
  'programs write while %s is moved to %s: what they were told is there, and then they are sent there',
  async (from, to) => {
    const [url, targetUrl] = [newUrl(from), newUrl(to)];
    const [source, target] = [await at(url), await at(targetUrl)];
    await fill(source);
    const writers = await Promise.all(['a', 'b'].map((name) => startWriter(url, name)));
    const ended = writers.map(({ child }) => once(child, 'close'));
    await expect.poll(() => Math.min(...writers.map(({ lines }) => lines().length))).toBeGreaterThan(50);
    const copied = await copyLedger({ source: source.raw, target: target.raw });
    await Promise.all(ended);

    let told = 0;
    for (const { lines } of writers) {
      const ends = lines().filter((line) => line.startsWith('ended'));
      expect(ends).toHaveLength(4);
      for (const end of ends) {
        expect(end).toContain('STORE_MOVED');
        expect(end).toContain(copied.movedTo);
      }
      for (const line of lines()) {
        const [what, key] = line.split(' ');
        if (what !== 'claimed' && what !== 'settled') continue;
        told += 1;
        const record = await target.read('shop', key as string);
        expect(record, line).toBeDefined();
        if (what === 'settled') expect(record?.status, line).toBe('succeeded');
      }
    }
    expect(told).toBeGreaterThan(50);
    await expectSame(source.raw, target.raw);
  },
);

async function runCopy(
  from: string,
  to: string,
  killAt: number,
  when: 'before' | 'after',
): Promise<number | null> {
  const worker = join(import.meta.dirname, 'copy-worker.ts');
  const child = spawn(process.execPath, [worker, from, to, String(killAt), when], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = await once(child, 'close');
  return code as number | null;
}

test.each(
  possible([
    ['sqlite', 'postgres', 'after'],
    ['postgres', 'sqlite', 'before'],
    ['sqlite', 'redis', 'after'],
    ['postgres', 'redis', 'before'],
    ['redis', 'postgres', 'after'],
    ['redis', 'sqlite', 'before'],
  ] as const),
)(
  'a copy from %s to %s that is killed %s any step goes on, and no step leaves two ledgers in use',
  async (from, to, when) => {
    // Each step in turn takes minutes: here some of them, others each time; `COPY_STEPS=all` takes all.
    const stride = process.env.COPY_STEPS === 'all' ? 1 : 12;
    for (let killAt = 1 + Math.floor(Math.random() * stride); ; killAt += stride) {
      const [url, targetUrl] = [newUrl(from), newUrl(to)];
      const source = await at(url);
      const { running } = await fill(source);
      const code = await runCopy(url, targetUrl, killAt, when);
      const target = await at(targetUrl);

      const sourceUsable = await isUsable(source);
      const targetUsable = await isUsable(target);
      const started = (await target.raw.about()).cameFrom !== null;
      if (started) expect([sourceUsable, targetUsable], `killed at ${killAt}`).not.toEqual([true, true]);
      // An unsealed source stays in use.
      if (sourceUsable) await (await take(source, { key: `after/=${killAt}` })).succeed();

      const copied = await copyLedger({ source: source.raw, target: target.raw });
      expect(copied.before).toBe(targetUsable && started);
      await expectSame(source.raw, target.raw);
      expect([await isUsable(source), await isUsable(target)]).toEqual([false, true]);
      const held = attemptOf(
        target,
        claimRequest({ key: 'pay/=running', token: running.token }),
        running.record,
        false,
      );
      expect((await held.succeed()).record?.status).toBe('succeeded');
      if (code === 0) {
        expect(killAt).toBeGreaterThan(12);
        break;
      }
    }
  },
  600_000,
);

describe('refusals', () => {
  test('the same ledger, by whatever name', async () => {
    const url = newUrl('sqlite');
    const [source, same] = [await at(url), await at(url)];
    await fill(source);
    await expect(copyLedger({ source: source.raw, target: same.raw })).rejects.toThrow(/are one ledger/);
    await take(source, { key: 'still/=usable' });
  });

  test.each(kinds)('a target in %s that has records', async (kind) => {
    const [source, target] = [await at(newUrl('sqlite')), await at(newUrl(kind))];
    await fill(source);
    await take(target);
    await expect(copyLedger({ source: source.raw, target: target.raw })).rejects.toThrow(/has records/);
    await take(source, { key: 'still/=usable' });
    await take(target, { key: 'still/=usable' });
  });

  test('a target that is filled from another ledger', async () => {
    const [source, other, target] = [
      await at(newUrl('sqlite')),
      await at(newUrl('sqlite')),
      await at(newUrl('postgres')),
    ];
    await target.raw.fill((await other.raw.about()).incarnation);
    await expect(copyLedger({ source: source.raw, target: target.raw })).rejects.toThrow(
      /filled from another/,
    );
  });

  test('a source that has moved elsewhere', async () => {
    const [source, first, second] = [
      await at(newUrl('sqlite')),
      await at(newUrl('sqlite')),
      await at(newUrl('sqlite')),
    ];
    await fill(source);
    await copyLedger({ source: source.raw, target: first.raw });
    await expect(copyLedger({ source: source.raw, target: second.raw })).rejects.toMatchObject({
      code: 'STORE_MOVED',
    });
  });

  test('a sealed source whose target was lost: it may have been in use', async () => {
    const [source, target] = [await at(newUrl('sqlite')), await at(newUrl('sqlite'))];
    const address = (await target.raw.about()).address;
    await source.raw.seal(address);
    await expect(copyLedger({ source: source.raw, target: target.raw })).rejects.toThrow(
      /does not know about it/,
    );
  });

  test('clocks that are apart', async () => {
    const about = await (await at(newUrl('sqlite'))).raw.about();
    const other = { ...about, incarnation: 'other', now: about.now + 10 * 60_000 };
    expect(() => plan(about, other)).toThrow(/10 minutes apart/);
  });

  test.each(kinds)('a slow copy does not write into %s once another one has opened it', async (kind) => {
    const [source, target] = [await at(newUrl('sqlite')), await at(newUrl(kind))];
    await fill(source);
    const from = (await source.raw.about()).incarnation;
    const [stale] = await all(source.raw);
    await copyLedger({ source: source.raw, target: target.raw });
    const put = [stale as RawRecord];
    await expect(target.raw.write(from, { put })).rejects.toThrow(/no longer being filled/);
    await expect(target.raw.finish(from)).rejects.toThrow(/no longer being filled/);
  });

  test.each(kinds)(
    'a copy into %s that was given up cannot be finished, and can be begun again',
    async (kind) => {
      const [source, target] = [await at(newUrl('sqlite')), await at(newUrl(kind))];
      await fill(source);
      const from = (await source.raw.about()).incarnation;
      await target.raw.fill(from);
      await target.raw.abandon(from);
      await expect(target.raw.finish(from)).rejects.toThrow(/abandoned/);
      expect(await isUsable(target)).toBe(false);
      await copyLedger({ source: source.raw, target: target.raw });
      await expectSame(source.raw, target.raw);
    },
  );

  test('an unsealed ledger is in use again, in the processes that were refused too', async () => {
    for (const kind of kinds) {
      const store = await at(newUrl(kind));
      await store.open();
      await store.raw.seal('sqlite:/elsewhere');
      expect(await isUsable(store)).toBe(false);
      await store.raw.unseal();
      expect(await isUsable(store)).toBe(true);
    }
  });
});

describe('the seal of Postgres', () => {
  test('a claim that waited for it is refused', async () => {
    const url = newUrl('postgres');
    const schema = /schema=(\w+)/.exec(url)?.[1] as string;
    const store = await at(url);
    await store.open();
    const sealer = await pool.connect();
    await sealer.query('BEGIN');
    const unsealed = '{"movedTo":null,"cameFrom":null,"filling":false}';
    const sealed = '{"movedTo":"elsewhere","filling":false}';
    await sealer.query(qualify(schema, `SELECT semel.stand('${unsealed}', '${sealed}', false)`));
    const claim = store.claim(claimRequest()).catch((error: unknown) => error);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await sealer.query('COMMIT');
    sealer.release();
    expect(await claim).toMatchObject({ code: 'STORE_MOVED' });
    const { rows } = await pool.query(qualify(schema, 'SELECT count(*)::int AS n FROM semel.records'));
    expect(rows).toEqual([{ n: 0 }]);
  });

  test('waits for a write that is under way', async () => {
    const url = newUrl('postgres');
    const schema = /schema=(\w+)/.exec(url)?.[1] as string;
    const store = await at(url);
    await store.open();
    const writer = await pool.connect();
    await writer.query('BEGIN');
    await writer.query(emptyWrite(schema));
    let isSealed = false;
    const sealing = store.raw.seal('elsewhere').then(() => {
      isSealed = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(isSealed).toBe(false);
    await writer.query('COMMIT');
    writer.release();
    await sealing;
    await expect(store.claim(claimRequest())).rejects.toMatchObject({ code: 'STORE_MOVED' });
  });
});

test('a store in memory can be a source', async () => {
  const source = memoryStore();
  expect((await source.raw?.about())?.incarnation).not.toBe((await memoryStore().raw?.about())?.incarnation);
});
