// What a service, a proxy on the way, or somebody who writes to the bucket can do to the stores in S3 and DynamoDB: it ends in
// an error that names no secret, and never in a ledger that seems to be empty.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock, systemRandom } from '../../src/core/clock.ts';
import { AwsError, createClient } from '../../src/store/aws/index.ts';
import { dateClock } from '../../src/store/cells/index.ts';
import type { Store } from '../../src/store/index.ts';
import { dynamodbStore } from '../../src/stores/dynamodb/index.ts';
import { s3Store } from '../../src/stores/s3/index.ts';
import { take, theKey, theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { testCredentials, testRegion } from '../servers/dynamodb.ts';
import { type S3Server, startS3 } from '../servers/s3.ts';

const credentials = {
  accessKeyId: 'AKIACANARY',
  secretAccessKey: 'canary/secret',
  sessionToken: 'canary/token==',
};

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

async function answering(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const kinds = ['s3', 'dynamodb'] as const;

function storeOf(kind: (typeof kinds)[number], endpoint: string): Store {
  const place = { region: testRegion, endpoint, credentials };
  return kind === 's3' ? s3Store({ ...place, bucket: 'ledgers' }) : dynamodbStore(place);
}

const thrownBy = async (work: () => unknown): Promise<Error> => {
  try {
    await work();
  } catch (error) {
    return error as Error;
  }
  throw new Error('it was accepted');
};

/** Everything of an error that a log could print. */
const allOf = (error: unknown): string => {
  const { message, stack, cause, evidence, input } = error as Record<string, unknown>;
  const more = cause === undefined ? '' : allOf(cause);
  return `${message} ${stack} ${JSON.stringify(evidence)} ${input} ${more}`;
};

test('waiting for credentials that never arrive ends, and blocks no later request', async () => {
  let isHanging = true;
  const never = new Promise<typeof credentials>(() => {});
  const common = { region: testRegion, service: 's3', fetch, dates: dateClock(), clock: systemClock };
  const ask = createClient({
    ...common,
    random: systemRandom,
    endpoint: await answering((_, response) => response.end('here')),
    credentials: () => (isHanging ? never : Promise.resolve(credentials)),
    timeoutMs: 2_000,
    parseError: ({ status }) => new AwsError('', status, ''),
  });
  const request = { method: 'GET', path: '/' };
  // More than are open at once.
  const asked = await Promise.allSettled(Array.from({ length: 70 }, () => ask(request)));
  for (const each of asked) expect(String((each as PromiseRejectedResult).reason)).toContain('credentials');
  isHanging = false;
  expect(await ask(request)).toMatchObject({ status: 200, text: 'here' });
});

describe.each(kinds)('%s', (kind) => {
  test('an answer without an end is given up before it fills the memory', async () => {
    let sent = 0;
    const endpoint = await answering((_, response) => {
      const part = Buffer.alloc(1 << 20, 'a');
      const send = () => {
        while (!response.destroyed) {
          sent += part.length;
          if (!response.write(part)) return;
        }
      };
      response.on('drain', send);
      send();
    });
    await expect(storeOf(kind, endpoint).open()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('AnswerTooLarge'),
    });
    expect(sent).toBeLessThan(200 * (1 << 20));
  });

  test('a refusal that quotes the request reveals no secret, and at most one line', async () => {
    const endpoint = await answering(({ headers }, response) => {
      response.statusCode = 403;
      const quoted = `${headers['x-amz-security-token']} ${headers.authorization}`;
      const message = `Wrong: ${quoted} ${credentials.secretAccessKey}\nx-amz-security-token:${quoted}`;
      response.end(
        kind === 's3'
          ? `<Error><Code>SignatureDoesNotMatch</Code><Message>${message}</Message></Error>`
          : JSON.stringify({ __type: 'x#InvalidSignatureException', message }).replaceAll('/', '\\/'),
      );
    });
    const error = await thrownBy(() => storeOf(kind, endpoint).open());
    expect(error).toMatchObject({ code: 'STORE_UNSAFE', message: expect.stringContaining('Wrong: … …') });
    expect(allOf(error)).not.toMatch(/canary.(secret|token)|Signature=/);
    expect(error.message).not.toContain('\n');
  });

  test('a secret that the answer hides behind escapes is not revealed either', async () => {
    const endpoint = await answering(({ headers }, response) => {
      response.statusCode = 403;
      const token = String(headers['x-amz-security-token']);
      const message = `Wrong: ${encodeURIComponent(token)} ${token}`;
      response.end(
        kind === 's3'
          ? `<Error><Code>AccessDenied</Code><Message>${message.replaceAll('=', '&#61;')}</Message></Error>`
          : JSON.stringify({ __type: 'AccessDeniedException', message }).replaceAll('=', '\\u003d'),
      );
    });
    const error = await thrownBy(() => storeOf(kind, endpoint).open());
    expect(error.message).toContain('Wrong: … …');
    expect(allOf(error)).not.toMatch(/canary.{1,3}token/);
  });

  test('a proxy’s page does not count as an answer, nor as an empty ledger', async () => {
    for (const status of [200, 404]) {
      const endpoint = await answering((_, response) => {
        response.setHeader('etag', '"a"');
        response.statusCode = status;
        response.end('<html><body>Not here</body></html>');
      });
      await expect(storeOf(kind, endpoint).open()).rejects.toMatchObject({
        code: expect.stringMatching(/^STORE_/),
        message: expect.not.stringContaining('lost records'),
      });
    }
  });

  test.each([
    `${kind}://:CANARY@ledgers`,
    `${kind}://AKIA:CANARY@ledgers`,
    `${kind}://ledgers:CANARY/a`,
    `${kind}://A:CAN/CANARY@ledgers`,
  ])('an address with a password is refused and not repeated: %s', async (url) => {
    const make = kind === 's3' ? s3Store : dynamodbStore;
    const error = await thrownBy(() => make({ url: `${url}?region=x`, credentials }).open());
    expect(error).toMatchObject({ code: 'CONTRACT_INVALID' });
    expect(allOf(error)).not.toContain('CANARY');
  });
});

test.each(['https://host/#a', 'https://host?a=b', 'https://u:p@host', 'ftp://host', 'host'])(
  'an endpoint that would take in the path is refused: %s',
  (endpoint) => {
    expect(() => storeOf('s3', endpoint)).toThrow('not a plain http or https address');
  },
);

test.each(['?', '#', '/', '/?'])(
  'a bare mark at the end of an endpoint takes in no path: %s',
  async (mark) => {
    const asked: string[] = [];
    const endpoint = await answering(({ url }, response) => {
      asked.push(url ?? '');
      response.statusCode = 400;
      response.end('<Error><Code>No</Code></Error>');
    });
    await thrownBy(() => storeOf('s3', endpoint + mark).open());
    expect(asked).toEqual(['/ledgers?lifecycle=']);
  },
);

describe('in a bucket that others write to', () => {
  let server: S3Server;
  let prefixes = 0;
  let prefix = '';
  beforeAll(async () => {
    server = await startS3();
  });
  afterAll(() => server.stop());
  beforeEach(() => {
    prefixes += 1;
    prefix = `walls-${prefixes}`;
  });

  const open = () =>
    s3Store({
      bucket: 'ledgers',
      prefix,
      region: testRegion,
      endpoint: server.endpoint,
      credentials: testCredentials,
    });
  const lay = (name: string, text: string) =>
    server.objects.set(`ledgers/${prefix}/records/${name}`, { text, etag: '"laid"' });

  async function listAll(store: Store, limit: number) {
    const keys: string[] = [];
    let damaged = 0;
    for (let after: string | undefined; ; ) {
      const page = await store.list({
        namespace: theNamespace,
        limit,
        ...(after === undefined ? {} : { after }),
      });
      keys.push(...page.items.map(({ key }) => key));
      damaged += page.damaged?.length ?? 0;
      if (page.next === undefined) return { keys, damaged };
      after = page.next;
    }
  }

  test('what semel did not write hides no record, and ends no list', async () => {
    const store = open();
    const keys = ['mail.send/=a', 'mail.send/=b', 'mail.send/=c'];
    for (const key of keys) await (await take(store, { key })).succeed();
    lay(`${theNamespace}/`, '');
    lay(`${theNamespace}/%zz`, 'x');
    lay(`${theNamespace}/notes/of/somebody`, 'x');
    lay('%zz/a', 'x');
    lay('a b/c', 'x');
    for (const limit of [1, 2, 100]) expect(await listAll(store, limit)).toEqual({ keys, damaged: 2 });
    expect(await store.namespaces()).toEqual([theNamespace]);
    expect(await store.prune(10)).toBe(0);
    await store.close();
  });

  test('a service that returns the same page again and again is refused', async () => {
    const store = open();
    await (await take(store)).succeed();
    const [name] = [...server.objects.keys()].filter((id) => id.includes('mail'));
    const again = `<ListBucketResult><Contents><Key>${name?.replace('ledgers/', '')}</Key></Contents><CommonPrefixes><Prefix>${prefix}/records/a/</Prefix></CommonPrefixes><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken></ListBucketResult>`;
    const stuck = s3Store({
      ...{
        bucket: 'ledgers',
        prefix,
        region: testRegion,
        endpoint: server.endpoint,
        credentials: testCredentials,
      },
      fetch: async (url, init) => {
        const answer = await fetch(url, init);
        return String(url).includes('list-type') ? new Response(again, { headers: answer.headers }) : answer;
      },
    });
    await stuck.open();
    await expect(stuck.namespaces()).rejects.toThrow('does not continue');
    await expect(listAll(stuck, 10)).rejects.toThrow('does not continue');
    await store.close();
  });

  test('a proxy that finds nothing does not make a record missing', async () => {
    let isAway = false;
    const store = s3Store({
      ...{
        bucket: 'ledgers',
        prefix,
        region: testRegion,
        endpoint: server.endpoint,
        credentials: testCredentials,
      },
      fetch: async (url, init) => {
        const answer = await fetch(url, init);
        return isAway ? new Response('not found', { status: 404, headers: answer.headers }) : answer;
      },
    });
    await (await take(store)).succeed();
    isAway = true;
    await expect(store.read(theNamespace, theKey)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await expect(store.list({ namespace: theNamespace, limit: 10 })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
    await store.close();
  });

  test('keys that are too long for a name are listed by their contract', async () => {
    const store = open();
    const key = `mail.send/=${'長'.repeat(200)}`;
    await (await take(store, { key })).succeed();
    expect((await store.read(theNamespace, key))?.status).toBe('succeeded');
    const { items } = await store.list({ namespace: theNamespace, contract: 'mail.send', limit: 10 });
    expect(items.map((record) => record.key)).toEqual([key]);
    await store.close();
  });
});

test('a DynamoDB that returns none of the requested items counts as too busy', async () => {
  let asked = 0;
  const endpoint = await answering((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const action = String(request.headers['x-amz-target']).replace(/^.*\./, '');
      const body = JSON.parse(Buffer.concat(parts).toString());
      const string = (AttributeName: string) => ({ AttributeName, AttributeType: 'S' });
      const key = (AttributeName: string, KeyType: string) => ({ AttributeName, KeyType });
      if (action === 'BatchGetItem') asked += 1;
      const answers: Record<string, object> = {
        DescribeTable: {
          Table: {
            TableStatus: 'ACTIVE',
            KeySchema: [key('p', 'HASH'), key('k', 'RANGE')],
            AttributeDefinitions: [string('p'), string('k')],
          },
        },
        BatchGetItem: { Responses: {}, UnprocessedKeys: body.RequestItems },
      };
      response.end(JSON.stringify(answers[action] ?? {}));
    });
  });
  await expect(storeOf('dynamodb', endpoint).open()).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringContaining('too busy'),
  });
  expect(asked).toBeLessThan(20);
});
