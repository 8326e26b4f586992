// The proxy in front of a server that talks HTTP, byte by byte: what passes, who may call, what is recorded.

import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { eventually } from '../cli/place.ts';
import { httpProxy, messageIn, post } from './http-proxy.ts';
import { listening, readBody } from './http-servers.ts';
import { errorOf, isKept, proxyPlace, soon } from './proxy.ts';
import type { Answer } from './raw-client.ts';

interface Seen {
  readonly method: string | undefined;
  readonly headers: Record<string, unknown>;
  readonly body: string;
}

/** A server by hand that writes down what it gets. A tool answers as its name says. */
async function byHand() {
  const seen: Seen[] = [];
  let effects = 0;
  let release: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const url = await listening(async (request, response) => {
    const body = await readBody(request);
    seen.push({ method: request.method, headers: request.headers, body });
    if (request.method === 'GET')
      return void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': open\n\n');
    const { id, method, params } = JSON.parse(body || '{}');
    const say = (message: object) =>
      void response
        .writeHead(200, { 'content-type': 'application/json', 'x-own': 'yes' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, ...message }));
    if (method === 'tools/list')
      return say({ result: { tools: [{ name: 'peek', annotations: { readOnlyHint: true } }] } });
    if (method !== 'tools/call') return void response.writeHead(200).end('{ "odd" :1.0}\r\n');
    const { name } = params;
    if (/^\d+-/.test(name)) {
      effects += 1;
      const ran = {
        error: { error: { code: -32603, message: 'lost' } },
        result: { result: { content: [], isError: true } },
      };
      const words = ran[name.split('-')[1] as keyof typeof ran];
      return void response
        .writeHead(Number.parseInt(name, 10), { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, ...words }));
    }
    if (/^\d+$/.test(name))
      return void response.writeHead(Number(name), { 'www-authenticate': 'Bearer x' }).end('own words');
    effects += 1;
    if (name === 'cut') return void response.destroy();
    if (name === 'half') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      return void response.end(
        'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n',
      );
    }
    if (name === 'events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(': hello\n\nid: 1\ndata: {"jsonrpc":"2.0","method":"notifications/p"}\r\n\r\n');
      // It never closes its stream.
      return void response.write(
        `id: 2\nevent: message\ndata: { "jsonrpc":"2.0",\ndata: "id":${id},"result":{"content":[]} }\n\n`,
      );
    }
    if (name === 'fails') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      return void response.end(
        `id: 7\ndata: {"jsonrpc":"2.0","id":${id},"result":{"content":[],"isError":true}}\n\n`,
      );
    }
    if (name === 'other')
      return void response.writeHead(200).end('{"jsonrpc":"2.0","id":"other","result":{}}');
    if (name === 'accepted') return void response.writeHead(202).end();
    if (name === 'slow') await gate;
    return say({ result: { content: [{ type: 'text', text: `done ${effects}` }] } });
  });
  return { url, seen, release: () => release(), effects: () => effects };
}

