// Where ctx.fetch puts the key, who may see it, and what happens when an SDK sends a request again by itself.

import type { IncomingMessage } from 'node:http';
import type { AttemptContext, Provider } from 'semel';
import { describe, expect, test } from 'vitest';
import { gate, quick, rig, type Target, target } from './support.ts';

type Run = (ctx: AttemptContext) => unknown;

const server = await target();
const base = { name: 'pay', window: '48h', hosts: [server.host] } as const;

async function ended(run: Run, provider: Provider | undefined, more: object = {}) {
  const semel = quick();
  const contract = { name: 'charge', effect: 'write-non-idempotent', per: 'ever' } as const;
  const at = provider === undefined ? {} : { provider };
  const tool = semel.tool({ ...contract, ...at, ...more, run: (_: object, ctx) => run(ctx) });
  const from = server.requests.length;
  const result = await tool.try({});
  const { items } = await semel.records.list();
  await semel.close();
  const problem = result.ok ? '' : `${result.error.message} ${result.error.cause}`;
  return { result, problem, status: items[0]?.status, requests: server.requests.slice(from) };
}

const post = (
  ctx: AttemptContext,
  body: string | null,
  url = `${server.url}/a?x=1%202`,
  init: RequestInit = {},
) => ctx.fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' }, ...init });

describe('a field of the JSON body', () => {
  const provider = { ...base, bodyField: 'idempotency_key' };

  test.each([
    ['{"amount":12345678901234567890,"note":"a } b"}', ',"amount":12345678901234567890,"note":"a } b"}'],
    [' { } ', ' } '],
    ['{\n  "a": 1\n}', ',\n  "a": 1\n}'],
  ])('is put into %j, and all else stays as it is', async (body, rest) => {
    const { requests } = await ended(async (ctx) => {
      await post(ctx, body);
      await post(ctx, '{"second":true}');
    }, provider);
    const [first, second] = requests;
    const { idempotency_key: key } = JSON.parse(first!.body);
    expect(key).toMatch(/^[0-9a-f-]{36}$/);
    expect(first!.body).toContain(`{"idempotency_key":"${key}"${rest}`);
    expect(first!.key).toBeUndefined();
    expect(JSON.parse(second!.body).idempotency_key).not.toBe(key);
  });

  test('is left alone where the tool has named one', async () => {
    const { requests, result } = await ended(async (ctx) => {
      const key = ctx.keyFor('refund');
      await post(ctx, JSON.stringify({ idempotency_key: key }));
      return key;
    }, provider);
    expect(JSON.parse(requests[0]!.body)).toEqual({ idempotency_key: result.ok && result.value });
  });

  test.each([['a=1'], ['[1]'], ['null'], [''], [null]])('%j is refused before it is sent', async (body) => {
    const { requests, problem, status } = await ended((ctx) => post(ctx, body), provider, {
      dispatch: 'explicit',
    });
    expect(problem).toMatch(/`idempotency_key` of a JSON object, but the body of this request is not one/);
    expect({ requests, status }).toEqual({ requests: [], status: 'released' });
  });

  test('takes a Request, and a length that was counted without the key', async () => {
    const { requests } = await ended(
      (ctx) =>
        ctx.fetch(
          new Request(server.url, { method: 'POST', body: '{"a":1}', headers: { 'content-length': '7' } }),
        ),
      provider,
    );
    expect(JSON.parse(requests[0]!.body)).toMatchObject({ a: 1, idempotency_key: expect.any(String) });
  });
});

describe('a parameter of the query', () => {
  const provider = { ...base, queryField: 'requestid' };

  test('is added, and all else stays as it is', async () => {
    const { requests, result } = await ended(async (ctx) => {
      await post(ctx, 'x');
      await post(ctx, 'y', server.url);
      return [ctx.key, ctx.keyFor('#2')];
    }, provider);
    const keys = result.ok ? (result.value as string[]) : [];
    expect(requests.map(({ path }) => path)).toEqual([
      `/a?x=1%202&requestid=${keys[0]}`,
      `/?requestid=${keys[1]}`,
    ]);
    expect(requests.map(({ body }) => body)).toEqual(['x', 'y']);
  });

  test('is left alone where the tool has named one', async () => {
    const { requests } = await ended((ctx) => post(ctx, 'x', `${server.url}/?requestid=mine`), provider);
    expect(requests[0]!.path).toBe('/?requestid=mine');
  });
});

