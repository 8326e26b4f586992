// The proxy that tests of unknown outcomes stand on: it must hit exactly the message it was told to.

import { Redis } from 'ioredis';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { type FaultProxy, faultEachFrame, startFaultProxy } from './fault-proxy.ts';
import { framersOf } from './frames.ts';
import { type OwnSchema, ownPrefix, ownSchema } from './own-place.ts';

describe('before Postgres', () => {
  let place: OwnSchema;
  let proxy: FaultProxy;

  beforeEach(async () => {
    place = await ownSchema();
    proxy = await startFaultProxy({ url: place.url, protocol: 'postgres' });
    await direct(`create table ${place.schema}.kept (id int)`);
  });
  afterEach(() => proxy.close());

  test('a dropped reply: the client sees an error, and the row exists', async () => {
    for (let id = 0; id < 20; id++) {
      const client = await connected(proxy.url);
      proxy.next('reply', 'cut-before');
      await expect(insert(client, id)).rejects.toThrow('Connection terminated unexpectedly');
    }
    await expect.poll(ids).toHaveLength(20);
  });

  test('a request that is cut, before it or inside it, does nothing', async () => {
    for (const fault of ['cut-before', 'cut-inside'] as const) {
      const client = await connected(proxy.url);
      proxy.next('request', fault);
      await expect(insert(client, 1)).rejects.toThrow('Connection terminated unexpectedly');
    }
    expect(await ids()).toEqual([]);
  });

  test('late and bytewise data still arrives', async () => {
    proxy.always('request', 'trickle');
    proxy.always('reply', { delayMs: 1 });
    const client = await connected(proxy.url);
    await insert(client, 1);
    await client.end();
    expect(await ids()).toEqual([1]);
  });

  test('a black hole answers nothing and closes nothing, until the proxy does', async () => {
    const client = await connected(proxy.url);
    proxy.next('reply', 'black-hole');
    const outcome = insert(client, 1).catch((error: Error) => error.message);
    await expect.poll(ids).toEqual([1]);
    expect(proxy.connections()).toBe(1);
    proxy.cutAll();
    expect(await outcome).toBe('Connection terminated unexpectedly');
  });

  test('every message of an operation is hit once by every fault', async () => {
    let id = 0;
    const { runs, hits } = await faultEachFrame(proxy, ['cut-before', 'cut-after'], async (hit, begin) => {
      const client = await connected(proxy.url);
      begin();
      const outcome = await insert(client, ++id).then(
        () => 'done',
        () => 'unknown',
      );
      if (hit === undefined) expect([outcome, await ids()]).toEqual(['done', [id]]);
      if (outcome === 'done') expect(await ids()).toContain(id);
      await client.end().catch(() => undefined);
    });
    // Parse, Bind, Describe, Execute, Sync; and their five answers. Terminate counts where it came to it.
    expect(runs).toBeGreaterThanOrEqual(20);
    expect(hits).toBe(runs);
  });

  test('a refused connection gets an error', async () => {
    proxy.refuse(true);
    await expect(connected(proxy.url)).rejects.toThrow();
    proxy.calm();
    await (await connected(proxy.url)).end();
  });

  async function connected(url: string): Promise<pg.Client> {
    const client = new pg.Client(url);
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  async function direct(sql: string): Promise<{ id: number }[]> {
    const client = await connected(place.url);
    const { rows } = await client.query(sql);
    await client.end();
    return rows;
  }

  async function ids(): Promise<number[]> {
    return (await direct(`select id from ${place.schema}.kept order by id`)).map(({ id }) => id);
  }

  /** With a parameter, for the protocol of several messages. */
  async function insert(client: pg.Client, id: number): Promise<void> {
    await client.query(`insert into ${place.schema}.kept values ($1)`, [id]);
  }
});

test('before Redis, a reply that is eaten leaves the key', async (context) => {
  const place = ownPrefix();
  if (place === undefined) return context.skip('no Redis');
  await using proxy = await startFaultProxy({ url: place.url, protocol: 'redis' });
  const client = new Redis(proxy.url, { retryStrategy: () => null, maxRetriesPerRequest: 0 });
  client.on('error', () => undefined);
  await client.ping();
  proxy.mark();
  proxy.next('reply', 'cut-before');
  await expect(client.set(`${place.prefix}key`, 'here')).rejects.toThrow();
  expect(
    proxy.frames().map(({ direction, bytes }) => [direction, bytes.toString().split('\r\n')[2] ?? '']),
  ).toEqual([
    ['request', 'set'],
    ['reply', ''],
  ]);
  client.disconnect();
  const witness = new Redis(inject('redisUrl'));
  expect(await witness.get(`${place.prefix}key`)).toBe('here');
  witness.disconnect();
});

test('messages are found however the bytes come', () => {
  const messages = [
    '*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n',
    '+OK\r\n',
    '$-1\r\n',
    '*0\r\n',
    '*-1\r\n',
    '%1\r\n+a\r\n*2\r\n:1\r\n$0\r\n\r\n',
    '|1\r\n+ttl\r\n:3\r\n$1\r\nx\r\n',
    '_\r\n',
    'PING\r\n',
  ];
  for (const size of [1, 2, 7, 1000]) {
    const { reply } = framersOf('redis');
    const bytes = Buffer.from(messages.join(''));
    const frames: string[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      frames.push(...reply(bytes.subarray(at, at + size)).map(String));
    }
    expect(frames).toEqual(messages);
  }
});
