// A strict stand-in for S3, in this process and in memory, so that a test can decide what happens to each request. It compares
// and writes in one step, checks signatures and their time, and answers, as S3 does, 409 to a conditional write that meets
// another one. It cannot show what S3's own servers do when they fail, nor how their clocks differ.

import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sign } from '../../src/store/aws/sign.ts';
import { testCredentials, testRegion } from './dynamodb.ts';

export interface S3Request {
  readonly method: string;
  /** The object's name; empty: the bucket. */
  readonly name: string;
  readonly headers: IncomingMessage['headers'];
}

/** What goes wrong: an answer instead of the work, a reply that is lost after it, or a service that does not compare. */
export type S3Fault = 409 | 500 | 503 | 'lost' | 'ignores conditions' | undefined;

export interface S3Server extends AsyncDisposable {
  readonly endpoint: string;
  /** Bucket and name. */
  readonly objects: Map<string, { readonly text: string; readonly etag: string }>;
  readonly asked: S3Request[];
  now: () => number;
  fault: (request: S3Request) => S3Fault;
  /** The XML of the rules. */
  lifecycle: string | undefined;
  /** Without a look at If-Match, as R2 does. */
  deletesBlindly: boolean;
  stop(): Promise<void>;
}

const maxSkewMs = 15 * 60_000;

export async function startS3(): Promise<S3Server> {
  /** Conditional writes that were received and not answered, by name. */
  const underWay = new Map<string, number>();
  const server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stop = () =>
    new Promise<void>((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
  const self: S3Server = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    objects: new Map(),
    asked: [],
    now: () => Date.now(),
    fault: () => undefined,
    lifecycle: undefined,
    deletesBlindly: false,
    stop,
    [Symbol.asyncDispose]: stop,
  };
  return self;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts).toString();
    const url = new URL(request.url ?? '/', self.endpoint);
    const [, bucket = '', name = ''] = /^\/([^/]*)\/?(.*)$/s.exec(url.pathname) ?? [];
    const method = request.method ?? '';
    const asked = { method, name: decodeURIComponent(name), headers: request.headers };
    self.asked.push(asked);
    response.sendDate = false;
    response.setHeader('date', new Date(self.now()).toUTCString());
    const refusal = checkSignature(request, url, body);
    if (refusal !== undefined) return fail(response, 403, refusal);
    const fault = self.fault(asked);
    if (typeof fault === 'number')
      return fail(response, fault, fault === 409 ? 'ConditionalRequestConflict' : 'SlowDown');
    const isConditional = method === 'PUT' && fault !== 'ignores conditions';
    const id = `${bucket}/${asked.name}`;
    if (isConditional) {
      // Two that overlap: one is told to come again.
      if ((underWay.get(id) ?? 0) > 0) return fail(response, 409, 'ConditionalRequestConflict');
      underWay.set(id, 1);
      await new Promise((resolve) => setImmediate(resolve));
      underWay.delete(id);
    }
    const answer = work(
      method,
      bucket,
      asked.name,
      url,
      isConditional ? request.headers : {},
      request.headers,
      body,
    );
    if (fault === 'lost') return void response.destroy();
    const { status, headers = {}, text = '' } = answer;
    for (const [header, value] of Object.entries(headers)) response.setHeader(header, value);
    response.statusCode = status;
    response.end(text);
  }

  function work(
    method: string,
    bucket: string,
    name: string,
    url: URL,
    conditions: IncomingMessage['headers'],
    headers: IncomingMessage['headers'],
    body: string,
  ): { status: number; headers?: Record<string, string>; text?: string } {
    if (bucket === 'missing') return error(404, 'NoSuchBucket');
    if (name === '') {
      if (!url.searchParams.has('lifecycle')) return { status: 200, text: list(bucket, url.searchParams) };
      return self.lifecycle === undefined
        ? error(404, 'NoSuchLifecycleConfiguration')
        : { status: 200, text: self.lifecycle };
    }
    if (Buffer.byteLength(name) > 1_024) return error(400, 'KeyTooLongError');
    const id = `${bucket}/${name}`;
    const there = self.objects.get(id);
    if (method === 'GET')
      return there === undefined
        ? error(404, 'NoSuchKey')
        : { status: 200, headers: { etag: there.etag }, text: there.text };
    if (method === 'DELETE') {
      const expected = headers['if-match'];
      if (!self.deletesBlindly && expected !== undefined && there !== undefined && there.etag !== expected)
        return error(412, 'PreconditionFailed');
      self.objects.delete(id);
      return { status: 204 };
    }
    if (conditions['if-none-match'] === '*' && there !== undefined) return error(412, 'PreconditionFailed');
    const expected = conditions['if-match'];
    if (expected !== undefined && there === undefined) return error(404, 'NoSuchKey');
    if (expected !== undefined && there?.etag !== expected) return error(412, 'PreconditionFailed');
    const etag = `"${createHash('md5').update(body).digest('hex')}"`;
    self.objects.set(id, { text: body, etag });
    return { status: 200, headers: { etag } };
  }

  function list(bucket: string, query: URLSearchParams): string {
    const prefix = query.get('prefix') ?? '';
    const delimiter = query.get('delimiter');
    const after = query.get('continuation-token') ?? query.get('start-after') ?? '';
    const limit = Number(query.get('max-keys') ?? 1_000);
    const names = [...self.objects.keys()]
      .filter((id) => id.startsWith(`${bucket}/`))
      .map((id) => id.slice(bucket.length + 1))
      .filter((name) => name.startsWith(prefix) && name > after)
      .sort();
    const groups = new Set<string>();
    const found: string[] = [];
    for (const name of names) {
      const end = delimiter === null ? -1 : name.indexOf(delimiter, prefix.length);
      if (end < 0) found.push(name);
      else groups.add(name.slice(0, end + 1));
    }
    const page = found.slice(0, limit);
    const isTruncated = found.length > page.length;
    return `<?xml version="1.0"?><ListBucketResult>${page.map((name) => `<Contents><Key>${escapeXml(name)}</Key></Contents>`).join('')}${[...groups].map((one) => `<CommonPrefixes><Prefix>${escapeXml(one)}</Prefix></CommonPrefixes>`).join('')}<IsTruncated>${isTruncated}</IsTruncated>${isTruncated ? `<NextContinuationToken>${escapeXml(page.at(-1) ?? '')}</NextContinuationToken>` : ''}</ListBucketResult>`;
  }

  function checkSignature(request: IncomingMessage, url: URL, body: string): string | undefined {
    const { authorization = '', 'x-amz-date': stamp = '' } = request.headers;
    const [, signed = ''] = /SignedHeaders=([^,]*)/.exec(authorization) ?? [];
    const at = Date.parse(String(stamp).replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'));
    if (Math.abs(at - self.now()) > maxSkewMs) return 'RequestTimeTooSkewed';
    const own = ['host', 'x-amz-date', 'x-amz-content-sha256'];
    const headers = Object.fromEntries(
      signed
        .split(';')
        .filter((name) => !own.includes(name))
        .map((name) => [name, String(request.headers[name])]),
    );
    const expected = sign(
      { method: request.method ?? '', url, headers, body },
      { service: 's3', region: testRegion, credentials: testCredentials, at },
    );
    return expected.authorization === authorization ? undefined : 'SignatureDoesNotMatch';
  }
}

function fail(response: ServerResponse, status: number, code: string): void {
  response.statusCode = status;
  response.end(error(status, code).text);
}

function error(status: number, code: string) {
  return { status, text: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>` };
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