describe('strangers', () => {
  const places: Provider[] = [base, { ...base, bodyField: 'k' }, { ...base, queryField: 'k' }];

  test.each(places)('get no request that contains a key: %o', async (provider) => {
    const stranger = await target();
    const { problem } = await ended((ctx) => post(ctx, '{}', `${stranger.url}/b`), provider);
    expect(problem).toMatch(/is not in the `hosts` of pay/);
    expect(stranger.requests).toEqual([]);
  });

  test('are they too whose name only ends like that of a host', async () => {
    const hosts = [new URL(server.url).hostname.slice(1)];
    const { problem, requests } = await ended((ctx) => post(ctx, '{}'), { ...base, hosts });
    expect(problem).toMatch(/is not in the `hosts` of pay/);
    expect(requests).toEqual([]);
  });

  test.each(places)('are not reached by a redirect: %o', async (provider) => {
    const stranger = await target();
    const redirecting = await leadingTo(stranger);
    const { result } = await ended(async (ctx) => (await post(ctx, '{}', redirecting.url)).status, {
      ...provider,
      hosts: [redirecting.host],
    });
    expect(result).toMatchObject({ ok: true, value: 307 });
    expect(stranger.requests).toEqual([]);
  });

  test('are not reached by a redirect with a key that the tool has named either', async () => {
    const stranger = await target();
    const redirecting = await leadingTo(stranger);
    const provider = { ...base, hosts: [redirecting.host] };
    await ended(
      (ctx) => post(ctx, '{}', redirecting.url, { headers: { 'Idempotency-Key': ctx.keyFor('refund') } }),
      provider,
    );
    expect(redirecting.requests).toHaveLength(1);
    expect(stranger.requests).toEqual([]);
  });
});

describe('a redirect of a request that needs no key is followed as `fetch` does', () => {
  const headers = {
    authorization: 'Bearer secret',
    cookie: 'c=secret',
    'content-type': 'text/x',
    'x-own': 'yes',
  };
  const shown = ({ method, url, headers: got }: IncomingMessage, body: string) => ({
    method,
    url,
    body,
    ...Object.fromEntries(Object.keys(headers).map((name) => [name, got[name]])),
  });

  for (const status of [301, 302, 303, 307, 308])
    test.each([
      ['POST', 'the same host'],
      ['POST', 'a stranger'],
      ['PUT', 'the same host'],
      ['DELETE', 'a stranger'],
    ])(`${status} of a %s to %s`, async (method, to) => {
      const seen: object[] = [];
      const end = await target((request, response, body) => {
        seen.push(shown(request, body));
        response.end();
      });
      const start = await target((request, response, body) => {
        if (request.url !== '/') {
          seen.push(shown(request, body));
          return void response.end();
        }
        const location = to === 'a stranger' ? `${end.url}/there` : '/there';
        response.writeHead(status, { location }).end();
      });
      const init = { method, headers, body: 'words' };
      await fetch(start.url, init);
      const { result } = await ended(async (ctx) => (await ctx.fetch(start.url, init)).status, {
        name: 'x',
        window: 0,
        sentBy: 'nobody',
      });
      expect(result).toMatchObject({ ok: true, value: 200 });
      expect(seen).toHaveLength(2);
      expect(seen[1]).toEqual(seen[0]);
    });

  test('and is an error where the tool wants it so', async () => {
    const start = await leadingTo(server);
    const init = { method: 'POST', redirect: 'error' } as const;
    await expect(fetch(start.url, init)).rejects.toThrow(TypeError);
    const { status, requests } = await ended((ctx) => ctx.fetch(start.url, init), {
      name: 'x',
      window: 0,
      sentBy: 'nobody',
    });
    expect({ status, requests }).toEqual({ status: 'unknown', requests: [] });
  });
});

describe('sent by the tool, or by nobody', () => {
  test.each(['tool', 'nobody'] as const)('%s: ctx.fetch adds nothing and needs no hosts', async (sentBy) => {
    const { requests, result } = await ended((ctx) => post(ctx, '{"a":1}').then(() => 1), {
      name: 'x',
      window: sentBy === 'tool' ? '48h' : 0,
      sentBy,
    });
    expect(result.ok).toBe(true);
    expect(requests).toMatchObject([{ body: '{"a":1}', key: undefined, path: '/a?x=1%202' }]);
  });
});

