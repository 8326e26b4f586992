// What happens at the server between a decision and its statement.
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { claimRequest, lease, take, theKey, theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { movableTime } from './movable-time.ts';
import { type MovableLedger, movableLedger } from './postgres-ledger.ts';

let ledger: MovableLedger;
let pool: pg.Pool;
beforeAll(async () => {
  const url = inject('postgresUrl');
  ledger = await movableLedger(url);
  pool = new pg.Pool({ connectionString: url, max: 2 });
});
afterAll(async () => {
  await pool?.end();
  await ledger?.end();
});

async function setting() {
  const { clock, time } = movableTime();
  await ledger.empty();
  await ledger.setClock(time().wall);
  let what = '';
  let happens = async () => {};
  const client = {
    async query(asked: unknown, values?: unknown[]) {
      const text = typeof asked === 'string' ? asked : (asked as { text: string }).text;
      if (what !== '' && text.includes(what)) {
        what = '';
        await happens();
      }
      return pool.query(asked as string, values);
    },
  };
  const meanwhile = (before: string, play: () => Promise<unknown>) => {
    what = before;
    happens = async () => void (await play());
  };
  const store = await ledger.open({ client: client as never, clock });
  return {
    store,
    meanwhile,
    lapse: () => ledger.setClock(time().wall + lease),
    clock,
    now: () => time().wall,
  };
}

test.each([
  ['write(', lease],
  // What is about to turn is written by itself.
  ['swap(', 900],
])('a dispatch that reaches the server after its lease is refused: %s', async (by, leaseMs) => {
  const { store, meanwhile, lapse } = await setting();
  const held = await take(store, { leaseMs });
  meanwhile(by, lapse);
  expect(await held.dispatch()).toMatchObject({ ok: false, why: 'lapsed' });
  await store.close();
});

test('a first claim that reaches the server late counts from its execution there', async () => {
  const { store, meanwhile, lapse, now } = await setting();
  meanwhile('write(', lapse);
  const { won, record } = await store.claim(claimRequest());
  expect(won).toBe(true);
  expect(record).toMatchObject({ createdAt: now() + lease, lapsed: false });
  await store.close();
});

test('a settlement that reaches the server too late is decided again', async () => {
  const { store, meanwhile, lapse, now } = await setting();
  const held = await take(store);
  meanwhile('write(', lapse);
  expect((await held.succeed()).record).toMatchObject({ status: 'succeeded', settledAt: now() + lease });
  await store.close();
});

test('a record that its holder renewed while retention looked stays', async () => {
  const { store, meanwhile, lapse, clock } = await setting();
  const other = await ledger.open({ clock });
  const none = { windowMs: 0, failureWindowMs: 0, keep: false, periodEndsAt: null };
  const held = await take(other, { retention: none });
  await lapse();
  meanwhile('.remove(', () => held.renew());
  expect(await store.prune(10)).toBe(0);
  expect(await store.read(theNamespace, theKey)).toMatchObject({ status: 'running', lapsed: false });
  await Promise.all([store.close(), other.close()]);
});