describe('what passes', () => {
  test('every other message: its bytes, its headers, its answer', async () => {
    const here = proxyPlace();
    const server = await byHand();
    const proxy = await httpProxy(server.url, here.env);
    const body = '{ "jsonrpc":"2.0","id":1,\r\n "method":"x","params":{"k":"\\u00e9","n":1.0} }';
    const headers = {
      authorization: 'Bearer t',
      'mcp-protocol-version': '2025-06-18',
      'mcp-session-id': 's',
    };
    const answer = await post(`${proxy.url}?a=b`, body, headers);
    expect(answer.body).toBe('{ "odd" :1.0}\r\n');
    expect(server.seen[0]?.body).toBe(body);
    expect(server.seen[0]?.headers).toMatchObject(headers);
    await post(proxy.url, '', {}, undefined, 'DELETE');
    expect(server.seen[1]?.method).toBe('DELETE');
  });

  test('the guarded call and its first answer, byte for byte; the events beside it as they come', async () => {
    const here = proxyPlace();
    const server = await byHand();
    const proxy = await httpProxy(server.url, here.env, [
      '--policy',
      here.policy({ events: 'write-non-idempotent' }),
    ]);
    const body =
      '{ "jsonrpc":"2.0","id":1, "method":"tools\\/call","params":{"name":"events","arguments":{"n":1.0}} }';
    const headers = { 'mcp-method': 'tools/call', 'mcp-name': 'events' };
    const answer = await post(proxy.url, body, headers);
    expect(server.seen).toHaveLength(1);
    expect(server.seen[0]?.body).toBe(body);
    expect(server.seen[0]?.headers).toMatchObject(headers);
    expect(answer.body).toBe(
      ': hello\n\nid: 1\ndata: {"jsonrpc":"2.0","method":"notifications/p"}\r\n\r\nid: 2\nevent: message\ndata: { "jsonrpc":"2.0",\ndata: "id":1,"result":{"content":[]} }\n\n',
    );
    expect(isKept(messageIn((await post(proxy.url, body, headers)).body) as Answer)).toBe(true);
    expect(server.effects()).toBe(1);
  });

  test('a server that leaves its streams open has still listed its tools', async () => {
    const here = proxyPlace();
    let peeked = 0;
    let open = 0;
    const server = await listening(async (request, response) => {
      const { id, method } = JSON.parse(await readBody(request));
      const tools = [{ name: 'peek', annotations: { readOnlyHint: true } }];
      if (method === 'tools/call') peeked += 1;
      open += 1;
      response.once('close', () => {
        open -= 1;
      });
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const result = method === 'tools/list' ? { tools } : { content: [] };
      response.write(': hello\n\ndata: {"jsonrpc":"2.0","method":"notifications/x"}\n\n');
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
      if (method === 'tools/call') response.end();
    });
    const proxy = await httpProxy(server, here.env);
    // Would the end of the list be waited for, the tool would count as one that is not listed.
    for (const _ of [1, 2]) expect(isKept(await proxy.call('peek'))).toBe(false);
    expect(peeked).toBe(2);
    await eventually(() => open === 0, 'the end of the streams');
  });

  test('an open stream does not keep the proxy from ending', async () => {
    const here = proxyPlace();
    const server = await byHand();
    const proxy = await httpProxy(server.url, here.env);
    void post(proxy.url, '', {}, undefined, 'GET').catch(() => undefined);
    await eventually(() => server.seen.length > 0);
    proxy.child.kill('SIGTERM');
    await eventually(() => proxy.child.exitCode === 0, 'the end');
  });
});

describe('what the server answers', () => {
  test('is passed on where it refuses; then the same call may run', async () => {
    const here = proxyPlace();
    const server = await byHand();
    const proxy = await httpProxy(server.url, here.env);
    const body = (name: string) =>
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}"}}`;
    for (const status of [400, 401, 403, 404, 429]) {
      for (const _ of [1, 2]) {
        const answer = await post(proxy.url, body(String(status)));
        expect(answer).toMatchObject({ status, body: 'own words' });
        expect(answer.headers['www-authenticate']).toBe('Bearer x');
      }
    }
    for (const status of [409, 500, 503]) {
      expect((await post(proxy.url, body(String(status)))).status).toBe(status);
      expect(errorOf(await proxy.call(String(status)))?.code).toBe('IN_DOUBT');
    }
  });

  test.each(['400-error', '404-error', '422-result'])(
    'in doubt where the tool answered, whatever the status: %s',
    async (name) => {
      const here = proxyPlace();
      const server = await byHand();
      const proxy = await httpProxy(server.url, here.env);
      await proxy.call(name);
      expect(errorOf(await proxy.call(name))?.code).toBe('IN_DOUBT');
      expect(server.effects()).toBe(1);
    },
  );

  test.each(['cut', 'half', 'other', 'accepted'])(
    'in doubt where it does not answer the call: %s',
    async (name) => {
      const here = proxyPlace();
      const server = await byHand();
      const proxy = await httpProxy(server.url, here.env);
      expect(errorOf(await proxy.call(name))?.code).toBe('IN_DOUBT');
      expect(errorOf(await proxy.call(name))?.code).toBe('IN_DOUBT');
      expect(server.effects()).toBe(1);
    },
  );

  test('a redirect is not passed on: a client that followed it would bypass the proxy', async () => {
    const here = proxyPlace();
    const behind = await byHand();
    const server = await listening(async (request, response) => {
      const { params } = JSON.parse(await readBody(request));
      const status = Number(params?.name ?? 307);
      response.writeHead(status, { location: behind.url }).end();
    });
    const proxy = await httpProxy(server, here.env);
    const sent = async (message: object) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...message });
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(proxy.url, { method: 'POST', body, headers });
      return { status: response.status, answer: (await response.json()) as Answer };
    };
    expect(await sent({ method: 'initialize' })).toMatchObject({
      status: 502,
      answer: { error: { code: -32603 } },
    });
    const called = async (name: string) => (await sent({ method: 'tools/call', params: { name } })).answer;
    // The same message is to be sent elsewhere: nothing was done with it here.
    for (const name of ['307', '308', '307']) expect(errorOf(await called(name))?.code).toBe('NOT_LANDED');
    for (const name of ['302', '303', '302']) expect(errorOf(await called(name))?.code).toBe('IN_DOUBT');
    expect(behind.seen).toEqual([]);
    await eventually(() => proxy.stderr().includes('The server has moved'));
  });

  test('keeps the id of its event where semel adds a line: a client may resume by it', async () => {
    const here = proxyPlace();
    const server = await byHand();
    const proxy = await httpProxy(server.url, here.env);
    const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fails"}}';
    expect((await post(proxy.url, body)).body).toMatch(
      /^id: 7\ndata: .*It may have had an effect before it failed.*\n\n$/,
    );
  });

  test('nothing was sent where the server is not there', async () => {
    const here = proxyPlace();
    const proxy = await httpProxy('http://127.0.0.1:9/mcp', here.env);
    for (const _ of [1, 2]) expect(errorOf(await proxy.call('send'))?.code).toBe('NOT_LANDED');
  });
});

