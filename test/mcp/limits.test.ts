// Every limit of the proxy on what strangers send, and that whatever is within them takes a time that grows with its
// length only: what does not would not end before the test is given up.

import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { limits } from '../../src/core/limits.ts';
import { repeatedName } from '../../src/core/repeated-name.ts';
import { createSemel } from '../../src/index.ts';
import { eventReader } from '../../src/mcp/events.ts';
import { exchangeFor } from '../../src/mcp/exchange.ts';
import { gathering } from '../../src/mcp/gather.ts';
import { type Holding, holding } from '../../src/mcp/held.ts';
import { proxyHttp } from '../../src/mcp/http.ts';
import { isTooDeep, shapeProblem } from '../../src/mcp/json-shape.ts';
import { lineReader } from '../../src/mcp/lines.ts';
import { toolsOfCommand } from '../../src/mcp/listing.ts';
import type { ToolCall } from '../../src/mcp/messages.ts';
import { answerIn, parsedExactly } from '../../src/mcp/numbers.ts';
import { createQuestions, type Held } from '../../src/mcp/questions.ts';
import { toolCalls } from '../../src/mcp/tool-calls.ts';
import { toolList } from '../../src/mcp/tool-list.ts';
import { BeyondLimit, bodyOf, send } from '../../src/mcp/wire.ts';
import { atTheEnd, eventually } from '../cli/place.ts';
import { listening } from './http-servers.ts';
import { proxyPlace } from './proxy.ts';
import { rawClient } from './raw-client.ts';

