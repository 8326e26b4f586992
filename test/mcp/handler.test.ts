// `guard` of semel/mcp in servers of both SDKs, over memory and over HTTP.

import { Client as ClientV2, InMemoryTransport as MemoryV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport as MemoryV1 } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js';
import { inputRequired, McpServer as McpServerV2 } from '@modelcontextprotocol/server';
import { createSemel, NotLanded, Rejected, type Semel } from 'semel';
import {
  currentAttempt,
  guard,
  type HandlerTerms,
  isToolError,
  runAgain,
  runAgainDescription,
  runAgainName,
} from 'semel/mcp';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { type CallResult, httpClient } from './clients.ts';
import { startV1, startV2 } from './http-servers.ts';
import { isQuestion, proxyPlace, refIn } from './proxy.ts';

const replayed = 'dev.semel/replayed';
const semels: Semel[] = [];
afterEach(async () => {
  for (const semel of semels.splice(0)) await semel.close();
});

function memory(): Semel {
  const semel = createSemel({ store: 'memory:', namespace: 'test', onWarning: () => undefined });
  semels.push(semel);
  return semel;
}

type Run = (args: { to: string; body?: string | undefined }, extra: unknown) => unknown;
type Ask = (args: object, meta?: Record<string, unknown>) => Promise<CallResult>;

/** One tool, `send`, in a server of that version. */
async function serverWith(
  version: 'v1' | 'v2',
  semel: Semel,
  terms: HandlerTerms<never>,
  run: Run,
): Promise<Ask> {
  const info = { name: 'shop', version: '1.0.0' };
  const fields = { to: z.string(), body: z.string().optional() };
  if (version === 'v1') {
    const server = new McpServerV1(info);
    server.registerTool('send', { inputSchema: fields }, guard(semel, 'send', terms as never, run as never));
    const [here, there] = MemoryV1.createLinkedPair();
    const client = new ClientV1(info);
    await Promise.all([server.connect(there), client.connect(here)]);
    return async (args, _meta = {}) =>
      (await client.callTool({ name: 'send', arguments: { ...args }, _meta })) as unknown as CallResult;
  }
  const server = new McpServerV2(info);
  server.registerTool(
    'send',
    { inputSchema: z.object(fields) },
    guard(semel, 'send', terms as never, run as never),
  );
  const [here, there] = MemoryV2.createLinkedPair();
  const client = new ClientV2(info);
  await Promise.all([server.connect(there), client.connect(here)]);
  return async (args, _meta = {}) =>
    (await client.callTool({ name: 'send', arguments: { ...args }, _meta })) as unknown as CallResult;
}

const done = (text: string) => ({ content: [{ type: 'text' as const, text }] });