describe('an SDK that sends again by itself', () => {
  test('a request that may have landed keeps its key; the next one has its own', async () => {
    const flaky = await target((request, response) => {
      if (flaky.requests.length === 1) return void request.socket.destroy();
      response.end('{}');
    });
    const run: Run = async (ctx) => {
      await post(ctx, '{"a":1}', flaky.url).catch(() => post(ctx, '{"a":1}', flaky.url));
      await post(ctx, '{"b":1}', flaky.url);
    };
    const { result } = await ended(run, { ...base, hosts: [flaky.host] });
    expect(result.ok).toBe(true);
    const [a, again, b] = flaky.requests.map(({ key }) => key);
    expect(again).toBe(a);
    expect(b).not.toBe(a);
  });

  const form = () => {
    const made = new FormData();
    made.append('file', new Blob(['words']), 'a.txt');
    return made;
  };
  type Made = (url: string) => [string | Request, RequestInit?];
  const of =
    (body: () => RequestInit['body']): Made =>
    (url) => [url, { method: 'POST', body: body() as string, duplex: 'half' }];

  test.each<[string, Made]>([
    ['bytes', of(() => Buffer.from('words'))],
    ['a blob', of(() => new Blob(['words']))],
    ['a form', of(form)],
    ['a list of parameters', of(() => new URLSearchParams('a=1'))],
    ['a Request', (url) => [new Request(url, { method: 'PUT', body: '{}' })]],
    ['a stream', of(() => new Blob(['words']).stream())],
    ['a Request of a form', (url) => [new Request(url, { method: 'POST', body: form() })]],
  ])('it is known whatever it sends: %s', async (_, made) => {
    const flaky = await target((request, response) => {
      if (flaky.requests.length < 3) return void request.socket.destroy();
      response.end('{}');
    });
    const send = (ctx: AttemptContext) => ctx.fetch(...made(flaky.url));
    const run: Run = async (ctx) => {
      await send(ctx)
        .catch(() => send(ctx))
        .catch(() => send(ctx));
      await send(ctx);
      return [ctx.key, ctx.keyFor('#2')];
    };
    const { result } = await ended(run, { ...base, hosts: [flaky.host] });
    const [key, second] = result.ok ? (result.value as string[]) : [];
    expect(flaky.requests.map((request) => request.key)).toEqual([key, key, key, second]);

    const deaf = await target((request) => void request.socket.destroy());
    const blindly = (ctx: AttemptContext) => ctx.fetch(...made(deaf.url));
    await ended((ctx) => blindly(ctx).catch(() => blindly(ctx)), { name: 'x', window: 0, sentBy: 'nobody' });
    expect(deaf.requests).toHaveLength(1);
  });

  test('two that are alike on purpose have two keys: at once, and one after the other', async () => {
    const { requests } = await ended(async (ctx) => {
      await Promise.all([post(ctx, '{}'), post(ctx, '{}')]);
      await post(ctx, '{}');
    }, base);
    expect(new Set(requests.map(({ key }) => key)).size).toBe(3);
  });

  test.each<[string, (response: Response) => unknown]>([
    ['JSON', (response) => response.json()],
    ['a text', (response) => response.text()],
    ['bytes', (response) => response.arrayBuffer()],
    ['a copy', (response) => response.clone().json()],
    ['its stream', (response) => response.body?.pipeTo(new WritableStream())],
    ['a response around its stream', (response) => new Response(response.body, response).text()],
    ['the stream of a copy', (response) => new Response(response.clone().body).text()],
    ['a method of the class', (response) => Response.prototype.text.call(response)],
  ])('a request whose answer breaks off is the same one when it is sent again: %s', async (_, read) => {
    const answers = async (provider: (broken: Target) => Provider | undefined) => {
      const broken = await target((request, response) => {
        response.writeHead(200, { 'content-length': '100' }).write('{"id":');
        setTimeout(() => request.socket.destroy(), 20);
      });
      const send = async (ctx: AttemptContext) => read(await post(ctx, '{}', broken.url));
      const end = await ended((ctx) => send(ctx).catch(() => send(ctx)), provider(broken));
      return { ...end, keys: broken.requests.map(({ key }) => key) };
    };
    const keyed = await answers(({ host }) => ({ ...base, hosts: [host] }));
    expect(keyed.keys).toHaveLength(2);
    expect(new Set(keyed.keys).size).toBe(1);
    const unkeyed = await answers(() => undefined);
    expect(unkeyed.keys).toHaveLength(1);
    expect(unkeyed.status).toBe('unknown');
  });

  test('an answer is given to the tool as it came', async () => {
    const whole = await target((_, response) => {
      response.writeHead(201, 'Made', { 'content-type': 'text/plain', 'set-cookie': ['a=1', 'b=2'] });
      response.write('one, ');
      response.end('two');
    });
    const empty = await target((_, response) => response.writeHead(204).end());
    const readWith = async (response: Response) => {
      const reader = (response.body as ReadableStream<Uint8Array>).getReader({ mode: 'byob' });
      const { value } = await reader.read(new Uint8Array(5));
      await reader.cancel();
      return new TextDecoder().decode(value);
    };
    const { result } = await ended(async (ctx) => {
      const response = await post(ctx, '{}', whole.url);
      const { status, statusText, url, redirected, type, headers } = response;
      const copy = response.clone();
      const facts = [status, statusText, url === copy.url, redirected, type, headers.getSetCookie()];
      const texts = [await copy.text(), await readWith(response)];
      const nothing = await post(ctx, '{}', empty.url);
      return [...facts, ...texts, url, nothing.body, nothing.status, await nothing.text()];
    }, undefined);
    expect(result.ok && result.value).toEqual([
      ...[201, 'Made', true, false, 'basic', ['a=1', 'b=2']],
      ...['one, two', 'one, ', new URL(whole.url).href, null, 204, ''],
    ]);
  });

  test('so is one whose answer is not what it says', async () => {
    const cut = await target((_, response) => response.end('{"id":'));
    const send = async (ctx: AttemptContext) => (await post(ctx, '{}', cut.url)).json();
    const { status } = await ended((ctx) => send(ctx).catch(() => send(ctx)), undefined);
    expect(cut.requests).toHaveLength(1);
    expect(status).toBe('unknown');
  });

  test('a key that the SDK made up is replaced by ours, and tells its retries apart from a second call', async () => {
    const provider = { ...base, sdkKey: /^sdk-retry-/ };
    const withOwn = (ctx: AttemptContext, key: string) =>
      post(ctx, '{}', server.url, { headers: { 'Idempotency-Key': key } });
    const { requests, result } = await ended(async (ctx) => {
      await withOwn(ctx, 'sdk-retry-1');
      await withOwn(ctx, 'sdk-retry-1');
      await withOwn(ctx, 'sdk-retry-2');
      await withOwn(ctx, 'mine');
      return ctx.key;
    }, provider);
    const [first, again, second, mine] = requests.map(({ key }) => key);
    expect(first).toBe(result.ok && result.value);
    expect(again).toBe(first);
    expect(second).not.toBe(first);
    expect([first, second]).not.toContain('sdk-retry-1');
    expect(mine).toBe('mine');
  });

  test.each([
    ['that honours no key', { sentBy: 'nobody', window: 0 } as const],
    ['that is not verified', { verified: false } as const],
  ])('a provider %s gets a request that may have landed no second time', async (_, more) => {
    const deaf = await target((request) => void request.socket.destroy());
    const run: Run = (ctx) => post(ctx, '{}', deaf.url).catch(() => post(ctx, '{}', deaf.url));
    const provider = { ...base, hosts: [deaf.host], ...more };
    const verify = () => ({ verdict: 'unsure', because: 'nobody knows' });
    const { status, problem } = await ended(run, provider, { verify });
    expect(deaf.requests).toHaveLength(1);
    expect(status).toBe('unknown');
    expect(problem).toMatch(/It has no key that is trusted, so it is not sent again/);
  });

  test('nor does a target without a provider, unless the tool sends a key of its own', async () => {
    const deaf = await target((request) => void request.socket.destroy());
    const again = (headers: Record<string, string>): Run => {
      const send = (ctx: AttemptContext) => post(ctx, '{}', deaf.url, { headers });
      return (ctx) => send(ctx).catch(() => send(ctx));
    };
    const { status, problem } = await ended(again({}), undefined);
    expect(deaf.requests).toHaveLength(1);
    expect(status).toBe('unknown');
    expect(problem).toContain(`${deaf.host}: this request was already sent`);
    await ended(again({ 'Idempotency-Key': 'mine' }), undefined);
    expect(deaf.requests).toHaveLength(3);
  });

  test('where a second effect is harmless it may', async () => {
    const deaf = await target((request) => void request.socket.destroy());
    const run: Run = (ctx) => post(ctx, '{}', deaf.url).catch(() => post(ctx, '{}', deaf.url));
    await ended(run, { name: 'x', window: 0, sentBy: 'nobody' }, { effect: 'write-idempotent' });
    expect(deaf.requests).toHaveLength(2);
  });
});

