// docs/guides/patterns.md: every call that it names lands once on every store that it names, across two programs on one ledger,
// and is refused on the others.

import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { createSemel, day, type Semel } from 'semel';
import { idempotent, receive, stripeEvents } from 'semel/http';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Place as Shell, place as shellIn } from '../cli/place.ts';
import { type DynamodbServer, startDynamodb, testCredentials, testRegion } from '../servers/dynamodb.ts';
import { ownPrefix, ownSchema } from '../servers/own-place.ts';
import { type S3Server, startS3 } from '../servers/s3.ts';
import { newPath } from '../stores/sqlite-folder.ts';
import { readPage, root, rows } from './page.ts';

interface Place {
  readonly store: string;
  /** A transaction in the ledger's database. Without one, whatever a user might pass. */
  transaction(work: (tx: unknown) => Promise<unknown>): Promise<unknown>;
}

let dynamodb: DynamodbServer;
let s3: S3Server;
beforeAll(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', testCredentials.accessKeyId);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', testCredentials.secretAccessKey);
  vi.stubEnv('AWS_REGION', testRegion);
  [dynamodb, s3] = await Promise.all([startDynamodb(), startS3()]);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await Promise.all([dynamodb.stop(), s3.stop()]);
});

const withoutTransaction: Place['transaction'] = (work) => work({ query: async () => [] });
let names = 0;

const places: Readonly<Record<string, () => Promise<Place | undefined>>> = {
  async SQLite() {
    const path = newPath();
    return { store: `sqlite:${path}`, transaction: (work) => inSqlite(path, work) };
  },
  async Postgres() {
    const { url, schema } = await ownSchema();
    const store = new URL(url);
    store.searchParams.set('schema', schema);
    return { store: store.href, transaction: (work) => inPostgres(url, work) };
  },
  async Redis() {
    const own = ownPrefix();
    if (own === undefined) return undefined;
    const store = new URL(own.url);
    store.searchParams.set('prefix', own.prefix);
    store.searchParams.set('durability', 'accept-loss');
    return { store: store.href, transaction: withoutTransaction };
  },
  async DynamoDB() {
    names += 1;
    const store = `dynamodb://patterns-${names}?endpoint=${dynamodb.endpoint}`;
    return { store, transaction: withoutTransaction };
  },
  async S3() {
    names += 1;
    return {
      store: `s3://ledgers/patterns-${names}?endpoint=${s3.endpoint}`,
      transaction: withoutTransaction,
    };
  },
};

type Land = () => void;
type Pattern = (semel: Semel, land: Land, place: Place) => Promise<unknown>;

const terms = { effect: 'irreversible', per: 'ever' } as const;
const secret = 'whsec_patterns';

/** By the call's name on the page. */
const patterns: Readonly<Record<string, Pattern>> = {
  'semel.once': (semel, land) => semel.once('mail', { lead: 7 }, land),
  'semel.tool': (semel, land) => semel.tool({ ...terms, name: 'mail', run: land })({ lead: 7 }),
  'tool.inTransaction': (semel, land, { transaction }) => {
    const reserve = semel.tool({ ...terms, name: 'reserve', run: land });
    return transaction((tx) => reserve.inTransaction(tx, { order: 7 }));
  },
  async 'tool.stage'(semel, land, { transaction }) {
    const mail = semel.tool({ ...terms, name: 'mail', run: land });
    await transaction((tx) => mail.stage(tx, { order: 7 }));
    await semel.outbox.drain();
  },
  'ctx.step': (semel, land) =>
    semel.tool({ ...terms, name: 'order', via: 'steps', run: (_, ctx) => ctx.step('charge', land) })({}),
  'semel.batch': (semel, land) => semel.batch('invoice', [{ id: 1 }], { id: ({ id }) => id }, land),
  'tool.each': (semel, land) => semel.tool({ ...terms, name: 'invoice', run: land }).each([{ id: 1 }]),
  'semel.consumer': (semel, land) => {
    const tool = semel.tool({ ...terms, name: 'refund', run: land });
    return semel.consumer(tool, { redelivery: '14d' }).handle({ body: { payment: 'pay-7' } });
  },
  receive: (semel, land) => receive(semel, stripeEvents({ secret }), land)(delivery()),
  idempotent: (semel, land) =>
    idempotent(semel, { name: 'orders', caller: () => 'ann' }, () => {
      land();
      return new Response('done');
    })(new Request('https://shop.example/', { method: 'POST', headers: { 'idempotency-key': 'k-7' } })),
  async 'semel.job'(semel, land) {
    const nightly = semel.job('nightly', { per: day('UTC') }, async (job) => {
      await job.step('plan', () => 'plan');
      await job.once('mail', land);
    });
    await nightly.run({ at: new Date('2026-06-19T03:00:00Z') });
  },
};