describe.each(['v1', 'v2'] as const)('a server of SDK %s', (version) => {
  test('a guarded handler runs once; the second call gets its answer and a line; drift is reported', async () => {
    let ran = 0;
    const ask = await serverWith(
      version,
      memory(),
      { effect: 'write-non-idempotent', identity: ['to'] as never },
      () => {
        ran += 1;
        expect(currentAttempt()?.key).toMatch(/-/);
        return { ...done(`sent ${ran}`), structuredContent: { ran } };
      },
    );
    const turn = { 'dev.semel/conversation': 'c', 'dev.semel/turn': '1' };
    const one = await ask({ to: 'ann', body: 'a' }, turn);
    const two = await ask({ to: 'ann', body: 'b' }, turn);
    expect(one.content).toEqual([{ type: 'text', text: 'sent 1' }]);
    expect(two.structuredContent).toEqual({ ran: 1 });
    expect(two._meta?.[replayed]).toBe(true);
    expect(two.content[1]?.text).toContain('your `body` was not used');
    await ask({ to: 'bob' });
    expect(ran).toBe(2);
  });

  test('a tool without a schema gets `extra` alone: its calls are equal', async () => {
    let ran = 0;
    const handler = guard(memory(), 'ping', { effect: 'write-non-idempotent' }, (extra: object) => {
      ran += 1;
      return done(Object.keys(extra).length > 0 ? 'extra' : 'nothing');
    });
    const info = { name: 'shop', version: '1.0.0' };
    const server = (version === 'v1' ? new McpServerV1(info) : new McpServerV2(info)) as McpServerV1;
    server.registerTool('ping', {}, handler as never);
    const [here, there] = version === 'v1' ? MemoryV1.createLinkedPair() : MemoryV2.createLinkedPair();
    const client = (version === 'v1' ? new ClientV1(info) : new ClientV2(info)) as ClientV1;
    await Promise.all([server.connect(there as never), client.connect(here as never)]);
    const ask = async () => (await client.callTool({ name: 'ping' })) as unknown as CallResult;
    expect((await ask()).content).toEqual(done('extra').content);
    expect(isQuestion(await ask())).toBe(true);
    expect(ran).toBe(1);
  });

  test('what it throws means what the signals say, else it is in doubt', async () => {
    const fail: Record<string, Error> = {
      lost: new Error('socket hang up'),
      busy: new NotLanded('try later'),
      never: new Rejected('no such box'),
    };
    let ran = 0;
    const ask = await serverWith(version, memory(), { effect: 'write-non-idempotent' }, ({ to }) => {
      ran += 1;
      throw fail[to] as Error;
    });
    const codes: string[] = [];
    for (const to of ['lost', 'lost', 'busy', 'busy', 'never', 'never']) {
      const { isError, content } = await ask({ to });
      const value: unknown = JSON.parse(content[0]?.text as string);
      expect(isError && isToolError(value)).toBe(true);
      codes.push((value as { code: string }).code);
    }
    expect(codes).toEqual(['IN_DOUBT', 'IN_DOUBT', 'NOT_LANDED', 'NOT_LANDED', 'FAILED', 'FAILED']);
    expect(ran).toBe(4);
  });

  test.each(['ask', 'in-doubt', 'refused', 'not-landed'] as const)(
    'a result that is marked as an error: %s',
    async (errors) => {
      let ran = 0;
      const ask = await serverWith(version, memory(), { effect: 'write-non-idempotent', errors }, () => {
        ran += 1;
        return { ...done('it broke'), isError: true };
      });
      expect((await ask({ to: 'x' })).content[0]?.text).toBe('it broke');
      await ask({ to: 'x' });
      expect(ran).toBe(errors === 'not-landed' ? 2 : 1);
    },
  );

  test('identity comes from _meta, else from the program around it; keys conflict as a result', async () => {
    let ran = 0;
    const semel = memory();
    const ask = await serverWith(version, semel, { effect: 'write-non-idempotent' }, () => {
      ran += 1;
      return done(`${ran}`);
    });
    const turn = (name: string) => ({ 'dev.semel/conversation': 'c', 'dev.semel/turn': name });
    for (const name of ['1', '1', '2']) await ask({ to: 'x' }, turn(name));
    expect(ran).toBe(2);
    const context = semel.within({ conversation: 'c', turn: '2' }, semel.handoff);
    expect((await ask({ to: 'x' }, { 'dev.semel/context': context }))._meta?.[replayed]).toBe(true);
    const key = { 'dev.semel/idempotency-key': 'k' };
    await ask({ to: 'y' }, key);
    const conflict = await ask({ to: 'z' }, key);
    expect(conflict.isError).toBe(true);
    expect(conflict._meta?.type).toBe('idempotency_key_conflict');
  });

  test('a read is the handler itself', () => {
    const handler = () => done('x');
    expect(guard(memory(), 'look', 'read', handler)).toBe(handler);
  });
});

test('version 1: an error that sends the user to a page first is passed, and nothing is kept', async () => {
  let ran = 0;
  const ask = await serverWith('v1', memory(), { effect: 'write-non-idempotent' }, () => {
    ran += 1;
    throw new UrlElicitationRequiredError([
      { mode: 'url', message: 'pay', url: 'https://x.example', elicitationId: '1' },
    ]);
  });
  for (const _ of [1, 2]) await expect(ask({ to: 'x' })).rejects.toMatchObject({ code: -32042 });
  expect(ran).toBe(2);
});