describe('a list of tools', () => {
  test('is requested with the call’s query: a server may expect its key there', async () => {
    const here = proxyPlace();
    const url = await listening(async (request, response) => {
      const { id, method } = JSON.parse(await readBody(request));
      if (!request.url?.endsWith('?api_key=k')) return void response.writeHead(401).end();
      const tools = [{ name: 'peek', annotations: { readOnlyHint: true } }];
      const result = method === 'tools/list' ? { tools } : { content: [] };
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });
    const proxy = await httpProxy(url, here.env);
    const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"peek"}}';
    for (const _ of [1, 2]) {
      const { body } = await post(`${proxy.url}?api_key=k`, call);
      expect(messageIn(body)).toEqual({ jsonrpc: '2.0', id: 1, result: { content: [] } });
    }
  });

  test('that the server refuses is passed on with its status and type', async () => {
    const here = proxyPlace();
    const words = '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no session"}}';
    const url = await listening((_, response) => {
      response.writeHead(404, { 'content-type': 'application/json' }).end(words);
    });
    const proxy = await httpProxy(url, here.env);
    const answer = await post(proxy.url, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
    expect(answer).toMatchObject({ status: 404, body: words });
    expect(answer.headers['content-type']).toBe('application/json');
  });
});

test('a call that succeeded under a status of failure keeps its type', async () => {
  const here = proxyPlace();
  const words = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}';
  const url = await listening((_, response) => {
    response.writeHead(422, { 'content-type': 'application/json' }).end(words);
  });
  const proxy = await httpProxy(url, here.env);
  const answer = await post(
    proxy.url,
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}',
  );
  expect(answer).toMatchObject({ status: 200, body: words });
  expect(answer.headers['content-type']).toBe('application/json');
});

