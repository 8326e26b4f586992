// Other people's transactions, overlapping batches, and records that the database will not take.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { postgresStore } from '../../src/stores/postgres/index.ts';
import { qualify } from '../../src/stores/postgres/schema.ts';
import { claimRequest, newToken, take, theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';

let server: PostgresServer;
let stranger: pg.Client;
beforeAll(async () => {
  server = await startPostgres();
  stranger = new pg.Client({ connectionString: server.url });
  await stranger.connect();
});
afterAll(async () => {
  await stranger?.end();
  await server?.stop();
});

const sql = (text: string) => stranger.query(qualify('semel', text));
const open = async () => {
  const store = postgresStore({ url: server.url });
  await store.open();
  return store;
};

test('a call on a locked row waits, and no other call does', async () => {
  const store = await open();
  const held = await take(store, { key: 'mail.send/=locked' });
  await sql('BEGIN');
  await sql("SELECT 1 FROM semel.records WHERE key = 'mail.send/=locked' FOR UPDATE");
  let isSettled = false;
  const settled = held.succeed().finally(() => {
    isSettled = true;
  });
  for (let n = 0; n < 50; n += 1) {
    const other = await take(store, { key: `mail.send/=free ${n}` });
    await other.succeed();
  }
  expect(isSettled).toBe(false);
  // What can be told by looking is told: the record is running.
  expect((await store.claim(claimRequest({ key: 'mail.send/=locked' }))).won).toBe(false);
  await sql('ROLLBACK');
  expect((await settled).settled).toBe(true);
  await store.close();
});

test('a claim under several keys that is blocked for ever fails alone, and no other call waits for it', async () => {
  const store = await open();
  const key = 'mail.send/=new form';
  await sql('BEGIN');
  await sql(`SELECT pg_advisory_xact_lock(hashtextextended('${theNamespace}' || chr(1) || '${key}', 0))`);
  const stuck = store.claim(claimRequest({ key, olderKeys: ['mail.send/=old form'] })).then(
    () => 'won',
    (error: { code: string }) => error.code,
  );
  const others = Array.from({ length: 20 }, (_, n) =>
    store.claim(claimRequest({ key: `mail.send/=apart ${n}` })),
  );
  expect((await Promise.all(others)).every(({ won }) => won)).toBe(true);
  expect(await stuck).toBe('STORE_UNAVAILABLE');
  await sql('ROLLBACK');
  await take(store, { key, olderKeys: ['mail.send/=old form'] });
  await store.close();
});

test('a call on a record that an open transaction inserts waits, and no other call does', async () => {
  const [store, other] = await Promise.all([open(), open()]);
  const key = 'mail.send/=unborn';
  await take(other, { key });
  await sql(`CREATE TEMPORARY TABLE unborn AS SELECT * FROM semel.records WHERE key = '${key}'`);
  await sql(`DELETE FROM semel.records WHERE key = '${key}'`);
  await sql('BEGIN');
  await sql('INSERT INTO semel.records SELECT * FROM unborn');
  let isAnswered = false;
  const claimed = store.claim(claimRequest({ key })).finally(() => {
    isAnswered = true;
  });
  await Promise.all(
    Array.from({ length: 40 }, async (_, n) =>
      (await take(store, { key: `mail.send/=beside ${n}` })).succeed(),
    ),
  );
  expect(isAnswered).toBe(false);
  await sql('COMMIT');
  expect((await claimed).won).toBe(false);
  await Promise.all([store.close(), other.close()]);
});

test('a claim that waited for a record to be settled by another does not take its key for free', async () => {
  const [store, other] = await Promise.all([open(), open()]);
  for (let n = 0; n < 12; n += 1) {
    const key = `mail.send/=moving ${n}`;
    const holder = await take(other, { key });
    await sql('BEGIN');
    await sql(`SELECT FROM semel.records WHERE key = '${key}' FOR UPDATE`);
    const settled = holder.succeed();
    // This process has never seen the key, and tries to make it.
    const claimed = store.claim(claimRequest({ key }));
    await new Promise((resolve) => setTimeout(resolve, n * 4));
    await sql('COMMIT');
    expect((await claimed).won).toBe(false);
    expect((await settled).settled).toBe(true);
  }
  await Promise.all([store.close(), other.close()]);
});

test('a claim that waited for a record to be removed does not reuse its fence', async () => {
  const [store, other] = await Promise.all([open(), open()]);
  for (let n = 1; n <= 12; n += 1) {
    const key = `mail.send/=removed ${n}`;
    await take(other, { key });
    const floor = 10 * n;
    await sql('BEGIN');
    await sql(`DELETE FROM semel.records WHERE key = '${key}'`);
    await sql(`UPDATE semel.meta SET floor = ${floor}`);
    const claimed = store.claim(claimRequest({ key }));
    await new Promise((resolve) => setTimeout(resolve, n * 4));
    await sql('COMMIT');
    const { won, record } = await claimed;
    // It looked before the removal, and lost to what was there; or it is above everything that was removed.
    if (won) expect(record?.fence).toBeGreaterThan(floor);
  }
  await Promise.all([store.close(), other.close()]);
});

test('a row that stays locked is IN_FLIGHT, not STORE_UNAVAILABLE', async () => {
  const store = await open();
  const held = await take(store, { key: 'mail.send/=stuck' });
  await sql('BEGIN');
  await sql("SELECT 1 FROM semel.records WHERE key = 'mail.send/=stuck' FOR UPDATE");
  await expect(held.succeed()).rejects.toMatchObject({ code: 'IN_FLIGHT' });
  await sql('ROLLBACK');
  expect((await held.succeed()).settled).toBe(true);
  await store.close();
});

test('a trigger that swallows writes is not reported as a lock', async () => {
  const store = await open();
  const held = await take(store, { key: 'mail.send/=before the trigger' });
  await sql(`CREATE FUNCTION semel.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`);
  await sql(
    'CREATE TRIGGER nothing BEFORE INSERT OR UPDATE ON semel.records FOR EACH ROW EXECUTE FUNCTION semel.nothing()',
  );
  try {
    const refusals = await Promise.allSettled([
      store.claim(claimRequest({ key: 'mail.send/=swallowed' })),
      held.succeed(),
    ]);
    for (const refusal of refusals)
      expect(refusal).toMatchObject({
        reason: { code: 'IN_FLIGHT', message: expect.stringContaining('a trigger or rule of its table') },
      });
  } finally {
    await sql('DROP TRIGGER nothing ON semel.records');
  }
  expect((await held.succeed()).settled).toBe(true);
  await store.close();
});

test('a record that the database does not take fails alone', async () => {
  const store = await open();
  const claims = Array.from({ length: 30 }, (_, n) =>
    // A text of Postgres holds no NUL; the library lets none come so far.
    store.claim(claimRequest({ key: `mail.send/=poison ${n}`, owner: n === 17 ? 'a\0b' : 'ada' })),
  );
  const answers = await Promise.allSettled(claims);
  expect(answers.filter(({ status }) => status === 'rejected')).toHaveLength(1);
  expect(answers[17]).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE', retriable: false } });
  await store.close();
});

test('a record that cannot be read fails alone', async () => {
  const [store, other] = await Promise.all([open(), open()]);
  const keys = ['before', 'odd', 'after'].map((name) => `mail.send/=unread ${name}`);
  await take(other, { key: keys[1] as string });
  await sql(`UPDATE semel.records SET more = '{' WHERE key = '${keys[1]}'`);
  const answers = await Promise.allSettled(keys.map((key) => take(store, { key })));
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(answers[1]).toMatchObject({ reason: { code: 'STORE_UNSAFE', retriable: false } });
  expect(String((answers[1] as PromiseRejectedResult).reason)).toContain(keys[1]);
  await sql(`DELETE FROM semel.records WHERE key = '${keys[1]}'`);
  await Promise.all([store.close(), other.close()]);
});

test('a batch over several namespaces finds what is open beside what has ended', async () => {
  const store = await open();
  const [ended, running] = ['mail.send/=crossed 1', 'mail.send/=crossed 2'];
  for (const namespace of ['one', 'two']) await (await take(store, { namespace, key: ended })).succeed();
  await take(store, { namespace: 'two', key: running });
  const found = await Promise.all([store.read('one', ended), store.read('two', running)]);
  expect(found.map((record) => record?.status)).toEqual(['succeeded', 'running']);
  await store.close();
});

test('batches that overlap never wait for each other in a circle', async () => {
  const stores = await Promise.all(Array.from({ length: 4 }, open));
  const keys = Array.from({ length: 60 }, (_, n) => `mail.send/=overlap ${n}`);
  const before = await sql('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()');
  let won = 0;
  for (let round = 0; round < 15; round += 1) {
    await Promise.all(
      stores.map(async (store, index) => {
        const order = index % 2 === 0 ? keys : keys.toReversed();
        await Promise.all(
          order.map(async (key) => {
            const token = newToken();
            const answer = await store.claim(claimRequest({ key, token }));
            if (!answer.won) return;
            won += 1;
            const { fence, generation } = answer.record;
            const about = { namespace: theNamespace, key, token, fence, generation };
            const settled = await store.settle({
              ...about,
              outcome: 'released',
              result: null,
              error: null,
              keyed: false,
              found: false,
            });
            expect(settled.settled).toBe(true);
          }),
        );
      }),
    );
  }
  expect(won).toBeGreaterThan(15 * 60 - 1);
  const after = await sql('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()');
  expect(after.rows).toEqual(before.rows);
  await Promise.all(stores.map((store) => store.close()));
});