test('version 2: a request for input passes and is not recorded; the round that answers it runs once', async () => {
  let ran = 0;
  const handler = guard(memory(), 'send', 'write-non-idempotent', (_: { to: string }, ctx: object) => {
    const { inputResponses } = (ctx as { mcpReq: { inputResponses?: unknown } }).mcpReq;
    if (inputResponses === undefined) return inputRequired({ requestState: 's1' });
    ran += 1;
    return done('sent');
  }) as unknown as (args: object, ctx: object) => Promise<CallResult>;
  const ctx = (inputResponses?: object) => ({
    mcpReq: { id: 1, inputResponses, requestState: () => (inputResponses ? 's1' : undefined) },
  });
  for (const _ of [1, 2])
    expect(await handler({ to: 'x' }, ctx())).toMatchObject({
      resultType: 'input_required',
      requestState: 's1',
    });
  for (const _ of [1, 2]) await handler({ to: 'x' }, ctx({ q: { action: 'accept' } }));
  expect(ran).toBe(1);
  await handler({ to: 'x' }, ctx({ q: { action: 'decline' } }));
  expect(ran).toBe(2);
});

test('a key means nothing to another client, in both versions', async () => {
  let ran = 0;
  const handler = guard(memory(), 'send', 'write-non-idempotent', (_: object, _extra: object) => {
    ran += 1;
    return done(`${ran}`);
  });
  const _meta = { 'dev.semel/idempotency-key': 'k' };
  for (const clientId of ['ann', 'bob', 'ann']) await handler({}, { _meta, authInfo: { clientId } });
  expect(ran).toBe(2);
  for (const clientId of ['eve', 'ann'])
    await handler({}, { mcpReq: { _meta }, http: { authInfo: { clientId } } });
  expect(ran).toBe(3);
});

test('over HTTP it lands once, also for a client that has lost its session', async () => {
  for (const [version, start] of [
    ['v1', startV1],
    ['v2 modern', startV2],
  ] as const) {
    const here = proxyPlace();
    const semel = memory();
    const url = await start({
      effects: here.path('effects'),
      wrap: (name, handler) => guard(semel, name, name === 'look' ? 'read' : 'write-non-idempotent', handler),
    });
    for (const _ of [1, 2]) {
      const client = await httpClient(version, url);
      await client.call('send', { to: 'ann' });
      await client.close();
    }
    expect(here.effects()).toEqual(['send ann ']);
  }
});

const headers = { authorization: 'Bearer ann' };
test.each([
  ['v1', { requestInfo: { headers } }],
  ['v2', { http: { req: { headers: new Headers(headers) } } }],
  ['in this process', {}],
])('%s: a repeat is asked about, and runs once the model has said that it means it', async (_, extra) => {
  const semel = memory();
  let sent = 0;
  const send = guard(semel, 'send', 'write-non-idempotent', (_args: object, _extra: unknown) => {
    sent += 1;
    return done(`sent ${sent}`);
  });
  const ask = async () => (await send({ to: 'a' }, extra)) as CallResult;
  await ask();
  // Nobody can answer yet but a person.
  expect((await ask()).content[0]?.text).toMatch(/new action, tell the user: a person has to allow it/);
  const allow = runAgain(semel);
  const held = await ask();
  expect(held.content[0]?.text).toContain(`call ${runAgainName} with ref`);
  for (const _ of [1, 2]) expect(isQuestion(await ask())).toBe(true);
  const ref = refIn(held) as string;
  expect(await allow({ ref }, { requestInfo: { headers: { authorization: 'Bearer eve' } } })).toMatchObject({
    isError: true,
  });
  expect(await allow({ ref }, extra)).not.toMatchObject({ isError: true });
  expect((await ask()).content[0]?.text).toBe('sent 2');
  expect(isQuestion(await ask())).toBe(true);
  expect(sent).toBe(2);
});

test('the handler of the model’s answer is registered as a tool of its own', async () => {
  const semel = memory();
  const server = new McpServerV1({ name: 'shop', version: '1.0.0' });
  let sent = 0;
  const send = (_args: { to: string }, _extra: unknown) => {
    sent += 1;
    return done('sent');
  };
  server.registerTool(
    'send',
    { inputSchema: { to: z.string() } },
    guard(semel, 'send', 'write-non-idempotent', send),
  );
  const inputSchema = { ref: z.string() };
  server.registerTool(runAgainName, { description: runAgainDescription, inputSchema }, runAgain(semel));
  const client = new ClientV1({ name: 'test', version: '1.0.0' });
  const [one, other] = MemoryV1.createLinkedPair();
  await Promise.all([client.connect(one), server.connect(other)]);
  const call = (name: string, args: object) =>
    client.callTool({ name, arguments: { ...args } }) as unknown as Promise<CallResult>;
  await call('send', { to: 'ann' });
  const held = await call('send', { to: 'ann' });
  await call(runAgainName, { ref: refIn(held) });
  expect((await call('send', { to: 'ann' })).isError).not.toBe(true);
  expect(sent).toBe(2);
});

