// The servers themselves: what tests of the stores rely on.

import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { describe, expect, inject, test } from 'vitest';
import { startNode } from '../processes/node-process.ts';
import { fakeTimeLibrary } from './fake-clock.ts';
import type { Held } from './holder.ts';
import { ownPrefix, ownSchema } from './own-place.ts';
import { startPgbouncer } from './pgbouncer.ts';
import { type PostgresServer, startPostgres } from './postgres.ts';
import { startRedis } from './redis.ts';
import { startRedisCluster } from './redis-cluster.ts';

describe('Postgres', () => {
  test('a crash keeps what was committed, and a stop leaves no process and no folder', async () => {
    const server = await startPostgres({ settings: { work_mem: '5MB' } });
    await query(server.url, 'create table kept (id int)');
    for (const [id, signal] of (['SIGQUIT', 'SIGKILL'] as const).entries()) {
      await query(server.url, `insert into kept values (${id})`);
      await server.kill(signal);
      await expect(query(server.url, 'select 1')).rejects.toThrow('ECONNREFUSED');
      await server.restart();
    }
    expect(await query(server.url, 'select id from kept order by id')).toEqual([{ id: 0 }, { id: 1 }]);
    expect(await query(server.url, 'show fsync')).toEqual([{ fsync: 'on' }]);
    expect(await query(server.url, 'show server_version')).toEqual([{ server_version: server.version }]);
    expect(await query(server.url, 'show work_mem')).toEqual([{ work_mem: '5MB' }]);
    const folder = dirname(server.dataFolder);
    if (existsSync('/proc/self/cmdline')) expect(processesOf(folder)).not.toEqual([]);
    await server.stop();
    expect(processesOf(folder)).toEqual([]);
    expect(existsSync(folder)).toBe(false);
  });

  test('it stops while paused, and resumes where it was', async () => {
    await using server = await startPostgres();
    await query(server.url, 'select 1');
    await server.pause();
    const answer = query(server.url, 'select 1 as one');
    expect(await Promise.race([answer, later(200)])).toBe('nothing yet');
    await server.resume();
    expect(await answer).toEqual([{ one: 1 }]);
  });

  test('new settings come with a restart, and a wipe forgets everything', async () => {
    await using server = await startPostgres();
    await query(server.url, 'create table forgotten ()');
    await server.restart({ synchronous_commit: 'off' });
    expect(await query(server.url, 'show synchronous_commit')).toEqual([{ synchronous_commit: 'off' }]);
    await server.wipe();
    await expect(query(server.url, 'select * from forgotten')).rejects.toThrow('does not exist');
  });

  test('one of its own identity differs from the others', async () => {
    await using server = await startPostgres({ ownIdentity: true });
    const identity = 'select system_identifier::text from pg_control_system()';
    expect(await query(server.url, identity)).not.toEqual(await query(inject('postgresUrl'), identity));
  });

  test('the one of the machine is as good, if there is one', async (context) => {
    await using server = await startPostgres({ version: 'system' });
    if (server === undefined) return context.skip('no Postgres on this machine');
    expect(await query(server.url, 'show server_version_num')).toHaveLength(1);
  });

  test('its clock can be moved', async (context) => {
    if (fakeTimeLibrary === undefined) return context.skip('no libfaketime');
    await using server = await startPostgres({ movableClock: true });
    server.moveClock(30 * 3_600_000);
    expect(await hoursAhead(server)).toBe(30);
    server.moveClock(-48 * 3_600_000);
    expect(await hoursAhead(server)).toBe(-18);
  });
});

test('PgBouncer gives a client another session for each transaction', async (context) => {
  await using postgres = await startPostgres();
  await using pooler = await startPgbouncer(postgres);
  if (pooler === undefined) return context.skip('no PgBouncer');
  const [one, other] = [new pg.Client(pooler.url), new pg.Client(pooler.url)];
  const session = async (client: pg.Client) =>
    (await client.query('select pg_backend_pid() as pid')).rows[0].pid;
  await Promise.all([one.connect(), other.connect()]);
  await one.query('begin');
  const before = await session(one);
  await one.query('commit');
  await other.query('begin');
  expect(await session(other)).toBe(before);
  expect(await session(one)).not.toBe(before);
  await Promise.all([one.end(), other.end()]);
});

