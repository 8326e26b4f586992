// `classify: oneRequest`, with the clients that people use, against a real server that refuses, resets, hangs and answers.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import axios from 'axios';
import axiosRetry from 'axios-retry';
import got from 'got';
import ky from 'ky';
import OpenAI from 'openai';
import { type AttemptContext, oneRequest, type Seen } from 'semel';
import Stripe from 'stripe';
import {
  type Dispatcher,
  getGlobalDispatcher,
  interceptors,
  Pool,
  setGlobalDispatcher,
  request as undiciRequest,
} from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deafAddress, rig, type Target, target } from './support.ts';

let server: Target;
let deaf: string;
/** Takes the bytes of a TLS handshake and never answers. */
let mute: Server;

beforeAll(async () => {
  server = await target((request, response) => {
    const path = request.url ?? '/';
    const status = Number(/\/status\/(\d+)/.exec(path)?.[1] ?? 200);
    if (path.includes('/hang')) return;
    if (path.includes('/reset')) return void request.socket.destroy();
    if (path.includes('/moved')) {
      response.writeHead(Number(/\/moved\/(\d+)/.exec(path)?.[1]), { location: '/status/404' });
      return void response.end();
    }
    // An answer that a retrying client asks for once more, and then a definite one.
    const isSecond = server.requests.filter((each) => each.path === path).length > 1;
    const answered = path.includes('/then/') && isSecond ? 422 : status;
    const delay = answered < 500 ? { 'retry-after': '7' } : {};
    response.writeHead(answered, { 'content-type': 'application/json', ...delay });
    const error = { message: 'as asked', type: 'test', code: 'test' };
    response.end(JSON.stringify(answered === 200 ? {} : { error }));
  });
  deaf = await deafAddress();
  mute = createServer(() => undefined);
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
});
afterAll(() => void mute.close());

type Send = (url: string, ctx: AttemptContext) => unknown;

let count = 0;

async function ended(send: (ctx: AttemptContext) => unknown, more: object = {}) {
  const { semel } = rig();
  const tool = semel.tool({
    name: 'send',
    effect: 'write-non-idempotent',
    per: 'ever',
    classify: oneRequest,
    timeout: 'none',
    ...more,
    run: (_: { id: number }, ctx) => send(ctx),
  });
  const result = await tool.try({ id: 1 });
  if (result.ok) return { code: 'ok', retryAfterMs: undefined, advice: '' };
  const { code, retryAfterMs, correctiveAction: advice } = result.error;
  return { code, retryAfterMs, advice };
}

/** Short only where no answer comes: a busy machine must not look like a silent server. */
const patience = (url: string) => (url.includes('/hang') ? 100 : 30_000);

/** A path of its own: a client that keeps connections must not meet another test's. */
const at = (base: string, path: string) => `${base}${path}?n=${++count}`;

const viaHttp: Send = (url) =>
  new Promise((resolve, reject) => {
    const request = http.request(url, { method: 'POST', timeout: patience(url) }, (response) => {
      response.resume();
      response.on('error', reject);
      if ((response.statusCode ?? 0) < 300) return void response.on('end', () => resolve('ok'));
      reject(Object.assign(new Error(`HTTP ${response.statusCode}`), { response }));
    });
    request.on('timeout', () =>
      request.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })),
    );
    request.on('error', reject);
    request.end('{}');
  });

/** As most people write it. */
const viaFetch = async (url: string): Promise<unknown> => {
  const response = await fetch(url, {
    method: 'POST',
    body: '{}',
    signal: AbortSignal.timeout(patience(url)),
  });
  if (response.ok) return response.json();
  const { status, headers } = response;
  throw Object.assign(new Error(`HTTP ${status}`), { status, headers });
};

