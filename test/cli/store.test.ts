// `semel store`: looked at, made and moved by the command, on files and on a real Postgres; and the other commands on
// a ledger in Postgres.

import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';
import { startRedis } from '../servers/redis.ts';
import { eventually, type Place, place, until } from './place.ts';

let server: PostgresServer;
let schemas = 0;

beforeAll(async () => {
  server = await startPostgres();
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query("CREATE ROLE ada LOGIN SUPERUSER PASSWORD 'secret'");
  await client.end();
});

afterAll(() => server.stop());

/** With a password, and a schema of its own. */
function newUrl(): string {
  schemas += 1;
  return `${server.url.replace('postgres@', 'ada:secret@')}?schema=cli_${schemas}`;
}

function shown(url: string): string {
  return url.replace(':secret', '');
}

/** A place whose operator says where the drivers are. */
function placeWithDriver(): Place {
  return place({ SEMEL_DRIVERS: join(import.meta.dirname, '../..') });
}

describe('check', () => {
  test('reports a file’s settings and contents', async () => {
    const { semel, json } = place();
    await semel('once', 'mail', '--key', 'a', '--', 'true');
    const { stdout, code } = await semel('store', 'check');
    expect(code).toBe(0);
    expect(stdout).toMatch(/kind +sqlite \(SQLite 3\./);
    expect(stdout).toMatch(/schema +version 2\n/);
    expect(stdout).toMatch(/records +1 in 1 namespace/);
    expect(stdout).toMatch(/durable write +[\d.]+ ms/);
    expect(await json('store', 'check')).toMatchObject({
      kind: 'sqlite',
      records: 1,
      running: 0,
      inDoubt: 0,
      expired: 0,
      floor: 0,
    });
  });

  test('makes nothing', async () => {
    const { semel, storeAt } = placeWithDriver();
    expect(await semel('store', 'check', '--store', storeAt('none.db'))).toMatchObject({
      code: 69,
      stdout: '',
    });
    const { code, stderr } = await semel('store', 'check', '--store', newUrl());
    expect(code).toBe(69);
    expect(stderr).toMatch(/does not exist yet.*semel store migrate/s);
    expect(stderr).not.toContain('secret');
  });

  test('a database that does not answer', async () => {
    const { semel } = placeWithDriver();
    const { code, stderr } = await semel(
      'store',
      'check',
      '--store',
      'postgres://ada:secret@127.0.0.1:1/shop',
    );
    expect(code).toBe(69);
    expect(stderr).toMatch(/does not answer/);
    expect(stderr).not.toContain('secret');
  });

  test('without the driver it says what to install', async () => {
    const { semel } = place();
    const { code, stderr } = await semel('store', 'check', '--store', newUrl());
    expect(code).toBe(64);
    expect(stderr).toMatch(/`pg` is not installed.*npm install pg.*SEMEL_DRIVERS/s);
  });

  test.each(['postgres', 'redis'])(
    'no driver of %s is taken from the working folder or above it',
    async (kind) => {
      const at = place();
      for (const name of ['pg', 'redis', 'ioredis'])
        for (const above of ['', 'sub/']) {
          mkdirSync(at.path(`${above}node_modules/${name}`), { recursive: true });
          at.file(
            `${above}node_modules/${name}/index.js`,
            `require('fs').writeFileSync('${at.path('planted')}', '')`,
          );
        }
      for (const cwd of [at.folder, at.path('sub')]) {
        const said = await at.with({ cwd }).semel('store', 'check', '--store', `${kind}://127.0.0.1:1/x`);
        expect([said.code, said.stderr]).toEqual([64, expect.stringContaining('installed')]);
      }
      expect(existsSync(at.path('planted'))).toBe(false);
    },
  );
});

test('migrate says what it would run, makes the schema, and is done then', async () => {
  const { semel } = placeWithDriver();
  const url = newUrl();
  const dry = await semel('store', 'migrate', '--store', url, '--dry-run');
  expect(dry.stdout).toMatch(/CREATE TABLE "cli_\d+"\.meta/);
  expect(dry.stderr).toMatch(/from nothing to version 3/);
  expect((await semel('store', 'check', '--store', url)).code).toBe(69);
  expect((await semel('store', 'migrate', '--store', url)).stdout).toBe('Created the schema, version 3.\n');
  expect((await semel('store', 'migrate', '--store', url)).stdout).toBe('The schema is already version 3.\n');
  expect((await semel('store', 'check', '--store', url)).code).toBe(0);
});

test('migrate of a file prints without making it', async () => {
  const { semel, storeAt } = place();
  const { stdout } = await semel('store', 'migrate', '--store', storeAt('new.db'), '--dry-run');
  expect(stdout).toMatch(/CREATE TABLE meta/);
  expect((await semel('store', 'check', '--store', storeAt('new.db'))).code).toBe(69);
});

test('a ledger moves to Postgres with its doubts, and programs learn its new address', async () => {
  const here = placeWithDriver();
  const { semel, store, json } = here;
  await semel('once', 'mail', '--key', 'a', '--', 'echo', 'sent');
  await semel('once', 'pay', '--key', 'b', '--', 'sh', '-c', 'kill -9 $PPID');
  await semel('resolve', `${((await json('ls', '--tool', 'pay')) as { ref: string }[])[0]?.ref}`, 'died');
  const [doubt] = (await json('doubt')) as { ref: string }[];
  expect(doubt?.ref).toBeDefined();
  const url = newUrl();

  const dry = await semel('store', 'copy', '--from', store, '--to', url, '--dry-run');
  expect(dry.stdout).toMatch(/Would copy 2 records \(1 open\)/);
  expect((await semel('ls')).code).toBe(0);

  const moved = await semel('store', 'copy', '--from', store, '--to', url);
  expect(moved).toMatchObject({ code: 0 });
  expect(moved.stderr).toMatch(/first pass: 2 of 2 records, 2 copied\nsealed/);
  expect(moved.stdout).toContain('Done: 2 records (1 open)');
  expect(moved.stdout).toContain(`SEMEL_STORE='${shown(url)}'`);
  expect(moved.stdout + moved.stderr).not.toContain('secret');

  const old = await semel('once', 'mail', '--key', 'new', '--', 'touch', 'ran');
  expect(old.code).toBe(69);
  expect(old.stderr).toContain(`has moved to ${shown(url)}`);
  expect(here.lines('ran')).toEqual([]);

  const there = here.with({ env: { SEMEL_STORE: url } });
  expect(await there.semel('once', 'mail', '--key', 'a', '--', 'touch', 'ran')).toMatchObject({
    code: 0,
    stdout: 'sent\n',
  });
  const again = (await there.semel('doubt', '--json')).json<{ ref: string }[]>();
  expect(again).toMatchObject([{ ref: doubt?.ref }]);
  expect((await there.semel('resolve', doubt?.ref as string, 'landed', '-m', 'seen')).code).toBe(0);

  // Once more changes nothing, and giving it up is refused while the new one is open.
  const more = await semel('store', 'copy', '--from', store, '--to', url);
  expect(more).toMatchObject({ code: 0 });
  expect(more.stdout).toMatch(/before: nothing was changed/);
  const back = await semel('store', 'copy', '--from', store, '--to', url, '--unseal', '--yes');
  expect(back.code).toBe(64);
  expect(back.stderr).toMatch(/was finished/);
});

test('a seal is removed only on request', async () => {
  const { semel, store, storeAt } = place();
  await semel('once', 'mail', '--key', 'a', '--', 'true');
  await semel('store', 'copy', '--from', store, '--to', storeAt('new.db'));
  const asked = await semel('store', 'copy', '--from', store, '--unseal');
  expect(asked.code).toBe(64);
  expect(asked.stderr).toMatch(/no terminal to ask for confirmation/);
  expect((await semel('ls')).code).toBe(69);
  expect((await semel('store', 'copy', '--from', store, '--unseal', '--yes')).code).toBe(0);
  expect((await semel('ls')).code).toBe(0);
  // It is in use again, and so is the copy: it does not take it as empty.
  const again = await semel('store', 'copy', '--from', store, '--to', storeAt('new.db'));
  expect(again.code).toBe(69);
  expect(again.stderr).toMatch(/has records/);
});

test.each([
  [['copy', '--to', 'sqlite:x.db'], /--from/],
  [['copy', '--from', 'sqlite:x.db'], /--to/],
  [['look'], /one of check, migrate, copy, accept-loss/],
  [[], /one of check, migrate, copy, accept-loss/],
])('semel store %j is a usage error', async (args, message) => {
  const { semel } = place();
  await semel('once', 'mail', '--key', 'a', '--', 'true');
  const { code, stderr } = await semel('store', ...args);
  expect(code).toBe(64);
  expect(stderr).toMatch(message);
});

test('accept-loss says of a store that never forgets that it needs none', async () => {
  const { semel } = place();
  await semel('once', 'mail', '--key', 'a', '--', 'true');
  expect(await semel('store', 'accept-loss', '--yes')).toMatchObject({ code: 0 });
});

describe('the other commands on Postgres', () => {
  test('guard, show, decide and keep', async () => {
    const here = placeWithDriver();
    const env = { SEMEL_STORE: newUrl() };
    const { semel } = here.with({ env });
    expect(await semel('once', 'mail', '--key', 'a', '--', 'echo', 'sent')).toMatchObject({
      code: 0,
      stdout: 'sent\n',
    });
    expect(await semel('once', 'mail', '--key', 'a', '--', 'touch', 'twice')).toMatchObject({
      code: 0,
      stdout: 'sent\n',
    });
    const script = here.file('job.sh', `${here.word} step one -- echo step\necho "$SEMEL_STORE" > inside\n`);
    const run = await semel('run', 'job', '--per', 'day', '--', 'sh', script);
    expect(run).toMatchObject({ code: 0 });
    expect(run.stdout).toContain('step');
    // What is inside the run reaches the same ledger: the schema is part of its address.
    expect(here.lines('inside')).toEqual([env.SEMEL_STORE]);
    const listed = await semel('ls');
    expect(listed.stdout).toContain('step.one');
    expect(listed.stdout + listed.stderr).not.toContain('secret');
    for (const words of [
      ['doubt'],
      ['stats'],
      ['doctor'],
      ['prune'],
      ['export'],
      ['key', 'mail', '--key', 'a'],
    ])
      expect(await semel(...words), words.join(' ')).toMatchObject({ code: 0 });
    const [first] = (await semel('ls', '--tool', 'mail', '--json')).json<{ id: string; ref: string }[]>();
    expect((await semel('show', first?.id as string)).stdout).toContain('mail');
    expect((await semel('forget', first?.ref as string, '--yes')).code).toBe(0);
    const exported = (await semel('export')).stdout;
    const other = here.with({ input: exported });
    expect((await other.semel('import', '--store', newUrl(), '-')).code).toBe(0);
  });

  test('a killed run is distinguished from a live one without waiting for its lease', async () => {
    const here = placeWithDriver();
    const { semel, start } = here.with({ env: { SEMEL_STORE: newUrl() } });
    const living = start('run', 'job', '--per', 'day', '--', 'sh', '-c', `touch began; ${until('end')}`);
    await eventually(() => existsSync(here.path('began')));
    const busy = await semel('run', 'job', '--per', 'day', '--', 'touch', 'twice');
    expect(busy.stderr).toMatch(/running|already/i);
    here.file('end', '');
    expect((await living.ended).code).toBe(0);

    const killed = start('run', 'other', '--per', 'day', '--', 'sh', '-c', 'touch begun; kill -9 $PPID');
    await killed.ended;
    const next = await semel('run', 'other', '--per', 'day', '--', 'touch', 'second');
    expect(next.stderr + next.stdout).not.toMatch(/still running/);
  });
});

test('Redis: checked, and used again after a loss only when somebody accepts it', async () => {
  await using redis = await startRedis();
  if (redis === undefined) return;
  const here = placeWithDriver();
  const { semel } = here.with({ env: { SEMEL_STORE: redis.url } });
  expect(await semel('once', 'mail', '--key', 'a', '--', 'echo', 'sent')).toMatchObject({ stdout: 'sent\n' });
  const checked = await semel('store', 'check');
  expect(checked).toMatchObject({ code: 0 });
  expect(checked.stdout).toMatch(/kind +redis/);
  expect(checked.stdout).toMatch(/durable write +[\d.]+ ms/);
  expect(checked.stdout).not.toMatch(/^loss/m);
  expect((await semel('store', 'migrate')).stdout).toMatch(/no schema/);
  const asked = await semel('store', 'accept-loss');
  expect(asked.code).toBe(64);
  expect((await semel('store', 'accept-loss', '--yes', '-m', 'a disk\u0007 broke')).stdout).toMatch(
    /in use again/,
  );
  // Who said so, and why, can be read by those who wonder later.
  const said = (await semel('store', 'check')).stdout;
  expect(said).toMatch(/^loss +accepted 20\d\d-.*Z by \S+: a disk\\u0007 broke$/m);
  expect((await semel('store', 'check', '--json')).json<object>()).toMatchObject({
    lossAccepted: { by: expect.any(String), note: 'a disk\u0007 broke' },
  });
  expect(await semel('once', 'mail', '--key', 'a', '--', 'touch', 'twice')).toMatchObject({
    code: 0,
    stdout: 'sent\n',
  });
});

test('a ledger moves from a file to Redis and back', async () => {
  await using redis = await startRedis();
  if (redis === undefined) return;
  const here = placeWithDriver();
  const { semel, store, storeAt } = here;
  const [url, back] = [`${redis.url}?prefix=shop`, storeAt('back.db')];
  await semel('once', 'mail', '--key', 'a', '--', 'echo', 'sent');
  const none = await semel('store', 'copy', '--from', url, '--to', back);
  expect(none.code).toBe(69);
  expect(none.stderr).toContain(`There is no ledger at ${url}`);
  const dry = await semel('store', 'copy', '--from', store, '--to', url, '--dry-run');
  expect(dry.stdout).toMatch(/Would copy 1 records \(0 open\) of .* to a ledger that would be made/);

  const moved = await semel('store', 'copy', '--from', store, '--to', url);
  expect(moved).toMatchObject({ code: 0 });
  expect(moved.stdout).toContain(`SEMEL_STORE='${url}'`);
  const there = here.with({ env: { SEMEL_STORE: url } });
  const replayed = { code: 0, stdout: 'sent\n' };
  expect(await there.semel('once', 'mail', '--key', 'a', '--', 'touch', 'twice')).toMatchObject(replayed);

  expect(await semel('store', 'copy', '--from', url, '--to', back)).toMatchObject({ code: 0 });
  const refused = await there.semel('once', 'mail', '--key', 'b', '--', 'touch', 'twice');
  expect(refused.code).toBe(69);
  expect(refused.stderr).toContain(`has moved to ${back}`);
  const last = here.with({ env: { SEMEL_STORE: back } });
  expect(await last.semel('once', 'mail', '--key', 'a', '--', 'touch', 'twice')).toMatchObject(replayed);
  expect(here.lines('twice')).toEqual([]);
});
