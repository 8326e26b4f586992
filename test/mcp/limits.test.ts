// Every limit of the proxy on what strangers send, and that whatever is within them takes a time that grows with its
// length only: what does not would not end before the test is given up.

import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { PassThrough, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { createByteCollector } from '../../src/core/byte-collector.ts';
import { isTooDeep, shapeProblem } from '../../src/core/key/json-shape.ts';
import { repeatedName } from '../../src/core/key/repeated-name.ts';
import { limits } from '../../src/core/limits.ts';
import { createReservation, type Reservation } from '../../src/core/reservations.ts';
import { createSemel } from '../../src/index.ts';
import { contractName } from '../../src/mcp/policy/policies.ts';
import { createEventReader } from '../../src/mcp/protocol/events.ts';
import { createLineReader } from '../../src/mcp/protocol/lines.ts';
import { parseExact, parseReply } from '../../src/mcp/protocol/numbers.ts';
import { createExchange } from '../../src/mcp/proxy/exchange.ts';
import { type HttpProxy, proxyHttp } from '../../src/mcp/proxy/http.ts';
import { listCommandTools } from '../../src/mcp/proxy/listing.ts';
import { createRunAgain } from '../../src/mcp/proxy/run-again.ts';
import { proxyStdio } from '../../src/mcp/proxy/stdio.ts';
import { createToolCalls } from '../../src/mcp/proxy/tool-calls.ts';
import { createToolList } from '../../src/mcp/proxy/tool-list.ts';
import { createToolLists } from '../../src/mcp/proxy/tool-lists.ts';
import { LimitExceeded, readBody, send } from '../../src/mcp/proxy/wire.ts';
import { atTheEnd, eventually } from '../cli/place.ts';
import { listening, readBody as textOf } from './http-servers.ts';
import { proxyPlace } from './proxy.ts';
import { rawClient } from './raw-client.ts';

/** What a value is once it no longer changes: nothing more is coming. */
async function settled<T>(value: () => T): Promise<T> {
  for (;;) {
    const before = value();
    await pause(500);
    if (value() === before) return before;
  }
}

describe('in time', () => {
  test('a number of millions of digits', () => {
    const long = `1.${'0'.repeat(4_000_000)}1`;
    expect(parseExact(`[${long}]`, (digits) => digits.length)).toEqual([long.length]);
  });

  test('millions of events of three bytes', () => {
    let seen = 0;
    const count = 8_000_000;
    const reader = createEventReader(() => {
      seen += 1;
    });
    reader.read(Buffer.from(':\n\n'.repeat(count)));
    expect(seen).toBe(count);
  });

  test('millions of lists side by side', () => {
    expect(repeatedName(`[${'[],'.repeat(3_000_000)}1]`)).toBeUndefined();
  });
});

describe('JSON', () => {
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

  test('is read to a maximum depth, whatever its strings contain', () => {
    expect(shapeProblem(Buffer.from(nested(limits.jsonDepth)))).toBeUndefined();
    expect(shapeProblem(Buffer.from(nested(limits.jsonDepth + 1)))).toMatch(/nested deeper than 500/);
    const inText = JSON.stringify({ text: `${'['.repeat(1_000)}"\\${'{'.repeat(1_000)}` });
    expect(shapeProblem(Buffer.from(inText))).toBeUndefined();
    expect(parseReply(nested(limits.jsonDepth))).toBeDefined();
    expect(parseReply(nested(40_000_000))).toBeUndefined();
  });

  test('of a client has no more members and elements than it can be read in time', () => {
    const zeros = (values: number) => Buffer.from(`[${'0,'.repeat(values - 1)}0]`);
    expect(shapeProblem(zeros(limits.jsonValues))).toBeUndefined();
    expect(shapeProblem(zeros(limits.jsonValues + 1))).toMatch(/200000 members and elements/);
    expect(shapeProblem(Buffer.from(`[${'{},'.repeat(limits.jsonValues / 2)}{}]`))).toMatch(/members/);
    expect(shapeProblem(Buffer.from(JSON.stringify(',['.repeat(limits.jsonValues))))).toBeUndefined();
    expect(isTooDeep(zeros(limits.jsonValues + 1))).toBe(false);
  });

  test('of a client contains no absurdly long number', () => {
    const one = (digits: number) => Buffer.from(`{"n":${'9'.repeat(digits)}}`);
    expect(shapeProblem(one(limits.numberCharacters))).toBeUndefined();
    expect(shapeProblem(one(limits.numberCharacters + 1))).toMatch(/a number/i);
    expect(shapeProblem(Buffer.from(`"${'9'.repeat(5_000)}"`))).toBeUndefined();
    expect(isTooDeep(one(5_000))).toBe(false);
  });

  test('of a server has no more long numbers than can be kept by their digits in time', () => {
    const long = (numbers: number) => parseReply(`[${'1e400,'.repeat(numbers - 1)}1e400]`);
    expect(long(limits.exactNumbers)).toHaveLength(limits.exactNumbers);
    expect(() => long(limits.exactNumbers + 1)).toThrow(/more than 200000 numbers that would be rounded/);
    // A number that JavaScript reads exactly is not one of them.
    expect(parseReply(`[${'1.5e3,'.repeat(limits.exactNumbers)}1e400]`)).toHaveLength(
      limits.exactNumbers + 1,
    );
  });

  test.each([
    ['too deep', "'['.repeat(600) + ']'.repeat(600)", 'nested deeper than 500 levels'],
    ['too full of long numbers', "'[' + '1e400,'.repeat(2e5) + '1e400]'", 'more than 200000 numbers'],
  ])('of a server that is %s ends it if a call waits, and else passes', async (_, text, said) => {
    const here = proxyPlace();
    const file = here.file(
      'odd.mjs',
      `import { createInterface } from 'node:readline';
      createInterface({ input: process.stdin }).on('line', (line) => {
        const { id, method } = JSON.parse(line);
        const result = method === 'tools/list' ? '{"tools":[]}' : '{"a":' + ${text} + '}';
        console.log('{"jsonrpc":"2.0","id":' + JSON.stringify(id) + ',"result":' + result + '}');
      });`,
    );
    const client = rawClient(here.command([], [process.execPath, file]), here.env);
    atTheEnd(() => void client.child.kill('SIGKILL'));
    client.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
    await eventually(() => client.stdout().endsWith('}}\n'));
    void client.call('act').catch(() => undefined);
    await client.ended;
    expect(client.stderr()).toContain(said);
    expect(client.stderr()).toContain('Stopping the server');
  });

  test('that is too deep is refused by the proxy', async () => {
    const here = proxyPlace();
    const idle = [process.execPath, '-e', 'process.stdin.resume()'];
    const client = rawClient(here.command([], idle), here.env);
    atTheEnd(() => void client.child.kill('SIGKILL'));
    client.write(`{"jsonrpc":"2.0","id":1,"method":"ping","params":${nested(600)}}\n`);
    await eventually(() => /-32700.*nested deeper/.test(client.stdout()));
    const long = 'x'.repeat(limits.nameCharacters + 1);
    expect((await client.call(long)).error?.message).toMatch(/longer than 1000 characters/);
  });
});

test('an absurd number of open calls is refused', async () => {
  const here = proxyPlace();
  // It answers nothing, so that each call waits for the list of tools.
  const client = rawClient(here.command([], [process.execPath, '-e', 'process.stdin.resume()']), here.env);
  atTheEnd(() => void client.child.kill('SIGKILL'));
  const call = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"act"}}\n`;
  client.write(Array.from({ length: limits.openCalls + 1 }, (_, id) => call(id)).join(''));
  expect((await client.answer(limits.openCalls)).error?.message).toMatch(
    /20000 calls, or \d+ bytes of calls, are unanswered/,
  );
});

const MiB = 1024 * 1024;
const policies = { version: 1, tools: { act: 'write-non-idempotent', look: 'read' } } as const;

async function proxyTo(upstream: string): Promise<HttpProxy> {
  const semel = createSemel({ store: 'memory:', onWarning: () => undefined });
  const proxy = await proxyHttp({
    upstream: new URL(upstream),
    host: '127.0.0.1',
    port: 0,
    calls: createToolCalls({ semel, server: 's', policies }),
    identity: {},
    token: undefined,
    verifiedTokens: false,
    origins: [],
    graceMs: 0,
  });
  atTheEnd(() => void proxy.close().then(() => semel.close()));
  return proxy;
}

const posted = (message: object) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ jsonrpc: '2.0', ...message }),
});

/** Other limits for one test: nobody waits for two minutes, or sends gigabytes. */
const usual = { ...limits };
const withLimits = (others: Partial<Record<keyof typeof limits, number>>) => Object.assign(limits, others);
afterEach(() => void Object.assign(limits, usual));

const isRoomFor = (bytes: number) => {
  const own = createReservation();
  const isTaken = own.take(bytes);
  own.end();
  return isTaken;
};

/** What the proxy says to a request for a path that it does not have. */
function said(url: string, client?: Socket): Promise<string> {
  const { hostname, port } = new URL(url);
  const asking = client ?? connect(Number(port), hostname);
  return new Promise<string>((resolve) => {
    asking.once('data', (part) => resolve(String(part).slice(0, 12)));
    asking.once('error', () => resolve('closed')).once('close', () => resolve('closed'));
    asking.write(`GET /none HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
  }).finally(() => client ?? asking.destroy());
}

