// The command on stores without a server of one's own and on a stock Redis, by their URLs; and on a store of the user's
// own, by its path.

import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DynamodbServer, startDynamodb, testCredentials, testRegion } from '../servers/dynamodb.ts';
import { startRedis } from '../servers/redis.ts';
import { type S3Server, startS3 } from '../servers/s3.ts';
import { place } from './place.ts';

let dynamodb: DynamodbServer;
let s3: S3Server;

beforeAll(async () => {
  [dynamodb, s3] = await Promise.all([startDynamodb(), startS3()]);
});
afterAll(() => Promise.all([dynamodb.stop(), s3.stop()]));

const credentials = {
  AWS_ACCESS_KEY_ID: testCredentials.accessKeyId,
  AWS_SECRET_ACCESS_KEY: testCredentials.secretAccessKey,
  AWS_REGION: testRegion,
};

test('a stock Redis, which would lose what it confirmed, is refused with 69, and nothing runs', async () => {
  await using redis = await startRedis({ persistence: 'none' });
  if (redis === undefined) return;
  const drivers = join(import.meta.dirname, '../..');
  const at = place({ SEMEL_STORE: redis.url, SEMEL_DRIVERS: drivers });
  const words = ['once', 'mail', '--key', 'a', '--', 'sh', '-c', 'echo ran >> effects'];
  const refused = await at.semel(...words);
  expect(refused).toMatchObject({ code: 69, stdout: '' });
  expect(refused.stderr).toContain('appendonly is off');
  expect(refused.stderr).toContain('durability=accept-loss');
  expect(at.lines('effects')).toEqual([]);
  const allowed = at.with({ env: { SEMEL_STORE: `${redis.url}?durability=accept-loss` } });
  expect((await allowed.semel(...words)).code).toBe(0);
});

describe.each(['dynamodb', 's3'] as const)('%s', (kind) => {
  const urls = {
    dynamodb: () => `dynamodb://ledger?endpoint=${dynamodb.endpoint}`,
    s3: () => `s3://ledgers/cli?endpoint=${s3.endpoint}`,
  };

  test('runs once, lists, checks and exports; a ledger is not moved', async () => {
    const at = place({ ...credentials, SEMEL_STORE: urls[kind]() });
    const words = ['once', 'mail', '--key', 'welcome-7', '--', 'sh', '-c', 'echo ran >> effects; echo sent'];
    expect((await at.semel(...words)).stdout).toBe('sent\n');
    expect((await at.semel(...words)).stdout).toBe('sent\n');
    expect(at.lines('effects')).toEqual(['ran']);
    expect(await at.json('store', 'check')).toMatchObject({ kind, durable: true, records: 1 });
    expect((await at.semel('ls')).stdout).toContain('mail');
    expect((await at.semel('export')).stdout).toContain('welcome-7');
    const moved = await at.semel('store', 'copy', '--from', urls[kind](), '--to', at.storeAt('new.db'));
    expect([moved.code, moved.stderr]).toEqual([expect.any(Number), expect.stringContaining('semel export')]);
    expect(moved.code).not.toBe(0);
  });

  test('says which credentials are missing', async () => {
    const at = place({ SEMEL_STORE: `${urls[kind]()}&region=${testRegion}` });
    const { code, stderr } = await at.semel('once', 'mail', '--key', 'a', '--', 'true');
    expect([code, stderr]).toEqual([expect.any(Number), expect.stringContaining('AWS_ACCESS_KEY_ID')]);
    expect(code).not.toBe(0);
  });
});

test('a module is loaded for an operator who names it, and not for an agent', async () => {
  const at = place();
  chmodSync(at.file('store.mjs', "export default () => { throw new Error('it was loaded'); };"), 0o644);
  const words = ['ls', '--store', 'module:./store.mjs'];
  expect((await at.semel(...words)).stderr).toContain('it was loaded');
  const { stderr } = await at.with({ env: { CLAUDECODE: '1' } }).semel(...words);
  expect(stderr).not.toContain('it was loaded');
});