describe('what a provider says of an error', () => {
  const provider = { ...base, classify: () => 'rejected' as const };

  test('decides where it was the only request', async () => {
    const { status } = await ended(async (ctx) => {
      await post(ctx, '{}', `${server.url}/status/500`);
      throw new Error('declined');
    }, provider);
    expect(status).toBe('failed');
  });

  test.each(['/status/200', '/status/500'])('does not speak for a request before it: %s', async (path) => {
    const { status } = await ended(async (ctx) => {
      await post(ctx, '{"a":1}', `${server.url}${path}`);
      await post(ctx, '{"b":1}', `${server.url}/status/402`);
      throw new Error('declined');
    }, provider);
    expect(status).toBe('unknown');
  });
});

describe('a contract refuses', () => {
  const tool = (provider: object) => () =>
    quick().tool({
      name: 'charge',
      effect: 'write-non-idempotent',
      per: 'ever',
      provider: provider as Provider,
      run: () => 1,
    });

  test.each([
    [
      { ...base, verified: false },
      /how long pay remembers a key is not verified and counts as nothing.*verified: true/,
    ],
    [{ ...base, window: 0 }, /pay does not say how long it remembers a key/],
    [{ ...base, header: 'A', bodyField: 'b' }, /a key goes to one place/],
    [{ ...base, bodyField: '' }, /a key goes to one place/],
    [{ ...base, sentBy: 'tool', queryField: 'q' }, /a key goes to one place/],
    [{ ...base, sentBy: 'me' }, /is not a valid `provider.sentBy`/],
  ])('%o', (provider, message) => {
    expect(tool(provider)).toThrow(message);
  });

  test('nothing of a provider that says that it honours no key', () => {
    expect(tool({ name: 'x', window: 0, sentBy: 'nobody' })).not.toThrow();
  });
});