describe('over HTTP', () => {
  test('a request that takes too long to send is ended', async () => {
    withLimits({ requestMs: 200 });
    const { url } = await proxyTo('http://127.0.0.1:9/mcp');
    const { hostname, port, pathname } = new URL(url);
    const heads = {
      'a body that never ends': `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{`,
      'a head that never ends': `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\n`,
    };
    for (const [what, head] of Object.entries(heads)) {
      const client = connect(Number(port), hostname);
      client.write(head);
      let heard = '';
      client.on('data', (part) => {
        heard += part;
      });
      await new Promise((resolve) => client.once('error', resolve).once('close', resolve));
      expect(heard, what).toMatch(/^HTTP\/1\.1 408 /);
    }
  });

  test('more connections than the limit are refused, and closed ones make room', async () => {
    withLimits({ connections: 2 });
    const { url } = await proxyTo('http://127.0.0.1:9/mcp');
    const { hostname, port } = new URL(url);
    const clients = [connect(Number(port), hostname), connect(Number(port), hostname)] as const;
    for (const client of clients) expect(await said(url, client)).toBe('HTTP/1.1 404');
    expect(await said(url)).toBe('closed');
    clients[0].end();
    await eventually(async () => (await said(url)) === 'HTTP/1.1 404');
    clients[1].destroy();
  });

  test('one connection opens so many to the server, and no more, before it reads', async () => {
    withLimits({ pipelined: 2 });
    const streams: ServerResponse[] = [];
    const upstream = await listening((_request, response) => {
      streams.push(response);
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    });
    const { url } = await proxyTo(upstream);
    const { hostname, port, pathname } = new URL(url);
    const ask = `GET ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`;
    const client = connect(Number(port), hostname);
    let heard = '';
    client.on('data', (part) => {
      heard += part;
    });
    client.write(ask);
    await eventually(() => heard.includes('HTTP/1.1 200'));
    client.write(ask.repeat(3));
    await eventually(() => streams.length === 2);
    for (const stream of streams) stream.end();
    await new Promise((resolve) => client.once('close', resolve));
    expect(heard.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 503']);
    expect(streams).toHaveLength(2);
  });
});

describe('memory', () => {
  const held: Reservation[] = [];
  afterEach(() => {
    for (const each of held.splice(0)) each.end();
  });

  test('messages that come in part share one budget, which is given back', async () => {
    const refused: unknown[] = [];
    const url = await listening((request, response) => {
      const own = createReservation();
      void readBody(request, own)
        .catch((error: unknown) => refused.push(error))
        .finally(() => {
          own.end();
          response.end();
        });
    });
    const most = createReservation();
    held.push(most);
    expect(most.take(limits.unfinishedBytes - 10)).toBe(true);
    await fetch(url, { method: 'POST', body: 'x'.repeat(100) });
    expect(refused).toMatchObject([{ status: 503 }]);
    expect(refused[0]).toBeInstanceOf(LimitExceeded);
    most.end();
    await fetch(url, { method: 'POST', body: 'x'.repeat(100) });
    expect(refused).toHaveLength(1);
  });

  test('long incomplete messages do not block a short one: the longest is dropped', async () => {
    withLimits({ unfinishedBytes: 151_000, messageBytes: 60_000 });
    const upstream = await listening(
      (request, response) => void request.resume().on('end', () => response.end()),
    );
    const { url } = await proxyTo(upstream);
    const { hostname, port, pathname } = new URL(url);
    const half = (bytes: number) => {
      const client = connect(Number(port), hostname);
      const heard = new Promise<string>((resolve) => client.once('data', (part) => resolve(String(part))));
      client.on('error', () => undefined);
      atTheEnd(() => void client.destroy());
      client.write(
        `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n`,
      );
      client.write('x'.repeat(bytes));
      return heard;
    };
    const [longer] = [half(51_000), half(48_900)];
    // Both are there; what is longer than either asks for no room of theirs.
    await eventually(() => !isRoomFor(51_101));
    withLimits({ unfinishedBytes: 100_000 });
    const message = (bytes: number) =>
      posted({ method: 'notifications/x', params: { text: 'x'.repeat(bytes) } });
    expect((await fetch(url, message(1_000))).status).toBe(200);
    expect(await longer).toMatch(/^HTTP\/1.1 503 [\s\S]*received at once/);
    // One that is longer than every half waits its turn.
    withLimits({ unfinishedBytes: 50_000 });
    expect((await fetch(url, message(49_500))).status).toBe(503);
  });

  test('bytes that arrive one by one take no more memory than others', () => {
    const count = 500_000;
    const readers = [createLineReader(() => undefined), createEventReader(() => undefined)];
    const inUse = () => {
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const before = inUse();
    const source = Buffer.alloc(count, 'x');
    for (const { read } of readers) for (let at = 0; at < count; at += 1) read(source.subarray(at, at + 1));
    expect(inUse() - before).toBeLessThan(200 * count);
    for (const { end } of readers) end();
  });

  test('pieces come out as they went in', () => {
    const bytes = Buffer.from(Array.from({ length: 50_000 }, (_, n) => n % 251));
    const gathered = createByteCollector();
    for (let at = 0, length = 1; at < bytes.length; at += length, length = (length * 7) % 5_003)
      gathered.add(bytes.subarray(at, at + length));
    expect(gathered.size).toBe(bytes.length);
    expect(gathered.take(Buffer.from('end')).equals(Buffer.concat([bytes, Buffer.from('end')]))).toBe(true);
    expect(gathered.take()).toHaveLength(0);
  });

  test('a call whose client has hung up counts until it has ended', async () => {
    const waiting: ServerResponse[] = [];
    const upstream = await listening((request, response) => {
      request.resume();
      waiting.push(response);
    });
    const proxy = await proxyTo(upstream);
    const gone = new AbortController();
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'act' } };
    const answer = fetch(proxy.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(call),
      signal: gone.signal,
    });
    await eventually(() => waiting.length === 1);
    gone.abort();
    await answer.catch(() => undefined);
    // Answered after the proxy has seen the connection close.
    await fetch(proxy.url, { method: 'POST' });
    expect(isRoomFor(limits.unfinishedBytes)).toBe(false);
    waiting[0]?.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [] } }));
    await eventually(() => isRoomFor(limits.unfinishedBytes));
  });

  test.each([
    ['reads', { readOnlyHint: true }],
    ['sets', { idempotentHint: true }],
  ])(
    'a client that hangs up before its call is passed on leaves nothing open: %s',
    async (name, annotations) => {
      const methods: string[] = [];
      const lists: (() => void)[] = [];
      const upstream = await listening(async (request, response) => {
        const { id, method } = JSON.parse(await textOf(request)) as { id: string; method: string };
        methods.push(method);
        const result = { tools: [{ name, annotations }] };
        lists.push(() => response.end(JSON.stringify({ jsonrpc: '2.0', id, result })));
      });
      const proxy = await proxyTo(upstream);
      const gone = new AbortController();
      const message = posted({ id: 1, method: 'tools/call', params: { name } });
      const answer = fetch(proxy.url, { ...message, signal: gone.signal });
      await eventually(() => lists.length === 1);
      gone.abort();
      await answer.catch(() => undefined);
      // Answered after the proxy has seen the connection close.
      await fetch(proxy.url, { method: 'POST' });
      lists[0]?.();
      await eventually(() => isRoomFor(limits.unfinishedBytes));
      expect(methods).toEqual(['tools/list']);
    },
  );

  test('a message no longer counts once the server has it, however long its answer takes', async () => {
    const upstream = await listening((request, response) => {
      request.resume().on('end', () => response.writeHead(200).write('on'));
    });
    const { url } = await proxyTo(upstream);
    const answer = await fetch(url, {
      ...posted({ id: 1, method: 'listen', params: 'x'.repeat(1_000_000) }),
    });
    expect(answer.status).toBe(200);
    await eventually(() => isRoomFor(limits.unfinishedBytes));
    await answer.body?.cancel();
  });

  test.each([
    ['switches protocols', '101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp'],
    ['switches to nothing', '101 Switching Protocols'],
    ['has no status', '099 Nothing\r\nContent-Length: 0'],
  ])('a server that %s is an error, and its message no longer counts', async (_what, head) => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.write(`HTTP/1.1 ${head}\r\n\r\n`));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    atTheEnd(() => void server.close());
    const { url } = await proxyTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
    for (const method of ['ping', 'tools/list', 'tools/call']) {
      const answer = await fetch(url, posted({ id: 1, method, params: { name: 'act' } }));
      expect(await answer.json(), method).toMatchObject({ jsonrpc: '2.0' });
    }
    await eventually(() => isRoomFor(limits.unfinishedBytes));
  });

  test('halves that other clients send do not keep the answer of a server out', async () => {
    const waiting: ServerResponse[] = [];
    const upstream = await listening((request, response) => {
      request.resume();
      waiting.push(response);
    });
    const { url } = await proxyTo(upstream);
    const ask = async (id: number) => {
      const answer = fetch(
        url,
        posted({ id, method: 'tools/call', params: { name: 'act', arguments: { id } } }),
      );
      const response = await eventually(() => waiting.shift());
      const most = createReservation();
      held.push(most);
      for (let bytes = limits.unfinishedBytes; bytes >= 1; bytes /= 2) most.take(bytes);
      return { response, answered: answer.then((each) => each.text()).finally(most.end) };
    };
    const done = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      result: { content: [{ type: 'text', text: 'done' }] },
    });
    const whole = await ask(1);
    whole.response.end(done);
    expect(JSON.parse(await whole.answered)).toEqual(JSON.parse(done));
    const events = await ask(2);
    events.response.writeHead(200, { 'content-type': 'text/event-stream' });
    events.response.write(': begun\ndata: ');
    events.response.end(`${done.replace('"id":1', '"id":2')}\n\n`);
    expect(await events.answered).toMatch(/"text":"done"/);
  });

  test.each([200, 500])(
    'an answer of status %i that is too long is not waited for, by the client or at the server',
    async (status) => {
      const size = limits.messageBytes + 1;
      const closed = Promise.withResolvers<void>();
      const upstream = await listening((request, response) => {
        request.resume();
        response.once('close', closed.resolve);
        response.writeHead(status, { 'content-length': size }).write('{');
      });
      const { url } = await proxyTo(upstream);
      const answer = await fetch(url, posted({ id: 1, method: 'tools/call', params: { name: 'act' } }));
      expect((await answer.text()).length).toBeLessThan(10_000);
      await closed.promise;
    },
  );

  /** Answers a call with as much as this, in one piece, one after the other, and a GET with a stream that does not end. */
  const answering = (bytes: number) => {
    let answered = Promise.resolve();
    return listening((request, response) => {
      if (request.method === 'GET')
        return void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': begun\n\n');
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        const { id } = JSON.parse(Buffer.concat(parts).toString()) as { id: number };
        const result = { content: [{ type: 'text', text: 'x'.repeat(bytes) }] };
        answered = answered.then(async () => {
          response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
          await once(response, 'close');
        });
      });
    });
  };
  const call = (id: number, name: string) =>
    posted({ id, method: 'tools/call', params: { name, arguments: { id } } });

  test('answers that clients do not read are dropped, the oldest first', async () => {
    const size = 10 * MiB;
    const { url } = await proxyTo(await answering(size));
    withLimits({ unfinishedBytes: 2.5 * size });
    const unread = [];
    for (const id of [1, 2, 3]) unread.push(await fetch(url, call(id, 'act')));
    const read = await Promise.allSettled(unread.map((each) => each.text()));
    expect(read.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  });

  test('answers that wait behind a stream on their connection are dropped with it', async () => {
    const size = 10 * MiB;
    const { url } = await proxyTo(await answering(size));
    withLimits({ unfinishedBytes: 2.5 * size });
    const { hostname, port, pathname } = new URL(url);
    const client = connect(Number(port), hostname);
    client.on('error', () => undefined);
    client.write(`GET ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\nAccept: text/event-stream\r\n\r\n`);
    await once(client, 'data');
    client.resume();
    const requests = [1, 2, 3].map((id) => {
      const { body } = call(id, 'act');
      return `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    });
    // In one piece: Node.js reads no further request while so much waits.
    client.write(requests.join(''));
    await once(client, 'close', { signal: AbortSignal.timeout(20_000) });
  });

  test.each(['act', 'look'])('a client that does not read the answer of %s is disconnected', async (name) => {
    withLimits({ unreadMs: 100, connections: 1 });
    const { url } = await proxyTo(await answering(20 * MiB));
    const { hostname, port, pathname } = new URL(url);
    const { body } = call(1, name);
    const client = connect(Number(port), hostname).pause();
    client.on('error', () => undefined);
    client.write(
      `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await new Promise((resolve) => client.once('connect', resolve));
    expect(await said(url)).toBe('closed');
    await eventually(async () => (await said(url)) === 'HTTP/1.1 404');
    client.destroy();
  });

  test('a client over stdio that does not read has its answers wait at the server', async () => {
    const count = 30;
    const server = `
      const readline = require('node:readline');
      const text = 'x'.repeat(1024 * 1024);
      readline.createInterface({ input: process.stdin }).on('line', (line) => {
        const result = { content: [{ type: 'text', text }] };
        console.log(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(line).id, result }));
      });`;
    const semel = createSemel({ store: 'memory:', onWarning: () => undefined });
    const input = new PassThrough();
    let answers = 0;
    const { promise: isRead, resolve: read } = Promise.withResolvers<void>();
    const output = new Writable({
      write(chunk: Buffer, _encoding, next) {
        answers += chunk.toString().split('\n').length - 1;
        void isRead.then(() => next());
      },
    });
    const ended = proxyStdio({
      command: process.execPath,
      args: ['-e', server],
      env: process.env,
      calls: createToolCalls({ semel, server: 's', policies }),
      caller: { scope: 'stdio', identity: {} },
      input,
      output,
      graceMs: 30_000,
    });
    for (let id = 1; id <= count; id += 1) input.write(`${call(id, 'act').body}\n`);
    await eventually(() => answers > 0);
    expect(await settled(() => output.writableLength)).toBeLessThan(5 * MiB);
    read();
    await eventually(() => answers === count);
    input.end();
    expect(await ended).toBe(0);
    await semel.close();
  });

  test('events that come in part count too', () => {
    const most = createReservation('servers');
    held.push(most);
    most.take(limits.unfinishedBytes - 10);
    const reader = createEventReader(() => undefined);
    expect(() => reader.read(Buffer.from('data: a long one'))).toThrow(/too much/);
    reader.end();
  });

  test('a server that floods a client that does not read is held back', async () => {
    const event = `data: {"jsonrpc":"2.0","method":"n","params":"${'x'.repeat(1024 * 1024)}"}\n\n`;
    // Far more than the sockets in between hold.
    const events = 40;
    const upstream = await listening((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let n = 0; n < events; n += 1) response.write(event);
      response.end('data: {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n\n');
    });
    let largest = 0;
    let answering: ServerResponse | undefined;
    const front = createServer((_request, response) => {
      answering = response;
      const write = response.write.bind(response) as (bytes: Buffer) => boolean;
      response.write = ((bytes: Buffer) => {
        const isFree = write(bytes);
        largest = Math.max(largest, response.writableLength);
        return isFree;
      }) as never;
      const exchange = createExchange(
        1,
        response,
        {
          send: () => send(new URL(upstream), { method: 'POST', headers: {} }),
          resume: () => Promise.reject(new Error('not resumed')),
        },
        'call',
      );
      void exchange.forward(undefined, new AbortController().signal).then(exchange.finish);
    });
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    atTheEnd(() => {
      front.closeAllConnections();
      front.close();
    });
    const { port } = front.address() as AddressInfo;
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    await eventually(() => (answering?.writableLength ?? 0) > limits.unreadBytes);
    await settled(() => answering?.writableLength);
    expect((await answer.text()).length).toBeGreaterThan(events * event.length);
    expect(largest).toBeLessThan(limits.unreadBytes + 4 * 1024 * 1024);
  });
});