const clients: Record<string, Send> = {
  'ctx.fetch': async (url, ctx) => {
    const response = await ctx.fetch(url, {
      method: 'POST',
      body: '{}',
      signal: AbortSignal.timeout(patience(url)),
    });
    if (!response.ok) throw new Error('it did not work');
    return response.json();
  },
  fetch: viaFetch,
  'fetch, throwing the response': async (url) => {
    const response = await fetch(url, {
      method: 'POST',
      body: '{}',
      signal: AbortSignal.timeout(patience(url)),
    });
    if (!response.ok) throw response;
    return response.json();
  },
  'node:http': viaHttp,
  axios: (url) => axios.post(url, {}, { timeout: patience(url) }).then(() => 'ok'),
  got: (url) => got.post(url, { json: {}, timeout: { request: patience(url) } }).text(),
  ky: (url) => ky.post(url, { json: {}, timeout: patience(url) }).text(),
  undici: async (url) => {
    const answer = await undiciRequest(url, { method: 'POST', body: '{}', headersTimeout: patience(url) });
    if (answer.statusCode >= 300)
      throw Object.assign(new Error('refused'), { statusCode: answer.statusCode, headers: answer.headers });
    return answer.body.text();
  },
  openai: (url) =>
    new OpenAI({ apiKey: 'k', baseURL: url.replace(/\?.*/, ''), maxRetries: 0, timeout: patience(url) })
      .post('/x')
      .then(() => 'ok'),
  anthropic: (url) =>
    new Anthropic({ apiKey: 'k', baseURL: url.replace(/\?.*/, ''), maxRetries: 0, timeout: patience(url) })
      .post('/x')
      .then(() => 'ok'),
  stripe: (url) => {
    const { hostname, port, pathname } = new URL(url);
    const options = {
      host: hostname,
      port,
      protocol: 'http',
      maxNetworkRetries: 0,
      timeout: patience(url),
    } as const;
    return new Stripe('sk_test_x', options).rawRequest('POST', pathname).then(() => 'ok');
  },
};

const names = Object.keys(clients);
const sendBy = (name: string) => clients[name] as Send;

describe.each(names)('with %s', (name) => {
  const play = (url: string) => ended((ctx) => sendBy(name)(url, ctx));

  test.each([400, 404, 410, 422])('a %i is a refusal', async (status) => {
    expect(await play(at(server.url, `/status/${status}`))).toMatchObject({ code: 'FAILED' });
  });

  test.each([401, 403, 429])('after a %i nothing landed, and it says when to call again', async (status) => {
    const answer = await play(at(server.url, `/status/${status}`));
    // node:http has its headers in the response; the others too, or in the error.
    expect(answer).toMatchObject({ code: 'NOT_LANDED', retryAfterMs: 7_000 });
  });

  test.each(['/status/408', '/status/409', '/status/499', '/status/500', '/status/503', '/reset', '/hang'])(
    'nobody knows after %s',
    async (path) => {
      expect(await play(at(server.url, path))).toMatchObject({ code: 'IN_DOUBT' });
    },
  );

  test('a refused connection: nothing was sent', async () => {
    expect(await play(at(deaf, '/'))).toMatchObject({ code: 'NOT_LANDED' });
  });

  test('a host that does not exist: nothing was sent', async () => {
    expect(await play('http://nowhere.invalid/')).toMatchObject({ code: 'NOT_LANDED' });
  });

  test('a success is a success', async () => {
    expect(await play(at(server.url, '/status/200'))).toMatchObject({ code: 'ok' });
  });
});

describe('the last error is not the whole story', () => {
  test.each<[string, Send]>([
    [
      'openai, which retries by itself',
      (url) => new OpenAI({ apiKey: 'k', baseURL: url.replace(/\?.*/, ''), maxRetries: 1 }).post('/x'),
    ],
    [
      'axios-retry',
      (url) => {
        const client = axios.create();
        axiosRetry(client, { retries: 1, retryCondition: (error) => error.response?.status === 500 });
        return client.post(url, {});
      },
    ],
    [
      'got with retries of a POST',
      (url) =>
        got
          .post(url, {
            json: {},
            retry: { limit: 1, methods: ['POST'], backoffLimit: 1, statusCodes: [500] },
          })
          .text(),
    ],
    [
      'ky with retries of a POST',
      (url) => ky.post(url, { json: {}, retry: { limit: 1, methods: ['post'], delay: () => 1 } }).text(),
    ],
    [
      'a loop of the tool itself',
      async (url) => {
        await viaFetch(url).catch(() => undefined);
        await viaFetch(url);
      },
    ],
  ])('a 500 and then a 422: in doubt with %s', async (_, send) => {
    const url = at(server.url, `/then/${++count}/status/500`);
    expect(await ended((ctx) => send(url, ctx))).toMatchObject({ code: 'IN_DOUBT' });
    expect(
      server.requests.filter(({ path }) => path.includes(`/then/${new URL(url).pathname.split('/')[2]}/`)),
    ).toHaveLength(2);
  });

  test.each<[string, Send]>([
    ['fetch', async (url) => void (await viaFetch(url))],
    ['axios', (url) => axios.post(url, {})],
    ['got', (url) => got.post(url, { json: {} }).text()],
    ['ky', (url) => ky.post(url, { json: {} }).text()],
    ['ctx.fetch', sendBy('ctx.fetch')],
  ])('a 404 of the page that a 302 leads to: in doubt with %s', async (_, send) => {
    expect(await ended((ctx) => send(at(server.url, '/moved/302'), ctx))).toMatchObject({ code: 'IN_DOUBT' });
  });

  test('a connection that was refused after another request: in doubt', async () => {
    const run = async () => {
      await viaFetch(at(server.url, '/status/200'));
      await viaFetch(deaf);
    };
    expect(await ended(run)).toMatchObject({ code: 'IN_DOUBT' });
  });

  test('a request of a tool that is called inside counts too', async () => {
    const { semel } = rig();
    const inner = semel.tool({
      name: 'inner',
      effect: 'write-non-idempotent',
      per: 'ever',
      classify: oneRequest,
      run: (_: { id: number }) => viaFetch(at(server.url, '/status/200')),
    });
    const outer = semel.tool({
      name: 'outer',
      effect: 'write-non-idempotent',
      per: 'ever',
      classify: oneRequest,
      run: async (args: { id: number }) => {
        await inner(args);
        await viaFetch(at(server.url, '/status/422'));
      },
    });
    expect(await outer.try({ id: 1 })).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  });
});