describe('a client that changes its mind', () => {
  test('hangs up or cancels: the call continues, and is recorded', async () => {
    const here = proxyPlace();
    const server = await byHand();
    const proxy = await httpProxy(server.url, here.env);
    const gone = new AbortController();
    const lost = proxy.call('slow', {}, { id: 7, signal: gone.signal }).catch(() => undefined);
    await eventually(() => server.effects() > 0);
    const cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}';
    expect((await post(proxy.url, cancel)).status).toBe(202);
    gone.abort();
    await lost;
    server.release();
    expect(isKept(await proxy.call('slow'))).toBe(true);
    expect(server.effects()).toBe(1);
    expect(server.seen.filter(({ body }) => body.includes('cancelled'))).toEqual([]);
    // One that is not under way is the server's to judge.
    await post(proxy.url, cancel);
    expect(server.seen.filter(({ body }) => body.includes('cancelled'))).toHaveLength(1);
  });

  test('a proxy waits for running calls before it exits on a signal', async () => {
    const here = proxyPlace();
    const server = await byHand();
    const proxy = await httpProxy(server.url, here.env);
    const call = proxy.call('slow');
    await eventually(() => server.effects() > 0);
    proxy.child.kill('SIGTERM');
    // By a connection of its own: one that is kept alive would still be served.
    const isClosed = () =>
      new Promise<boolean>((resolve) => {
        const socket = connect(Number(new URL(proxy.url).port), '127.0.0.1');
        socket.once('connect', () => resolve(!socket.destroy().destroyed)).once('error', () => resolve(true));
      });
    await eventually(isClosed, 'the end of listening');
    server.release();
    expect((await call).result?.content?.[0]?.text).toBe('done 1');
    await eventually(() => proxy.child.exitCode === 0, 'the end');
  });

  test('a proxy that is killed leaves it in doubt', async () => {
    const here = proxyPlace();
    const server = await byHand();
    const policy = ['--policy', here.policy({ slow: { effect: 'write-non-idempotent', ...soon } })];
    const proxy = await httpProxy(server.url, here.env, policy);
    const lost = proxy.call('slow').catch(() => 'lost');
    await eventually(() => server.effects() > 0);
    proxy.child.kill('SIGKILL');
    expect(await lost).toBe('lost');
    server.release();
    const next = await httpProxy(server.url, here.env, policy);
    expect(errorOf(await next.call('slow'))?.code).toBe('IN_DOUBT');
    expect(server.effects()).toBe(1);
  });
});

describe('who may call', () => {
  test('listens on this machine only by default, and refuses other origins under any host name', async () => {
    const here = proxyPlace();
    const server = await byHand();
    const proxy = await httpProxy(server.url, here.env, ['--allow-origin', 'https://good.example/']);
    expect(proxy.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    const asked = async (headers: Record<string, string>) =>
      (await post(proxy.url, '{"id":1}', headers)).status;
    for (const origin of [
      'https://evil.example',
      'null',
      'http://localhost.evil.example',
      'file://x',
      'chrome-extension://localhost',
      'http://evil.example@127.0.0.1',
      'https://good.example.evil',
    ])
      expect(await asked({ origin })).toBe(403);
    for (const origin of [
      'https://good.example',
      'http://localhost:3000',
      'http://127.0.0.1:8080',
      'http://[::1]:1',
    ])
      expect(await asked({ origin })).toBe(200);
    for (const host of ['evil.example', 'evil.example@127.0.0.1', '127.0.0.1/evil.example', '2130706433'])
      expect(await asked({ host })).toBe(403);
    // A page asks for it as an image, or as a script.
    for (const site of ['cross-site', 'same-site']) {
      const headers = { 'sec-fetch-site': site, 'sec-fetch-mode': 'no-cors' };
      expect((await post(proxy.url, '', headers, undefined, 'GET')).status).toBe(403);
    }
    expect(await asked({ 'sec-fetch-site': 'cross-site', origin: 'https://good.example' })).toBe(200);
    expect(server.seen).toHaveLength(5);
    expect((await post(proxy.url.replace('/mcp', '/other'), '{"id":1}')).status).toBe(404);
  });

  test('other machines need a long token, which is not passed to the server', async () => {
    const here = proxyPlace();
    const server = await byHand();
    const listen = ['mcp', '--http', server.url, '--listen', '0.0.0.0:0'];
    const bare = await here.semel(...listen);
    expect(bare).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/other machines .* 0\.0\.0\.0.*SEMEL_MCP_TOKEN/s),
    });
    for (const secret of ['http://u:p@127.0.0.1:1/mcp', 'http://127.0.0.1:1/mcp?api_key=s']) {
      const local = await here.semel('mcp', '--http', secret, '--listen', '0');
      expect(local).toMatchObject({
        code: 64,
        stderr: expect.stringMatching(/credentials.*SEMEL_MCP_TOKEN/s),
      });
    }
    const short = await here.with({ env: { SEMEL_MCP_TOKEN: 'short' } }).semel(...listen);
    expect(short).toMatchObject({ code: 64, stderr: expect.stringContaining('16 characters') });

    const token = 'a-long-and-random-text';
    const open = await httpProxy(server.url, { ...here.env, SEMEL_MCP_TOKEN: token }, [], '0.0.0.0:0');
    const url = open.url.replace('0.0.0.0', '127.0.0.1');
    const asked = async (headers: Record<string, string>, body = '{"id":1}') =>
      (await post(url, body, headers)).status;
    const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"act"}}';
    for (const headers of [{}, { 'semel-token': 'another' }, { authorization: `Bearer ${token}` }])
      for (const body of ['{"id":1}', call]) expect(await asked(headers, body)).toBe(401);
    expect(server.seen).toHaveLength(0);
    expect(await asked({ 'Semel-Token': token })).toBe(200);
    expect(await asked({ 'Semel-Token': token }, call)).toBe(200);
    expect(JSON.stringify(server.seen)).not.toContain(token);
    expect(open.stderr()).not.toContain(token);
  });

  test('no message that is unreadable, compressed, in a batch or too long', async () => {
    const here = proxyPlace();
    const server = await byHand();
    const proxy = await httpProxy(server.url, here.env);
    const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"act"}}';
    expect((await post(proxy.url, '{"id":')).status).toBe(400);
    expect((await post(proxy.url, Buffer.from(`\ufeff${call}`, 'utf16le'))).status).toBe(400);
    expect((await post(proxy.url, gzipSync(call), { 'content-encoding': 'gzip' })).status).toBe(415);
    for (const type of [
      'application/json; charset=utf-7',
      'application/json;charset="UTF-16"',
      'application/json; charset=utf-8; charset=utf-7',
      "application/json; charset*=us-ascii''utf-7",
      'application/x-www-form-urlencoded',
      'text/plain',
    ])
      expect((await post(proxy.url, call, { 'content-type': type })).status).toBe(415);
    const batch = messageIn((await post(proxy.url, `[${call},{"id":2,"method":"ping"}]`)).body) as Answer[];
    expect(batch.map(({ error }) => error?.code)).toEqual([-32600, -32600]);
    expect((await post(proxy.url, call.replace('"id":1,', ''))).status).toBe(400);
    expect(
      (await post(proxy.url, '', { 'content-length': '100000000' }).catch(() => ({ status: 413 }))).status,
    ).toBe(413);
    expect(server.seen).toEqual([]);
  });
});

