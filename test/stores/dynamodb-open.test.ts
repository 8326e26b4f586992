// The DynamoDB store by its address, what it refuses, what a call costs, and what it does when DynamoDB fails.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createSemel } from '../../src/index.ts';
import { storeAt } from '../../src/semel/place/store-choice.ts';
import { type DynamodbStoreOptions, dynamodbStore } from '../../src/stores/dynamodb/index.ts';
import { claimRequest, take, theKey, theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { type DynamodbServer, startDynamodb, testCredentials, testRegion } from '../servers/dynamodb.ts';

let server: DynamodbServer;
let tables = 0;
let table = '';

beforeAll(async () => {
  server = await startDynamodb();
});
afterAll(() => server.stop());
beforeEach(() => {
  tables += 1;
  table = `open-${tables}`;
});

const open = (options: Partial<DynamodbStoreOptions> = {}) =>
  dynamodbStore({
    table,
    region: testRegion,
    endpoint: server.endpoint,
    credentials: testCredentials,
    ...options,
  });

type Fetch = typeof globalThis.fetch;

/** Answers some requests itself: `answer` returns undefined for those that go to the server. */
function intercept(
  answer: (action: string, send: () => Promise<Response>) => Promise<Response> | undefined,
): Fetch {
  return async (url, init) => {
    const action = new Headers(init?.headers).get('x-amz-target')?.split('.')[1] ?? '';
    const send = () => fetch(url, init);
    return (await answer(action, send)) ?? send();
  };
}

const reply = (body: object, status = 200) =>
  Promise.resolve(Response.json(body, { status, headers: { date: new Date().toUTCString() } }));
const failure = (code: string, status = 400) =>
  reply({ __type: `com.amazonaws.dynamodb#${code}`, message: 'no' }, status);

test('a URL names the table; credentials come from the environment', async () => {
  const before = { ...process.env };
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'AKIATEST', AWS_SECRET_ACCESS_KEY: 'secret' });
  try {
    const url = `dynamodb://${table}?region=${testRegion}&endpoint=${encodeURIComponent(server.endpoint)}`;
    await using semel = createSemel({ store: url, namespace: 'shop' });
    expect(await semel.open()).toMatchObject({ kind: 'dynamodb', address: url, forgets: undefined });
    const send = () => semel.once('mail.send', { key: 'welcome-7' }, async () => 'sent');
    expect(await send()).toBe('sent');
    expect(await send()).toBe('sent');
    const store = await storeAt(url);
    expect(await store.namespaces()).toEqual(['shop']);
    await store.close();
  } finally {
    process.env = before;
  }
});