describe('an error without a status', () => {
  const post: Record<string, (url: string) => Promise<number | undefined>> = {
    fetch: async (url) => (await fetch(url, { method: 'POST', body: '{}' })).status,
    undici: async (url) => {
      const { statusCode, body } = await undiciRequest(url, { method: 'POST', body: '{}' });
      await body.dump();
      return statusCode;
    },
    'node:http': (url) =>
      new Promise((resolve, reject) => {
        const request = http.request(url, { method: 'POST' }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        request.on('error', reject);
        request.end('{}');
      }),
  };
  const inWords = (name: string, path: string) => async () => {
    throw new Error(`HTTP ${await post[name]?.(at(server.url, path))}`);
  };

  test.each(Object.keys(post))('the answer that was seen decides, with %s', async (name) => {
    expect(await ended(inWords(name, '/status/400'))).toMatchObject({ code: 'FAILED' });
    expect(await ended(inWords(name, '/status/429'))).toMatchObject({ code: 'NOT_LANDED' });
    expect(await ended(inWords(name, '/status/500'))).toMatchObject({ code: 'IN_DOUBT' });
    expect(await ended(inWords(name, '/status/200'))).toMatchObject({ code: 'IN_DOUBT' });
  });

  test('without `classify`, the advice names it', async () => {
    const { code, advice } = await ended(inWords('fetch', '/status/400'), { classify: undefined });
    expect([code, advice]).toEqual(['IN_DOUBT', expect.stringContaining('add classify: oneRequest')]);
  });

  test('the answer to a lookup says nothing about the effect', async () => {
    const run = async () => {
      await fetch(at(server.url, '/status/404'));
      throw new Error('the mail was not accepted');
    };
    expect(await ended(run)).toMatchObject({ code: 'IN_DOUBT' });
  });

  test.each([{ code: 'EMESSAGE', responseCode: 451 }, { code: 4 }])(
    'an error of a client that semel does not see (%j) is not about the answer to a report of it',
    async (fields) => {
      const run = async () => {
        await post.fetch?.(at(server.url, '/status/429'));
        throw Object.assign(new Error('it took too long'), fields);
      };
      expect(await ended(run)).toMatchObject({ code: 'IN_DOUBT' });
    },
  );

  test('after a 500, a status that the program chose is not the answer', async () => {
    const run = async () => {
      await post.fetch?.(at(server.url, '/status/500'));
      throw Object.assign(new Error('it did not work'), { status: 400 });
    };
    expect(await ended(run)).toMatchObject({ code: 'IN_DOUBT' });
  });

  test('the last of two answers says nothing about the first', async () => {
    const run = async () => {
      await post.fetch?.(at(server.url, '/status/500'));
      await inWords('fetch', '/status/400')();
    };
    expect(await ended(run)).toMatchObject({ code: 'IN_DOUBT' });
  });
});

describe('what is not the answer to a request', () => {
  test('an error of the tool’s own code stays in doubt', async () => {
    const run = () => Promise.reject(new TypeError('no such field'));
    expect(await ended(run)).toMatchObject({ code: 'IN_DOUBT' });
  });

  test.each(names)('a success with %s, and then a mistake: in doubt', async (name) => {
    const run = async (ctx: AttemptContext) => {
      await sendBy(name)(at(server.url, '/status/200'), ctx);
      throw Object.assign(new Error('my own check'), { status: 422 });
    };
    expect(await ended(run)).toMatchObject({ code: 'IN_DOUBT' });
  });

  test('an answer on a connection that another run opened is seen as well', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const send = () => axios.post(at(server.url, '/status/200'), {}, { httpAgent: agent });
    const run = async () => {
      await send();
      throw Object.assign(new Error('my own check'), { status: 422 });
    };
    expect(await Promise.all([ended(run), ended(run), ended(run)])).toMatchObject([
      { code: 'IN_DOUBT' },
      { code: 'IN_DOUBT' },
      { code: 'IN_DOUBT' },
    ]);
    agent.destroy();
  });

  test('an untrusted certificate: the server got no request', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'semel-tls-'));
    const [key, cert] = ['key.pem', 'cert.pem'].map((name) => join(folder, name)) as [string, string];
    const subject = ['-subj', '/CN=localhost', '-days', '1', '-nodes', '-newkey', 'rsa:2048', '-x509'];
    execFileSync('openssl', ['req', ...subject, '-keyout', key, '-out', cert], { stdio: 'ignore' });
    let requests = 0;
    const secure = https.createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_, response) => {
      requests += 1;
      response.end('{}');
    });
    await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${(secure.address() as AddressInfo).port}/`;
    for (const name of ['fetch', 'axios', 'got', 'ky', 'undici'])
      expect(await ended((ctx) => sendBy(name)(url, ctx))).toMatchObject({ code: 'NOT_LANDED' });
    expect(requests).toBe(0);
    secure.close();
    await rm(folder, { recursive: true });
  });

  test('a handshake that takes too long: nothing was sent, where the client names the phase', async () => {
    const url = `https://127.0.0.1:${(mute.address() as AddressInfo).port}/`;
    const early = () => got.post(url, { timeout: { secureConnect: 50 } });
    const late = () => got.post(url, { timeout: { request: 50 } });
    expect(await ended(early)).toMatchObject({ code: 'NOT_LANDED' });
    expect(await ended(late)).toMatchObject({ code: 'IN_DOUBT' });
  });

  test('a plain socket that was refused', async () => {
    const run = () =>
      new Promise((_, reject) => connect(Number(new URL(deaf).port), '127.0.0.1').on('error', reject));
    expect(await ended(run)).toMatchObject({ code: 'NOT_LANDED' });
  });
});