test('a tool that is read-only as it is listed to one caller is not so for another', async () => {
  const here = proxyPlace();
  let ran = 0;
  const upstream = await listening(async (request, response) => {
    const { id, method } = JSON.parse(await readBody(request));
    const annotations = { readOnlyHint: request.headers.authorization === 'Bearer ann' };
    ran += method === 'tools/call' ? 1 : 0;
    const result = method === 'tools/list' ? { tools: [{ name: 'send', annotations }] } : { content: [] };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  });
  const proxy = await httpProxy(upstream, here.env);
  for (const [token, times] of [
    ['ann', 2],
    ['bob', 3],
  ] as const) {
    for (const _ of [1, 2]) await proxy.call('send', {}, { headers: { authorization: `Bearer ${token}` } });
    expect(ran).toBe(times);
  }
});

test('secrets are neither logged nor kept', async () => {
  const here = proxyPlace();
  const server = await byHand();
  const token = 'token-secret-of-the-proxy';
  const proxy = await httpProxy(`${server.url}?key=url-secret`, { ...here.env, SEMEL_MCP_TOKEN: token });
  const headers = { authorization: 'Bearer header-secret', cookie: 'c=cookie-secret' };
  const shown = { ...headers, 'semel-token': token };
  await proxy.call('act', { n: 1 }, { headers: shown });
  await proxy.call('500', {}, { headers: shown }).catch(() => undefined);
  expect(server.seen.at(-1)?.headers).toMatchObject(headers);
  const ledger = readFileSync(here.path('ledger.db')).toString('latin1');
  const kept = (await here.semel('export')).stdout + ledger + proxy.stderr();
  expect(kept).toContain('.act');
  expect(kept).not.toMatch(/(url|header|cookie|token)-secret/);
});

test('1 000 calls at once over HTTP are all answered, and each intent lands once', async () => {
  const here = proxyPlace();
  const server = await byHand();
  const proxy = await httpProxy(server.url, here.env);
  const answers = await Promise.all(
    Array.from({ length: 1_000 }, (_, n) => proxy.call('act', { n: n % 100 })),
  );
  // What is read only after its twin was done, and others since, is asked about instead. That is no answer of a model.
  const isAnswered = ({ result }: (typeof answers)[number]) =>
    result !== undefined && (result.isError !== true || result._meta?.['dev.semel/question'] !== undefined);
  expect(answers.every(isAnswered)).toBe(true);
  expect(server.effects()).toBe(100);
});

