// The signatures of the examples in Amazon's own documentation of S3.

import { expect, test } from 'vitest';
import { type SignedRequest, sign } from './sign.ts';

const signing = {
  service: 's3',
  region: 'us-east-1',
  credentials: {
    accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
    secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  },
  at: Date.UTC(2013, 4, 24),
};
const host = 'https://examplebucket.s3.amazonaws.com';

const examples: [string, SignedRequest, string][] = [
  [
    'a GET with a header',
    { method: 'GET', url: new URL(`${host}/test.txt`), headers: { range: 'bytes=0-9' }, body: '' },
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  ],
  [
    'a PUT with a body',
    {
      method: 'PUT',
      url: new URL(`${host}/test%24file.text`),
      headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
      body: 'Welcome to Amazon S3.',
    },
    '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  ],
  [
    'a parameter without a value',
    { method: 'GET', url: new URL(`${host}/?lifecycle`), headers: {}, body: '' },
    'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  ],
  [
    'several parameters',
    { method: 'GET', url: new URL(`${host}/?prefix=J&max-keys=2`), headers: {}, body: '' },
    '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  ],
];

test.each(examples)('%s', (_, request, signature) => {
  const { authorization } = sign(request, signing);
  expect(authorization).toContain(`Signature=${signature}`);
});

test('a session token is signed', () => {
  const credentials = { ...signing.credentials, sessionToken: 'for an hour' };
  const [, request] = examples[0] as (typeof examples)[number];
  const headers = sign(request, { ...signing, credentials });
  expect(headers['x-amz-security-token']).toBe('for an hour');
  expect(headers.authorization).toContain('x-amz-date;x-amz-security-token');
});