describe('by structure', () => {
  const none: Seen = { requests: [], sent: 0, hasSuccess: false, answer: undefined, provider: undefined };
  const error = (fields: object) => Object.assign(new Error('x'), fields);
  const headers = { 'x-request': '1' };

  test.each<[string, object, string | undefined]>([
    ['Twilio', { status: 400, code: 21_211, moreInfo: '…' }, 'rejected'],
    ['Twilio, too many', { status: 429, code: 20_429 }, 'notLanded'],
    ['Postmark', { name: 'InactiveRecipientsError', statusCode: 422, code: 406 }, 'rejected'],
    ['SendGrid', { code: 413, response: { headers, body: {} } }, 'rejected'],
    ['Octokit', { status: 422, request: { request: {} }, response: { status: 422, headers } }, 'rejected'],
    ['Octokit, retried', { status: 422, request: { request: { retryCount: 1 } } }, undefined],
    [
      'AWS',
      { $fault: 'client', $metadata: { httpStatusCode: 400, attempts: 1 }, name: 'ValidationException' },
      'rejected',
    ],
    [
      'AWS, throttled',
      { $metadata: { httpStatusCode: 400, attempts: 1 }, name: 'ThrottlingException' },
      'notLanded',
    ],
    [
      'AWS, timed out',
      { $metadata: { httpStatusCode: 400, attempts: 1 }, name: 'RequestTimeout' },
      undefined,
    ],
    ['AWS, second attempt', { $metadata: { httpStatusCode: 400, attempts: 2 } }, undefined],
    ['AWS, server', { $fault: 'server', $metadata: { httpStatusCode: 500, attempts: 1 } }, undefined],
    [
      'Slack, refused',
      { code: 'slack_webapi_platform_error', data: { ok: false, error: 'channel_not_found' } },
      'rejected',
    ],
    [
      'Slack, no token',
      { code: 'slack_webapi_platform_error', data: { error: 'invalid_auth' } },
      'notLanded',
    ],
    ['Slack, broken', { code: 'slack_webapi_platform_error', data: { error: 'fatal_error' } }, undefined],
    ['Slack, too many', { code: 'slack_webapi_rate_limited_error', retryAfter: 30 }, 'notLanded'],
    [
      'Slack, no connection',
      { code: 'slack_webapi_request_error', original: error({ code: 'ECONNREFUSED', syscall: 'connect' }) },
      'notLanded',
    ],
    ['Slack, retried', { code: 'slack_webapi_http_error', statusCode: 404, attemptNumber: 2 }, undefined],
    [
      'Stripe, no connection',
      { type: 'StripeConnectionError', detail: error({ code: 'ENOTFOUND', syscall: 'getaddrinfo' }) },
      'notLanded',
    ],
    ['GraphQL', { response: { status: 200, errors: [] } }, undefined],
    ['a child process', { status: 137 }, undefined],
    // The same code before and after the request was sent.
    ['ETIMEDOUT while connecting', { code: 'ETIMEDOUT', syscall: 'connect' }, 'notLanded'],
    ['ETIMEDOUT while reading', { code: 'ETIMEDOUT', syscall: 'read' }, undefined],
    ['ETIMEDOUT, nobody says when', { code: 'ETIMEDOUT' }, undefined],
    ['EHOSTUNREACH while connecting', { code: 'EHOSTUNREACH', syscall: 'connect' }, 'notLanded'],
    ['EHOSTUNREACH while reading', { code: 'EHOSTUNREACH', syscall: 'read' }, undefined],
    ['EHOSTUNREACH, nobody says when (node-fetch)', { code: 'EHOSTUNREACH', type: 'system' }, undefined],
    ['ENETUNREACH, nobody says when (node-fetch)', { code: 'ENETUNREACH', type: 'system' }, undefined],
    ['ENOTFOUND (node-fetch)', { code: 'ENOTFOUND', type: 'system' }, 'notLanded'],
    ['ECONNRESET', { code: 'ECONNRESET', syscall: 'read' }, undefined],
    ['EPIPE', { code: 'EPIPE', syscall: 'write' }, undefined],
    // A program gives what it caught a status of its own.
    ['a 400 made from a reset', { status: 400, cause: error({ code: 'ECONNRESET' }) }, undefined],
    ['a 429 made from a 500', { status: 429, cause: error({ status: 500 }) }, undefined],
    ['a 404 made from a 200', { statusCode: 404, cause: error({ response: { status: 200 } }) }, undefined],
    ['a 422 made from a timeout', { status: 422, cause: error({ name: 'TimeoutError' }) }, undefined],
    ['a 403 made from an abort', { status: 403, cause: new DOMException('x', 'AbortError') }, undefined],
    ['a 400 made from several', { status: 400, cause: new AggregateError([error({})]) }, undefined],
    [
      'a 400 made from a refused connection',
      { status: 400, cause: error({ code: 'ECONNREFUSED' }) },
      undefined,
    ],
    ['a 422 passed on', { status: 422, cause: error({ response: { status: 422 } }) }, 'rejected'],
    [
      'ECONNREFUSED made from a reset',
      { code: 'ECONNREFUSED', cause: error({ code: 'ECONNRESET' }) },
      undefined,
    ],
    [
      'axios with the adapter of fetch, no connection',
      { code: 'ERR_NETWORK', cause: error({ code: 'ECONNREFUSED', syscall: 'connect' }) },
      'notLanded',
    ],
  ])('%s', (_, fields, meaning) => {
    expect(oneRequest(error(fields), none)).toBe(meaning);
  });

  test('the provider knows its own errors better', () => {
    const mismatch = error({ status: 400, code: 'idempotency_error' });
    expect(oneRequest(mismatch, { ...none, provider: 'maybeLanded' })).toBe('maybeLanded');
    expect(oneRequest(mismatch, { ...none, provider: 'maybeLanded', sent: 2 })).toBe(undefined);
  });

  test('the seen response decides only if the error says nothing and no other request was sent', () => {
    const seen = { ...none, sent: 1, answer: 'refused' } as const;
    expect(oneRequest(error({}), seen)).toBe('rejected');
    expect(oneRequest(error({ code: 'ECONNRESET' }), seen)).toBe(undefined);
    expect(oneRequest(error({ status: 500 }), seen)).toBe(undefined);
    expect(oneRequest(error({}), { ...seen, sent: 2 })).toBe(undefined);
    expect(oneRequest(error({}), { ...seen, answer: 'ambiguous' })).toBe(undefined);
    expect(oneRequest(error({}), { ...seen, answer: 'landed', hasSuccess: true })).toBe(undefined);
  });

  test('it may be the last word of a classifier', async () => {
    const more = {
      classify: (thrown: unknown, seen: Seen) =>
        (thrown as { status?: number }).status === 409 ? 'rejected' : oneRequest(thrown, seen),
    };
    const conflict = at(server.url, '/status/409');
    expect(await ended(() => viaFetch(conflict), more)).toMatchObject({ code: 'FAILED' });
    const limited = at(server.url, '/status/429');
    expect(await ended(() => viaFetch(limited), more)).toMatchObject({ code: 'NOT_LANDED' });
  });
});

