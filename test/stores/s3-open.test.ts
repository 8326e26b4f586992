// The S3 store by its address, what it refuses, what a call costs, and what it does when S3 fails.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createSemel } from '../../src/index.ts';
import { storeAt } from '../../src/semel/place/store-choice.ts';
import { type S3StoreOptions, s3Store } from '../../src/stores/s3/index.ts';
import { take, theKey, theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { testCredentials, testRegion } from '../servers/dynamodb.ts';
import { type S3Server, startS3 } from '../servers/s3.ts';

let server: S3Server;
let prefixes = 0;
let prefix = '';

beforeAll(async () => {
  server = await startS3();
});
afterAll(() => server.stop());
beforeEach(() => {
  prefixes += 1;
  prefix = `open-${prefixes}`;
  server.fault = () => undefined;
  server.lifecycle = undefined;
});

const open = (options: Partial<S3StoreOptions> = {}) =>
  s3Store({
    bucket: 'ledgers',
    prefix,
    region: testRegion,
    endpoint: server.endpoint,
    credentials: testCredentials,
    ...options,
  });

test('a URL names bucket and prefix; credentials come from the environment', async () => {
  const before = { ...process.env };
  Object.assign(process.env, {
    AWS_ACCESS_KEY_ID: testCredentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: testCredentials.secretAccessKey,
  });
  try {
    const url = `s3://ledgers/${prefix}/a?region=${testRegion}&endpoint=${encodeURIComponent(server.endpoint)}`;
    await using semel = createSemel({ store: url, namespace: 'shop' });
    expect(await semel.open()).toMatchObject({ kind: 's3', address: url, forgets: undefined });
    const send = () => semel.once('mail.send', { key: 'welcome-7' }, async () => 'sent');
    expect([await send(), await send()]).toEqual(['sent', 'sent']);
    const store = await storeAt(url);
    expect(await store.namespaces()).toEqual(['shop']);
    await store.close();
  } finally {
    process.env = before;
  }
});

describe('what cannot be used is refused before anything runs', () => {
  test.each([
    ['s3://', /cannot be read/],
    ['s3://bucket?zone=a', /cannot be read/],
    ['s3://Bucket/a?region=eu-central-1', /is not a bucket/],
    ['s3://fast--euc1-az1--x-s3/a?region=eu-central-1', /is not a bucket/],
    ['s3://bucket/a%20b?region=eu-central-1', /not a valid prefix/],
  ])('%s', async (url, message) => {
    await expect(async () => (await storeAt(url)).open()).rejects.toThrow(message);
  });

  test('a service that does not compare before it writes', async () => {
    server.fault = () => 'ignores conditions';
    await expect(open().open()).rejects.toMatchObject({
      code: 'STORE_UNSAFE',
      message: expect.stringContaining('without comparing'),
    });
  });

  test('a rule that expires the objects of the ledger, and no other', async () => {
    const rule = (where: string, status = 'Enabled') =>
      `<LifecycleConfiguration><Rule><ID>a</ID><Filter><Prefix>${where}</Prefix></Filter><Status>${status}</Status><Expiration><Days>7</Days></Expiration></Rule></LifecycleConfiguration>`;
    for (const [where, status, isRefused] of [
      ['', 'Enabled', true],
      [`${prefix}/records/`, 'Enabled', true],
      ['logs/', 'Enabled', false],
      ['', 'Disabled', false],
    ] as const) {
      server.lifecycle = rule(where, status);
      const opening = open().open();
      if (isRefused) await expect(opening).rejects.toThrow(/lifecycle rule/);
      else await opening;
    }
  });

  test('a bucket that is not there', async () => {
    await expect(open({ bucket: 'missing' }).open()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retriable: false,
    });
  });

  test('a wrong secret', async () => {
    const credentials = { ...testCredentials, secretAccessKey: 'another' };
    await expect(open({ credentials }).open()).rejects.toMatchObject({
      code: 'STORE_UNSAFE',
      message: expect.stringContaining('s3:PutObject'),
    });
  });
});

test('a first execution is two writes and a replay one read', async () => {
  const asked = () => server.asked.splice(0).map(({ method }) => method);
  await using semel = createSemel({ store: open(), namespace: 'shop' });
  // The first call of a process looks first.
  await semel.once('mail.send', { key: 'first' }, async () => 'sent');
  asked();
  await semel.once('mail.send', { key: 'welcome-7' }, async () => 'sent');
  expect(asked()).toEqual(['PUT', 'PUT']);
  await using other = createSemel({ store: open(), namespace: 'shop' });
  await other.open();
  asked();
  await other.once('mail.send', { key: 'welcome-7' }, async () => 'sent');
  expect(asked()).toEqual(['GET']);
});

test('a lost reply is resolved by reading; 409, 500 and 503 are retried', async () => {
  const store = open();
  await store.open();
  for (const fault of ['lost', 409, 500, 503] as const) {
    const key = `mail.send/=${fault}`;
    let left = 2;
    server.fault = ({ method }) => {
      if (method !== 'PUT' || left === 0) return undefined;
      left -= 1;
      return fault;
    };
    const { fence } = await take(store, { key });
    expect(left).toBe(0);
    expect(await store.read(theNamespace, key)).toMatchObject({ fence, attempts: 1 });
  }
});

test('a machine whose clock is a day off signs by the time of the service', async () => {
  const { now } = server;
  server.now = () => Date.now() + 86_400_000;
  try {
    const store = open();
    await take(store);
    const readAt = (await store.read(theNamespace, theKey))?.readAt ?? 0;
    expect(readAt).toBeGreaterThan(Date.now() + 80_000_000);
  } finally {
    server.now = now;
  }
});

test('a bucket without conditional deletes keeps the remains of removed records', async () => {
  const retention = { windowMs: 0, failureWindowMs: 0, keep: false, periodEndsAt: null };
  const { now } = server;
  try {
    for (const compares of [false, true]) {
      const store = open({ prefix: `${prefix}-${compares}` });
      await (await take(store, { retention })).succeed();
      expect(await store.prune(10)).toBe(1);
      server.now = () => now() + 3 * 86_400_000;
      server.deletesBlindly = !compares;
      await store.prune(10);
      const left = [...server.objects.keys()].filter((name) =>
        name.includes(`${prefix}-${compares}/records/shop`),
      );
      expect(left.length).toBe(compares ? 0 : 1);
      server.now = now;
    }
  } finally {
    server.now = now;
    server.deletesBlindly = false;
  }
});