describe('what cannot be used is refused before anything runs', () => {
  test.each([
    ['dynamodb://', /cannot be read/],
    ['dynamodb://table?zone=a', /cannot be read/],
    ['dynamodb://t?region=eu-central-1', /not a name of a DynamoDB table/],
    ['dynamodb://table?region=eu%2Fcentral', /not an AWS region/],
    ['dynamodb://table?region=eu-central-1&endpoint=ftp%3A%2F%2Fhost', /endpoint/],
  ])('%s', async (url, message) => {
    await expect(async () => (await storeAt(url)).open()).rejects.toThrow(message);
  });

  test('a table with other keys', async () => {
    const described = {
      Table: { TableStatus: 'ACTIVE', KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }] },
    };
    const store = open({
      fetch: intercept((action) => (action === 'DescribeTable' ? reply(described) : undefined)),
    });
    await expect(store.open()).rejects.toMatchObject({
      code: 'STORE_UNSAFE',
      message: expect.stringContaining('was not made for a ledger'),
    });
  });

  test('a global table, unless its regions are strongly consistent', async () => {
    await open().open();
    const replicated = (consistency?: string) =>
      open({
        fetch: intercept((action, send) =>
          action === 'DescribeTable'
            ? send().then(async (answer) => {
                const { Table } = (await answer.json()) as { Table: object };
                return reply({ Table: { ...Table, Replicas: [{}], MultiRegionConsistency: consistency } });
              })
            : undefined,
        ),
      });
    await expect(replicated().open()).rejects.toThrow(/global table/);
    await replicated('STRONG').open();
  });

  test('a table that deletes our items by their age', async () => {
    const ttl = { TimeToLiveDescription: { TimeToLiveStatus: 'ENABLED', AttributeName: 'tag' } };
    const store = open({
      fetch: intercept((action) => (action === 'DescribeTimeToLive' ? reply(ttl) : undefined)),
    });
    await expect(store.open()).rejects.toThrow(/time to live/);
  });

  test('a missing table, where none may be created', async () => {
    await expect(open({ migrate: false }).open()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retriable: false,
    });
  });

  test.each([
    { credentials: { ...testCredentials, sessionToken: 'hidden\nhidden' } },
    { credentials: { ...testCredentials, accessKeyId: 'hidden\n' } },
    { credentials: async () => ({ ...testCredentials, secretAccessKey: 'hidden hidden' }) },
    { endpoint: 'http://:hidden@127.0.0.1:1' },
  ])('credentials that no request can carry, without telling them: %j', async (options) => {
    const opening = async () => open(options).open();
    const error = await opening().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: expect.stringMatching(/^(CONTRACT_INVALID|STORE_)/) });
    expect(String(error)).not.toContain('hidden');
  });

  test('credentials that may not use it', async () => {
    const store = open({ fetch: intercept(() => failure('AccessDeniedException')) });
    await expect(store.open()).rejects.toMatchObject({
      code: 'STORE_UNSAFE',
      message: expect.stringContaining('dynamodb:'),
    });
  });
});

test('a first execution is two writes and a replay one read', async () => {
  const asked: string[] = [];
  const counted = intercept((action) => {
    asked.push(action);
    return undefined;
  });
  await using semel = createSemel({ store: open({ fetch: counted }), namespace: 'shop' });
  await semel.once('mail.send', { key: 'first' }, async () => 'sent');
  asked.length = 0;
  await semel.once('mail.send', { key: 'welcome-7' }, async () => 'sent');
  expect(asked).toEqual(['PutItem', 'PutItem']);
  await using other = createSemel({ store: open({ fetch: counted }), namespace: 'shop' });
  await other.open();
  asked.length = 0;
  await other.once('mail.send', { key: 'welcome-7' }, async () => 'sent');
  expect(asked).toEqual(['BatchGetItem']);
});

test('of two processes that claim a key at once, one wins', async () => {
  const stores = [open(), open()];
  for (const store of stores) await store.open();
  const answers = await Promise.all(stores.map((store) => store.claim(claimRequest())));
  expect(answers.filter(({ won }) => won).length).toBe(1);
});

test('a reply that is lost after the write is found out by reading', async () => {
  let lost = 0;
  const losing = intercept((action, send) => {
    if (action !== 'PutItem' || lost >= 2) return undefined;
    return send().then(() => {
      lost += 1;
      throw new TypeError('fetch failed');
    });
  });
  await open().open();
  const store = open({ fetch: losing });
  const { fence } = await take(store);
  expect(lost).toBe(2);
  expect(await store.read(theNamespace, theKey)).toMatchObject({ fence, attempts: 1 });
  expect(await store.history(theNamespace, theKey)).toEqual([]);
});

test('throttling and server errors are tried again; a signature of the wrong time too', async () => {
  const failures = ['ThrottlingException', 'InternalServerError', 'InvalidSignatureException'];
  let failed = 0;
  for (const code of failures) {
    let once = true;
    const failing = intercept((action) => {
      if (action !== 'PutItem' || !once) return undefined;
      once = false;
      failed += 1;
      return failure(code, code === 'InternalServerError' ? 500 : 400);
    });
    await take(open({ fetch: failing }), { key: `mail.send/=${code}` });
  }
  expect(failed).toBe(failures.length);
});

test('a service that stays down is unavailable, and says why', async () => {
  await open().open();
  const store = open({
    fetch: intercept(() =>
      Promise.reject(new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })),
    ),
    timeoutMs: 300,
  });
  await expect(store.open()).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringContaining('ECONNREFUSED'),
  });
});