test('headers that cannot be read keep no attempt from ending', async () => {
  const run = () => {
    const error = Object.assign(new Error('busy'), { status: 429 });
    throw Object.defineProperty(error, 'headers', {
      get: () => {
        throw new Error('no');
      },
    });
  };
  expect(await ended(run)).toMatchObject({ code: 'NOT_LANDED', retryAfterMs: undefined });
});

test('a `retry` waits as long as the target asks', async () => {
  const { semel, clock } = rig();
  let calls = 0;
  const tool = semel.tool({
    name: 'send',
    effect: 'write-non-idempotent',
    per: 'ever',
    classify: oneRequest,
    retry: { tries: 3, backoff: '1s', maxBackoff: '10s' },
    run: (_: { id: number }) => {
      calls += 1;
      const headers = { 'retry-after': calls === 1 ? '7' : '60' };
      return Promise.reject(Object.assign(new Error('busy'), { status: 429, headers }));
    },
  });
  const started = clock.now();
  const result = await clock.until(tool.try({ id: 1 }));
  expect(result).toMatchObject({ ok: false, error: { code: 'NOT_LANDED', retryAfterMs: 60_000 } });
  expect({ calls, waited: clock.now() - started }).toEqual({ calls: 2, waited: 7_000 });
});

describe('a dispatcher that repeats a request below its client', () => {
  const erase = { method: 'DELETE' } as const;

  test.each<[string, object, (url: string, ctx: AttemptContext, dispatcher: Dispatcher) => Promise<number>]>([
    [
      'undici',
      {},
      async (url, _, dispatcher) => {
        const { statusCode, body } = await undiciRequest(url, { ...erase, dispatcher });
        await body.text();
        return statusCode;
      },
    ],
    ['ctx.fetch', {}, async (url, ctx) => (await ctx.fetch(url, erase)).status],
    [
      'ctx.fetch, via',
      { classify: undefined, via: 'fetch' },
      async (url, ctx) => (await ctx.fetch(url, erase)).status,
    ],
  ])('%s: what the last answer refuses, the first request may have done', async (_, more, send) => {
    const path = `/retried?n=${++count}`;
    const retried = await target((request, response) => {
      if (request.method === 'GET') return void response.end('{}');
      if (retried.requests.filter(({ method }) => method === 'DELETE').length === 1)
        return void request.socket.destroy();
      response.writeHead(412).end('{}');
    });
    const dispatcher = new Pool(retried.url, { connections: 1 }).compose(
      interceptors.retry({ minTimeout: 5, maxTimeout: 10 }),
    );
    // Opened before the run: the callbacks of a connection have the context in which it was opened.
    await (await undiciRequest(retried.url, { dispatcher })).body.text();
    const before = getGlobalDispatcher();
    setGlobalDispatcher(dispatcher);
    try {
      const { code } = await ended(async (ctx) => {
        const status = await send(`${retried.url}${path}`, ctx, dispatcher);
        throw Object.assign(new Error(`HTTP ${status}`), { status });
      }, more);
      expect(retried.requests.filter(({ method }) => method === 'DELETE')).toHaveLength(2);
      expect(code).toBe('IN_DOUBT');
    } finally {
      setGlobalDispatcher(before);
      await dispatcher.close();
    }
  });
});