test('what another process has let go is run, though this one remembers its answer', async () => {
  const { storeAt } = proxyPlace();
  let sent = 0;
  const replica = () => {
    // Longer than a test may take.
    const options = { store: storeAt('shared.db'), namespace: 'test', cache: { maxAge: '1h' } } as const;
    const semel = createSemel({ ...options, onWarning: () => undefined });
    semels.push(semel);
    const send = (_args: { to: string }, _extra: unknown) => done(`sent ${++sent}`);
    const guarded = guard(semel, 'send', 'write-non-idempotent', send);
    const allow = runAgain(semel);
    return {
      call: async () => (await guarded({ to: 'ann' }, {})) as CallResult,
      allow: (ref: string) => allow({ ref }, {}),
    };
  };
  const [one, other] = [replica(), replica()];
  await one.call();
  expect(isQuestion(await one.call())).toBe(true);
  await other.allow(refIn(await other.call()) as string);
  expect((await one.call()).content[0]?.text).toBe('sent 2');
  expect(sent).toBe(2);
});

describe('over stdio, of two accounts on one ledger', () => {
  const terms = { effect: 'write-non-idempotent', per: 'ever' } as const;
  const send = (_args: { to: string }, _extra: unknown) => done(`sent for ${process.env.SHOP_API_KEY}`);
  const callAs = async (account: string, policy: HandlerTerms<{ to: string }>, semel: Semel) => {
    vi.stubEnv('SHOP_API_KEY', account);
    return (await guard(semel, 'send', policy, send)({ to: 'bob' }, {})) as CallResult;
  };
  afterEach(() => void vi.unstubAllEnvs());

  test('neither gets the result of the other where the record is known', async () => {
    const semel = memory();
    await callAs('ann', terms, semel);
    const other = await callAs('ben', terms, semel);
    expect([other.isError, JSON.stringify(other)]).toEqual([true, expect.not.stringContaining('for ann')]);
    expect((await callAs('ann', terms, semel))._meta?.[replayed]).toBe(true);
  });

  test('each runs its own call where the turn is a guess', async () => {
    const semel = memory();
    for (const account of ['ann', 'ben']) {
      const { content } = await callAs(account, { effect: 'write-non-idempotent' }, semel);
      expect(content[0]?.text).toBe(`sent for ${account}`);
    }
  });

  test('a caller that the program names counts alone', async () => {
    const semel = memory();
    const asAnn = (account: string) => semel.within({ caller: 'ann' }, () => callAs(account, terms, semel));
    await asAnn('old key');
    expect((await asAnn('new key'))._meta?.[replayed]).toBe(true);
  });
});

test('called by your own code with args alone, other args are another call', async () => {
  const seen: string[] = [];
  const send = guard(
    memory(),
    'send',
    { effect: 'write-non-idempotent', per: 'ever' },
    (args: { to: string }) => {
      seen.push(args.to);
      return done(`sent to ${args.to}`);
    },
  );
  expect(await send({ to: 'ann' })).toEqual(done('sent to ann'));
  expect(await send({ to: 'bob' })).toEqual(done('sent to bob'));
  expect(await send({ to: 'ann' })).toMatchObject({ _meta: { [replayed]: true } });
  expect(seen).toEqual(['ann', 'bob']);
});

test('a meaning of errors that there is not, and a handler that is forgotten, are refused when the tool is made', () => {
  const terms = { effect: 'write-non-idempotent', errors: 'rejected' as 'refused' } as const;
  expect(() => guard(memory(), 'send', terms, () => done('sent'))).toThrow(
    'send: `errors` is "rejected". Write one of ask, in-doubt, refused, not-landed.',
  );
  const none = undefined as unknown as () => CallResult;
  expect(() => guard(memory(), 'send', 'write-non-idempotent', none)).toThrow(
    /^send: the handler is missing/,
  );
});