describe('Redis', () => {
  test('a crash keeps what it keeps on disk, and a stop leaves no process and no folder', async (context) => {
    for (const [persistence, kept] of [
      ['always', 'here'],
      ['none', null],
    ] as const) {
      const server = await startRedis({ persistence });
      if (server === undefined) return context.skip('no Redis');
      await ask(server.url, 'SET', 'key', 'here');
      await server.kill();
      await server.restart();
      expect([persistence, await ask(server.url, 'GET', 'key')]).toEqual([persistence, kept]);
      await server.wipe();
      expect(await ask(server.url, 'GET', 'key')).toBe(null);
      const folder = dirname(server.dataFolder);
      await server.stop();
      expect(processesOf(folder)).toEqual([]);
      expect(existsSync(folder)).toBe(false);
    }
  });

  test('its clock can be moved', async (context) => {
    if (fakeTimeLibrary === undefined) return context.skip('no libfaketime');
    await using server = await startRedis({ movableClock: true });
    if (server === undefined) return context.skip('no Redis');
    server.moveClock(7_200_000);
    const [seconds] = (await ask(server.url, 'TIME')) as [string];
    expect(Math.round((Number(seconds) * 1000 - Date.now()) / 3_600_000)).toBe(2);
  });

  test('a cluster redirects a request to the wrong node', async (context) => {
    await using cluster = await startRedisCluster();
    if (cluster === undefined) return context.skip('no Redis');
    const answers = cluster.urls.map((url) =>
      ask(url, 'SET', 'key', 'value').catch((error) => error.message),
    );
    expect((await Promise.all(answers)).sort()).toEqual([
      expect.stringMatching(/^MOVED \d+ 127.0.0.1:\d+$/),
      expect.stringMatching(/^MOVED/),
      'OK',
    ]);
  });
});

test.each([{ isPaused: false }, { isPaused: true }])(
  'a runner that is killed leaves no server and no folder, paused or not: $isPaused',
  async ({ isPaused }) => {
    const runner = startNode<Held>(new URL('./holder.ts', import.meta.url), { isPaused });
    const { folders } = await runner.line(() => true);
    const parents = folders.map((folder) => dirname(folder));
    expect(parents.filter(existsSync)).toEqual(parents);
    await runner.kill();
    await expect
      .poll(() => [parents.flatMap(processesOf), parents.filter((folder) => existsSync(folder))])
      .toEqual([[], []]);
  },
);

test('the shared servers have a place for everybody', async () => {
  const [one, other] = [await ownSchema(), await ownSchema()];
  expect(one.schema).not.toBe(other.schema);
  await query(one.url, `create table ${one.schema}.mine ()`);
  expect(await query(one.url, `select * from ${one.schema}.mine`)).toEqual([]);
  const place = ownPrefix();
  if (place !== undefined) expect(await ask(place.url, 'SET', `${place.prefix}key`, 'value')).toBe('OK');
});

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

async function ask(url: string, command: string, ...args: string[]): Promise<unknown> {
  const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0 });
  await client.connect();
  try {
    return await client.call(command, ...args);
  } finally {
    client.disconnect();
  }
}

async function hoursAhead({ url }: PostgresServer): Promise<number> {
  const [row] = (await query(url, 'select extract(epoch from clock_timestamp())::float8 as s')) as [
    { s: number },
  ];
  return Math.round((row.s * 1000 - Date.now()) / 3_600_000);
}

/** By what they were started with, which names their folder. */
function processesOf(folder: string): string[] {
  return globSync('/proc/[0-9]*/cmdline').filter((file) => {
    try {
      return readFileSync(file, 'utf8').includes(folder);
    } catch {
      return false;
    }
  });
}

function later(ms: number): Promise<string> {
  return new Promise((resolve) => setTimeout(resolve, ms, 'nothing yet'));
}