/** The same for the words of the command. */
const commands: Readonly<Record<string, (shell: Shell, effect: readonly string[]) => Promise<unknown>>> = {
  'semel run': (shell, effect) => shell.semel('run', 'digest', '--per', 'ever', '--', effect),
  'semel once': (shell, effect) => shell.semel('once', 'mail', '--id-json', '{"order":7}', '--', effect),
};

const listed = rows(readPage('docs/guides/patterns.md')).slice(1);
const withYourRows = ['tool.inTransaction', 'tool.stage'];
const calls = listed.flatMap(([, call]) =>
  [...call!.matchAll(/`([\w.]+)\(|`(semel (?:run|once))\b/g)]
    .map(([, name, command]) => (name ?? command)!)
    .filter((name) => name !== 'semel.outbox.relay')
    .map((name) => ({
      name,
      stores: withYourRows.includes(name) ? ['SQLite', 'Postgres'] : Object.keys(places),
    })),
);

test('what the page names and what is tested here is the same', () => {
  const tested = [...Object.keys(patterns), ...Object.keys(commands)];
  expect(calls.map(({ name }) => name).toSorted()).toEqual(tested.toSorted());
});

describe.each(Object.entries(places))('%s', (kind, makePlace) => {
  test.for(calls)('$name', async ({ name, stores }, { skip }) => {
    const place = await makePlace();
    if (place === undefined) return skip('no Redis can be had');
    const { landings, errors } =
      name in patterns ? await callTwice(name, place) : await typeTwice(name, place);
    if (stores.includes(kind)) expect({ landings, errors }).toEqual({ landings: 1, errors: [] });
    else {
      expect(landings).toBe(0);
      expect(errors).toMatchObject([{ code: 'STORE_UNSAFE' }, { code: 'STORE_UNSAFE' }]);
    }
  });
});

async function callTwice(name: string, place: Place) {
  let landings = 0;
  const errors: unknown[] = [];
  const land = () => {
    landings += 1;
  };
  for (let program = 1; program <= 2; program += 1) {
    await using semel = createSemel({ store: place.store, namespace: 'shop', onWarning: () => undefined });
    await semel.open();
    await patterns[name]!(semel, land, place).catch((error: unknown) => errors.push(error));
  }
  return { landings, errors };
}

async function typeTwice(name: string, { store }: Place) {
  const shell = shellIn({ SEMEL_STORE: store, SEMEL_DRIVERS: root });
  for (let program = 1; program <= 2; program += 1)
    await commands[name]!(shell, ['sh', '-c', `echo landed >> '${join(shell.folder, 'effects')}'`]);
  return { landings: shell.lines('effects').length, errors: [] };
}

async function inSqlite(path: string, work: (tx: unknown) => Promise<unknown>): Promise<void> {
  const database = new DatabaseSync(path);
  database.exec('BEGIN IMMEDIATE');
  await work(database);
  database.exec('COMMIT');
  database.close();
}

async function inPostgres(url: string, work: (tx: unknown) => Promise<unknown>): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query('BEGIN');
  await work(client);
  await client.query('COMMIT');
  await client.end();
}

function delivery(): Request {
  const body = JSON.stringify({ id: 'evt_7', type: 'payment_intent.succeeded' });
  const time = Math.floor(Date.now() / 1_000);
  const v1 = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex');
  const headers = { 'stripe-signature': `t=${time},v1=${v1}` };
  return new Request('https://shop.example/hooks', { method: 'POST', headers, body });
}