describe('count', () => {
  /** A server that lists tools without end. */
  const endless = (tools: number) => `
    const readline = require('node:readline');
    let page = 0;
    readline.createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line);
      if (id === undefined) return;
      page += 1;
      const tools = Array.from({ length: ${tools} }, (_, n) => ({ name: page + '-' + n }));
      const result = method === 'tools/list' ? { tools, nextCursor: 'more' } : {};
      console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });`;

  test.each([
    [1, /more than 100 pages/],
    [2_000, /more than 10000 tools/],
  ])('a list of tools that does not end, with %i on a page, is refused', async (tools, why) => {
    const server = ['-e', endless(tools)];
    await expect(listCommandTools(process.execPath, server, 60_000)).rejects.toThrow(why);
  });

  test('a list that comes by is kept to the limit', async () => {
    const list = createToolList();
    const page = (from: number) => ({
      result: { tools: Array.from({ length: 6_000 }, (_, n) => ({ name: `t${from + n}` })) },
    });
    list.addPage(page(0));
    list.addPage(page(6_000));
    const unasked = () => Promise.resolve({});
    expect(await list.find('t9999', unasked)).toBeDefined();
    expect(await list.find('t10000', unasked)).toBeUndefined();
  });

  test('an endless list is not read to its end', async () => {
    let asked = 0;
    const endless = async () => {
      asked += 1;
      return { result: { tools: [{ name: `t${asked}` }], nextCursor: 'more' } };
    };
    withLimits({ listPages: 7 });
    expect(await createToolList().find('elsewhere', endless)).toBeUndefined();
    expect(asked).toBe(7);
  });

  test('a tool whose name is too long to be called is not kept', async () => {
    const list = createToolList();
    const [longest, longer] = [limits.nameCharacters, limits.nameCharacters + 1].map((n) => 'x'.repeat(n));
    list.addPage({ result: { tools: [{ name: longest }, { name: longer }] } });
    const found = [longest, longer].map((name) => list.find(name as string, () => Promise.resolve({})));
    expect(await Promise.all(found)).toEqual([expect.objectContaining({ name: longest }), undefined]);
  });

  test('only the hints are kept of a list that is stored per caller', async () => {
    const list = createToolList();
    const tool = { name: 't', description: 'long', inputSchema: {}, annotations: { readOnlyHint: true } };
    list.addPage({ result: { tools: [tool] } });
    const annotations = { readOnlyHint: true, idempotentHint: false };
    expect(await list.find('t', () => Promise.resolve({}))).toEqual({ name: 't', annotations });
  });

  test('lists of long names for many callers do not fill the memory, and the newest are kept', async () => {
    const lists = createToolLists();
    const asked: number[] = [];
    const find = (caller: number) =>
      lists.find(`caller ${caller}`, 'pay', async () => {
        asked.push(caller);
        const long = Array.from({ length: limits.listEntries - 1 }, (_, n) => String(n).padStart(1_000));
        return { result: { tools: ['pay', ...long].map((name) => ({ name })) } };
      });
    const callers = Array.from({ length: 12 }, (_, n) => n);
    const before = process.memoryUsage().heapUsed;
    for (const caller of callers) await find(caller);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(4 * limits.listedCharacters);
    await find(11);
    expect(asked).toEqual(callers);
    await find(0);
    expect(asked).toEqual([...callers, 0]);
    // At once: each list is long before any is dropped.
    await Promise.all(callers.map(find));
    expect(asked.length).toBeGreaterThan(callers.length + 1);
  });

  test('invented tool names from a client do not fill the memory, and do not displace real tools', async () => {
    const semel = createSemel({ store: 'memory:', onWarning: () => undefined });
    const calls = createToolCalls({
      semel,
      server: 's',
      policies: { version: 1, tools: { named: 'irreversible' } as never },
    });
    const unlisted = async () => undefined;
    const first = await calls.guardFor('made-up-0', unlisted);
    const second = await calls.guardFor('made-up-1', unlisted);
    for (let n = 2; n < limits.guardedTools; n += 1) await calls.guardFor(`made-up-${n}`, unlisted);
    expect(await calls.guardFor('made-up-0', unlisted)).toBe(first);
    // The one that was used longest ago makes room.
    expect(await calls.guardFor('listed', async () => ({ name: 'listed' }))).toBeDefined();
    expect(await calls.guardFor('made-up-0', unlisted)).toBe(first);
    expect(await calls.guardFor('made-up-1', unlisted)).not.toBe(second);
    // Its name is free: other terms would be refused for a name that is kept.
    const other = { name: contractName('s', 'made-up-2'), effect: 'irreversible', per: 'ever' } as const;
    expect(() => semel.tool({ ...other, run: () => 1 })).not.toThrow();
    await semel.close();
  });

  test('the oldest question is forgotten, and asked again', async () => {
    const semel = createSemel({ store: 'memory:', onWarning: () => undefined });
    const { offer, allow } = createRunAgain(semel);
    for (let n = 0; n <= limits.kept; n += 1) offer('me', 'act', { key: `act/${n}`, ref: `r${n}@1` });
    expect(await allow('me', { ref: 'r0@1' })).toBeUndefined();
    expect(await allow('another', { ref: 'r1@1' })).toBeUndefined();
    expect(await allow('me', { ref: 'r1@1' })).toMatchObject({ content: [{ type: 'text' }] });
  });
});