describe('in time', () => {
  test('a number of millions of digits', () => {
    const long = `1.${'0'.repeat(4_000_000)}1`;
    expect(parsedExactly(`[${long}]`, (digits) => digits.length)).toEqual([long.length]);
  });

  test('millions of events of three bytes', () => {
    let seen = 0;
    const count = 8_000_000;
    const reader = eventReader(() => {
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

  test('is read to a depth, and no deeper, whatever stands in its texts', () => {
    expect(shapeProblem(Buffer.from(nested(limits.jsonDepth)))).toBeUndefined();
    expect(shapeProblem(Buffer.from(nested(limits.jsonDepth + 1)))).toMatch(/nested deeper than 500/);
    const inText = JSON.stringify({ text: `${'['.repeat(1_000)}"\\${'{'.repeat(1_000)}` });
    expect(shapeProblem(Buffer.from(inText))).toBeUndefined();
    expect(answerIn(nested(limits.jsonDepth))).toBeDefined();
    expect(answerIn(nested(40_000_000))).toBeUndefined();
  });

  test('of a client has no more members and elements than it can be read in time', () => {
    const zeros = (values: number) => Buffer.from(`[${'0,'.repeat(values - 1)}0]`);
    expect(shapeProblem(zeros(limits.jsonValues))).toBeUndefined();
    expect(shapeProblem(zeros(limits.jsonValues + 1))).toMatch(/200000 members and elements/);
    expect(shapeProblem(Buffer.from(`[${'{},'.repeat(limits.jsonValues / 2)}{}]`))).toMatch(/members/);
    expect(shapeProblem(Buffer.from(JSON.stringify(',['.repeat(limits.jsonValues))))).toBeUndefined();
    expect(isTooDeep(zeros(limits.jsonValues + 1))).toBe(false);
  });

  test('of a client holds no number that is longer than anybody means', () => {
    const one = (digits: number) => Buffer.from(`{"n":${'9'.repeat(digits)}}`);
    expect(shapeProblem(one(limits.numberCharacters))).toBeUndefined();
    expect(shapeProblem(one(limits.numberCharacters + 1))).toMatch(/a number/i);
    expect(shapeProblem(Buffer.from(`"${'9'.repeat(5_000)}"`))).toBeUndefined();
    expect(isTooDeep(one(5_000))).toBe(false);
  });

  test('that is too deep is refused by the proxy, and a server that answers so is ended', async () => {
    const here = proxyPlace();
    const file = here.file(
      'deep.mjs',
      `import { createInterface } from 'node:readline';
      createInterface({ input: process.stdin }).on('line', (line) => {
        const { id, method } = JSON.parse(line);
        const result = method === 'tools/list' ? '{"tools":[]}' : '{"a":' + '['.repeat(600) + ']'.repeat(600) + '}';
        console.log('{"jsonrpc":"2.0","id":' + JSON.stringify(id) + ',"result":' + result + '}');
      });`,
    );
    const client = rawClient(here.command([], [process.execPath, file]), here.env);
    atTheEnd(() => void client.child.kill('SIGKILL'));
    client.write(`{"jsonrpc":"2.0","id":1,"method":"ping","params":${nested(600)}}\n`);
    await eventually(() => /-32700.*nested deeper/.test(client.stdout()));
    const long = 'x'.repeat(limits.nameCharacters + 1);
    expect((await client.call(long)).error?.message).toMatch(/longer than 1000 characters/);
    void client.call('act').catch(() => undefined);
    await client.ended;
    expect(client.stderr()).toMatch(/nested deeper than 500 levels. The server is ended/);
  });
});

test('more open calls than anybody has are refused', async () => {
  const here = proxyPlace();
  // It answers nothing, so that each call waits for the list of tools.
  const client = rawClient(here.command([], [process.execPath, '-e', 'process.stdin.resume()']), here.env);
  atTheEnd(() => void client.child.kill('SIGKILL'));
  const call = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"act"}}\n`;
  client.write(Array.from({ length: limits.openCalls + 1 }, (_, id) => call(id)).join(''));
  expect((await client.answer(limits.openCalls)).error?.message).toMatch(/20000 calls are not answered yet,/);
});

describe('memory', () => {
  const held: Holding[] = [];
  afterEach(() => {
    for (const each of held.splice(0)) each.end();
  });

  test('messages that come in part share one budget, which is given back', async () => {
    const refused: unknown[] = [];
    const url = await listening((request, response) => {
      const own = holding();
      void bodyOf(request, own)
        .catch((error: unknown) => refused.push(error))
        .finally(() => {
          own.end();
          response.end();
        });
    });
    const most = holding();
    held.push(most);
    expect(most.take(limits.unfinishedBytes - 10)).toBe(true);
    await fetch(url, { method: 'POST', body: 'x'.repeat(100) });
    expect(refused).toMatchObject([{ status: 503 }]);
    expect(refused[0]).toBeInstanceOf(BeyondLimit);
    most.end();
    await fetch(url, { method: 'POST', body: 'x'.repeat(100) });
    expect(refused).toHaveLength(1);
  });

  test('bytes that come one by one take no more room than others', () => {
    const count = 500_000;
    const readers = [lineReader(() => undefined), eventReader(() => undefined)];
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
    const gathered = gathering();
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
    const semel = createSemel({ store: 'memory:', onWarning: () => undefined });
    const policies = { version: 1, tools: { act: 'write-non-idempotent' } } as const;
    const proxy = await proxyHttp({
      upstream: new URL(upstream),
      host: '127.0.0.1',
      port: 0,
      calls: toolCalls({ semel, server: 's', policies }),
      identity: {},
      token: undefined,
      verifiedTokens: false,
      origins: [],
      graceMs: 0,
    });
    const isRoomFor = (bytes: number) => {
      const own = holding();
      const isTaken = own.take(bytes);
      own.end();
      return isTaken;
    };
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
    await proxy.close();
    await semel.close();
  });

  test('events that come in part count too', () => {
    const most = holding();
    held.push(most);
    most.take(limits.unfinishedBytes - 10);
    const reader = eventReader(() => undefined);
    expect(() => reader.read(Buffer.from('data: a long one'))).toThrow(/too much/);
    reader.end();
  });

  test('a server that floods a client that does not read is held back', async () => {
    const event = `data: {"jsonrpc":"2.0","method":"n","params":"${'x'.repeat(1024 * 1024)}"}\n\n`;
    const events = 28;
    const upstream = await listening((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let n = 0; n < events; n += 1) response.write(event);
      response.end('data: {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n\n');
    });
    const call: ToolCall = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'act' } };
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
      const exchange = exchangeFor(call, response, {
        send: () => send(new URL(upstream), { method: 'POST', headers: {} }),
        resume: () => Promise.reject(new Error('not resumed')),
      });
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
    await expect(toolsOfCommand(process.execPath, server, 60_000)).rejects.toThrow(why);
  });

  test('a list that comes by is kept to the limit', async () => {
    const list = toolList();
    const page = (from: number) => ({
      result: { tools: Array.from({ length: 6_000 }, (_, n) => ({ name: `t${from + n}` })) },
    });
    list.see(page(0));
    list.see(page(6_000));
    const unasked = () => Promise.resolve({});
    expect(await list.find('t9999', unasked)).toBeDefined();
    expect(await list.find('t10000', unasked)).toBeUndefined();
  });

  test('of a list that is kept per caller only the hints are kept', async () => {
    const list = toolList();
    const tool = { name: 't', description: 'long', inputSchema: {}, annotations: { readOnlyHint: true } };
    list.see({ result: { tools: [tool] } });
    const annotations = { readOnlyHint: true, idempotentHint: false };
    expect(await list.find('t', () => Promise.resolve({}))).toEqual({ name: 't', annotations });
  });

  test('names of tools that a client makes up do not fill the memory, and keep no listed tool out', async () => {
    const semel = createSemel({ store: 'memory:', onWarning: () => undefined });
    const calls = toolCalls({
      semel,
      server: 's',
      policies: { version: 1, tools: { named: 'irreversible' } as never },
    });
    const unlisted = async () => undefined;
    for (let n = 0; n < limits.unlistedTools; n += 1) await calls.guardFor(`made-up-${n}`, unlisted);
    await expect(calls.guardFor('one-more', unlisted)).rejects.toThrow(/does not list/);
    expect(await calls.guardFor('made-up-7', unlisted)).toBeDefined();
    expect(await calls.guardFor('listed', async () => ({ name: 'listed' }))).toBeDefined();
    await semel.close();
  });

  test('the oldest question is forgotten, and asked again', () => {
    const questions = createQuestions();
    const held = (n: number) =>
      ({
        record: { ref: `r${n}`, updatedAt: new Date(0), value: {} },
        hasFailed: false,
        changedBy: 'x',
      }) as unknown as Held;
    for (let n = 0; n <= limits.kept; n += 1) questions.delivered(questions.ask(n, 'me', held(n)));
    const now = questions.now();
    expect(questions.takeAnswer('me', held(0), now)).toBe(false);
    expect(questions.takeAnswer('me', held(1), now)).toBe(true);
    // It was an answer once.
    expect(questions.takeAnswer('me', held(1), now)).toBe(false);
    expect(questions.takeAnswer('another', held(2), now)).toBe(false);
  });
});