function leadingTo(stranger: Target): Promise<Target> {
  return target((_, response) => {
    response.writeHead(307, { location: `${stranger.url}/caught` });
    response.end();
  });
}

describe('a run without a timeout that takes longer than the provider remembers its key', () => {
  const hour = 3_600_000;
  const definition = {
    name: 'charge',
    effect: 'write-non-idempotent',
    per: 'ever',
    window: '24h',
    timeout: 'none',
    provider: { name: 'pay', window: '24h', hosts: [server.host] },
  } as const;

  test('does not send again what may have landed under it', async () => {
    const { semel, clock } = rig();
    const { promise: prepared, resolve } = gate<void>();
    let runs = 0;
    const charge = semel.tool({
      ...definition,
      run: async (_: object, ctx) => {
        runs += 1;
        if (runs === 2) await prepared;
        return (await post(ctx, '{}', `${server.url}/${runs === 1 ? 'reset' : 'status/200'}`)).status;
      },
    });
    const from = server.requests.length;
    expect(await charge.try({})).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    await clock.advance(23 * hour);
    const second = charge.try({});
    await clock.advance(2 * hour);
    resolve();
    expect(await second).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    expect([runs, server.requests.length - from]).toEqual([2, 1]);
  });

  test('sends it again while the key is remembered', async () => {
    const { semel, clock } = rig();
    let runs = 0;
    const charge = semel.tool({
      ...definition,
      run: async (_: object, ctx) =>
        (await post(ctx, '{}', `${server.url}/${++runs === 1 ? 'reset' : 'status/200'}`)).status,
    });
    expect(await charge.try({})).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    await clock.advance(23 * hour);
    expect(await charge({})).toBe(200);
  });
});