test('a server that writes each field, and leaves it empty: a result is kept, and an error of the tool is none', async () => {
  let calls = 0;
  const upstream = await listening(async (request, response) => {
    const { id, params } = JSON.parse(await readBody(request));
    calls += 1;
    const content = [{ type: 'text', text: String(calls) }];
    const result = { content, isError: params?.name === 'fail', task: null, resultType: null, _meta: null };
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  });
  const here = proxyPlace();
  const effect = 'write-non-idempotent';
  const file = here.policy({ send: { effect }, fail: { effect, errors: 'not-landed' } });
  const { call } = await httpProxy(upstream, here.env, ['--policy', file]);
  await call('send', { to: 'ann' });
  expect(isKept(await call('send', { to: 'ann' }))).toBe(true);
  await call('fail', { to: 'ann' });
  expect(isKept(await call('fail', { to: 'ann' }))).toBe(false);
  expect(calls).toBe(3);
});

test.each([
  ['Text/Event-Stream; charset=utf-8', (message: string) => `data: ${message}\n\n`],
  ['text/event-stream', (message: string) => `\ufeffdata: ${message}\n\n`],
  ['text/event-stream', (message: string) => `\ufeff: hello\r\rdata: ${message}\r\r`],
  ['application/json', (message: string) => `\ufeff${message}`],
])('an answer as %s is read as every client reads it, and not taken for none', async (type, wrapped) => {
  const upstream = await listening(async (request, response) => {
    const { id } = JSON.parse(await readBody(request));
    const result = { content: [{ type: 'text', text: 'done' }] };
    response
      .writeHead(200, { 'content-type': type })
      .end(wrapped(JSON.stringify({ jsonrpc: '2.0', id, result })));
  });
  const here = proxyPlace();
  const file = here.policy({ send: { effect: 'write-non-idempotent' } });
  const { url } = await httpProxy(upstream, here.env, ['--policy', file]);
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'send', arguments: {} } };
  const one = await post(url, JSON.stringify(call));
  expect(one.body).toContain('"text":"done"');
  expect((await post(url, JSON.stringify(call))).body).toContain('"dev.semel/question":');
});

describe('an answer that is compressed without being requested', () => {
  async function compressing(type: string, body: (id: unknown) => Buffer, coding = 'gzip', status = 200) {
    const upstream = await listening(async (request, response) => {
      const { id } = JSON.parse(await readBody(request));
      response.writeHead(status, { 'content-type': type, 'content-encoding': coding }).end(body(id));
    });
    const here = proxyPlace();
    const file = here.policy({ send: { effect: 'write-non-idempotent' } });
    return httpProxy(upstream, here.env, ['--policy', file]);
  }
  const done = (id: unknown) =>
    JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'done' }] } });

  test.each([
    ['application/json', 'gzip', (id: unknown) => gzipSync(done(id))],
    ['application/json', 'deflate', (id: unknown) => deflateSync(done(id))],
    ['text/event-stream', 'br', (id: unknown) => brotliCompressSync(`data: ${done(id)}\n\n`)],
  ])('is read as clients read it: %s, %s', async (type, coding, body) => {
    const { call } = await compressing(type, body, coding);
    expect((await call('send')).result?.content?.[0]?.text).toBe('done');
    expect(isKept(await call('send'))).toBe(true);
  });

  test.each([
    ['broken', (id: unknown) => gzipSync(done(id)).subarray(0, 30)],
    ['far longer than a message may be', () => gzipSync(Buffer.alloc(65 * 1024 * 1024, ' '))],
  ])('and %s leaves the call in doubt', async (_, body) => {
    const { call } = await compressing('application/json', body);
    expect(errorOf(await call('send'))?.code).toBe('IN_DOUBT');
  });

  test('is passed on unpacked where the server refuses', async () => {
    const { url } = await compressing('text/plain', () => gzipSync('not you'), 'gzip', 403);
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'send', arguments: {} } };
    const { status, body, headers } = await post(url, JSON.stringify(call));
    expect([status, body, headers['content-encoding']]).toEqual([403, 'not you', undefined]);
  });
});
