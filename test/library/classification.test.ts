// What an attempt's ending means: the join of everything it did, never its last error. Real requests to a real
// server wherever HTTP is involved.

import { connect } from 'node:net';
import {
  AlreadyLanded,
  type AttemptContext,
  type ErrorCode,
  MaybeLanded,
  NotLanded,
  PartialSuccess,
  Rejected,
  type Semel,
} from 'semel';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deafAddress, quick, rig, type Target, target } from './support.ts';

let server: Target;
let deaf: string;
beforeAll(async () => {
  server = await target();
  deaf = await deafAddress();
});
afterAll(() => server.close());

const base = { name: 'post', effect: 'write-non-idempotent', per: 'ever' } as const;

type Run = (ctx: AttemptContext) => unknown;

async function ended(run: Run, more: object = {}, semel: Semel = quick()) {
  const tool = semel.tool({ ...base, ...more, run: (_args: unknown, ctx) => run(ctx) });
  const result = await tool.try({ id: 1 });
  const record = (await semel.records.list()).items[0];
  return {
    code: (result.ok ? 'ok' : result.error.code) as ErrorCode | 'ok',
    status: record?.status,
    result,
    record,
  };
}

async function post(ctx: AttemptContext, path: string, init: RequestInit = {}): Promise<unknown> {
  const response = await ctx.fetch(path.startsWith('http') ? path : `${server.url}${path}`, {
    method: 'POST',
    body: '{}',
    ...init,
  });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response.json();
}

describe('requests through ctx.fetch, where every effect goes through it', () => {
  const via = 'fetch';

  test.each<[string, string, ErrorCode | 'ok', string]>([
    ['landed (2xx)', '/status/201', 'ok', 'succeeded'],
    ...[400, 402, 404, 410, 422].map((status): [string, string, ErrorCode, string] => [
      `refused (${status})`,
      `/status/${status}`,
      'FAILED',
      'failed',
    ]),
    ...[401, 403, 429].map((status): [string, string, ErrorCode, string] => [
      `turned away for now (${status})`,
      `/status/${status}`,
      'NOT_LANDED',
      'released',
    ]),
    ...[408, 409, 425, 499, 500, 502, 503, 504].map((status): [string, string, ErrorCode, string] => [
      `ambiguous (${status})`,
      `/status/${status}`,
      'IN_DOUBT',
      'unknown',
    ]),
    // Node's fetch throws away a 407 without a word, so that nothing can be known of it.
    ['a proxy that wants a password (407)', '/status/407', 'IN_DOUBT', 'unknown'],
    ['cut off before the answer', '/reset', 'IN_DOUBT', 'unknown'],
    ['cut off in the middle of the answer', '/cut', 'IN_DOUBT', 'unknown'],
  ])('%s', async (_title, path, code, status) => {
    expect(await ended((ctx) => post(ctx, path), { via })).toMatchObject({ code, status });
  });

  test('a port that refuses the connection: not landed, although the claim counted as dispatch', async () => {
    expect(await ended((ctx) => post(ctx, deaf), { via })).toMatchObject({
      code: 'NOT_LANDED',
      status: 'released',
    });
  });

  test('a name that does not exist: not landed', async () => {
    expect(await ended((ctx) => post(ctx, 'http://nowhere.invalid/'), { via })).toMatchObject({
      status: 'released',
    });
  });

  test('an invalid address: not landed, nothing was sent', async () => {
    expect(await ended((ctx) => post(ctx, 'http://[/'), { via })).toMatchObject({ status: 'released' });
  });

  test('no answer within the caller’s own time limit: in doubt', async () => {
    const run: Run = (ctx) => post(ctx, '/hang', { signal: AbortSignal.timeout(50) });
    expect(await ended(run, { via })).toMatchObject({ code: 'IN_DOUBT', status: 'unknown' });
  });

  test('no answer within the timeout of the contract: in doubt', async () => {
    const { code, status, result } = await ended((ctx) => post(ctx, '/hang'), { via, timeout: '50ms' });
    expect({ code, status }).toEqual({ code: 'IN_DOUBT', status: 'unknown' });
    expect(result.ok ? '' : result.error.message).toMatch(/ran longer than its timeout of 50ms/);
  });

  test('the first landed and the second was refused: in doubt, not refused', async () => {
    const run: Run = async (ctx) => {
      await post(ctx, '/status/200');
      await post(ctx, '/status/422');
    };
    expect(await ended(run, { via })).toMatchObject({ code: 'IN_DOUBT', status: 'unknown' });
  });

  test('landed, then the database refused the connection: in doubt', async () => {
    const run: Run = async (ctx) => {
      await post(ctx, '/status/200');
      await new Promise((_resolve, reject) => connect(Number(new URL(deaf).port)).on('error', reject));
    };
    expect(await ended(run, { via })).toMatchObject({ code: 'IN_DOUBT', status: 'unknown' });
  });

  test('a refused connection outside ctx.fetch is not evidence', async () => {
    const run: Run = () => fetch(deaf, { method: 'POST' });
    expect(await ended(run, { via })).toMatchObject({ code: 'IN_DOUBT', status: 'unknown' });
  });

  test('reading first changes nothing: a GET is not an effect', async () => {
    const run: Run = async (ctx) => {
      await ctx.fetch(`${server.url}/status/200`);
      await post(ctx, '/status/422');
    };
    expect(await ended(run, { via })).toMatchObject({ code: 'FAILED', status: 'failed' });
  });

  test('one was not sent and one was refused: refused', async () => {
    const run: Run = async (ctx) => {
      await post(ctx, deaf).catch(() => undefined);
      await post(ctx, '/status/422');
    };
    expect(await ended(run, { via })).toMatchObject({ status: 'failed' });
  });

  test('repeatable classes are released, whatever it was, and the caller may call again', async () => {
    const { code, status, result } = await ended((ctx) => post(ctx, '/status/500'), {
      effect: 'write-idempotent',
    });
    expect({ code, status }).toEqual({ code: 'FAILED', status: 'released' });
    expect(result.ok ? undefined : result.error.retriable).toBe(true);
    const late = await ended((ctx) => post(ctx, '/hang'), { effect: 'write-idempotent', timeout: '50ms' });
    expect(late).toMatchObject({ code: 'FAILED', status: 'released' });
  });
});

describe('effects that nobody saw', () => {
  /** As by a mailer of the tool's own. */
  let mails = 0;
  const sendMail = async () => {
    mails += 1;
  };

  const denials: [string, (ctx: AttemptContext) => Promise<unknown>][] = [
    ...[401, 403, 404, 422, 429].map((status): (typeof denials)[number] => [
      `a ${status}`,
      (ctx) => post(ctx, `/status/${status}`),
    ]),
    ['a refused connection', (ctx) => post(ctx, deaf)],
    ['a request that is refused before it is sent', (ctx) => post(ctx, 'http://[/')],
    ['an error of its own', () => Promise.reject(new Error('template missing'))],
  ];
  const retry = { tries: 6, backoff: 1 };

  test.each(denials)('are in doubt after %s, and nothing is done again', async (_what, denied) => {
    mails = 0;
    const run: Run = async (ctx) => {
      await sendMail();
      await denied(ctx);
    };
    expect(await ended(run, { retry })).toMatchObject({ code: 'IN_DOUBT', status: 'unknown' });
    expect(mails).toBe(1);
  });

  test('no provider without a trusted key speaks for them', async () => {
    mails = 0;
    const run: Run = async () => {
      await sendMail();
      throw Object.assign(new Error('slow down'), { status: 429 });
    };
    const known = { name: 'sms', window: 0, sentBy: 'nobody', classify: () => 'notLanded' } as const;
    const ending = await ended(run, { retry, provider: known });
    expect(ending).toMatchObject({ code: 'IN_DOUBT', status: 'unknown' });
    expect(mails).toBe(1);
  });

  test('the error names the line that would have decided it', async () => {
    const { result } = await ended((ctx) => post(ctx, '/status/429'));
    const advice = result.ok ? '' : result.error.correctiveAction;
    expect(advice).toContain('add classify: oneRequest');
    expect(advice).toContain("add via: 'fetch'");
    const { result: other } = await ended((ctx) => post(ctx, '/status/500'));
    expect(other.ok ? '' : other.error.correctiveAction).not.toMatch(/via|oneRequest/);
  });
});

describe("via: 'fetch'", () => {
  test('what is thrown before any request did not land', async () => {
    const run: Run = () => Promise.reject(new TypeError('no such field'));
    expect(await ended(run, { via: 'fetch' })).toMatchObject({ code: 'NOT_LANDED', status: 'released' });
  });

  test('a provider may say what its error means', async () => {
    const provider = { name: 'sms', window: 0, sentBy: 'nobody', classify: () => 'rejected' } as const;
    const run: Run = () => Promise.reject(new Error('no such number'));
    expect(await ended(run, { via: 'fetch', provider })).toMatchObject({ code: 'FAILED' });
  });

  test('another word is refused', () => {
    const define = () => quick().tool({ ...base, via: 'axios' as never, run: () => 1 });
    expect(define).toThrow(/"axios" is/);
  });
});

describe('what the tool says itself', () => {
  const fails =
    (error: unknown): Run =>
    () => {
      throw error;
    };

  test.each<[string, unknown, ErrorCode | 'ok', string]>([
    ['NotLanded', new NotLanded('queue was full'), 'NOT_LANDED', 'released'],
    ['Rejected', new Rejected('card expired'), 'FAILED', 'failed'],
    ['MaybeLanded', new MaybeLanded('no receipt'), 'IN_DOUBT', 'unknown'],
    ['AlreadyLanded', new AlreadyLanded({ id: 7 }), 'ok', 'succeeded'],
    ['PartialSuccess', new PartialSuccess(['a'], 'two of three'), 'PARTIAL_SUCCESS', 'unknown'],
    ['anything else', new TypeError('x is not a function'), 'IN_DOUBT', 'unknown'],
    ['a string', 'oops', 'IN_DOUBT', 'unknown'],
    ['nothing', undefined, 'IN_DOUBT', 'unknown'],
    ['an object without a prototype', Object.create(null), 'IN_DOUBT', 'unknown'],
  ])('%s', async (_title, error, code, status) => {
    expect(await ended(fails(error))).toMatchObject({ code, status });
  });

  test('AlreadyLanded is a success with its value', async () => {
    const { result } = await ended(fails(new AlreadyLanded({ id: 7 })));
    expect(result).toMatchObject({ ok: true, value: { id: 7 } });
  });

  test('PartialSuccess reports what landed', async () => {
    const { result } = await ended(fails(new PartialSuccess(['a'], 'two of three')));
    expect(result.ok ? undefined : result.error).toMatchObject({ code: 'PARTIAL_SUCCESS', value: ['a'] });
    expect(result.ok ? '' : result.error.message).toMatch(/two of three/);
  });

  test('it is trusted before the line too', async () => {
    const explicit = { dispatch: 'explicit' };
    expect(await ended(fails(new AlreadyLanded(7)), explicit)).toMatchObject({
      code: 'ok',
      status: 'succeeded',
    });
    expect(await ended(fails(new Rejected('over the limit')), explicit)).toMatchObject({ status: 'failed' });
    expect(await ended(fails(new NotLanded('later')), explicit)).toMatchObject({ status: 'released' });
  });

  test('a refused failure is remembered, and answered without running again', async () => {
    const { semel, clock } = rig();
    let ran = 0;
    const tool = semel.tool({
      ...base,
      run: (_args: unknown) => {
        ran += 1;
        throw new Rejected('card expired');
      },
    });
    const first = await tool.try({});
    const second = await tool.try({});
    expect(ran).toBe(1);
    expect(second).toMatchObject({ ok: false, receipt: { executed: false, replayed: true } });
    expect(second.ok ? '' : second.error.message).toBe(first.ok ? '' : first.error.message);
    await clock.advance(3_600_000);
    await tool.try({});
    expect(ran).toBe(2);
  });
});

describe('what the contract or the provider recognise', () => {
  const fails: Run = () => {
    throw Object.assign(new Error('login failed'), { code: 'EAUTH' });
  };

  test('`classify` can be a table of error codes', async () => {
    expect(await ended(fails, { classify: { EAUTH: 'notLanded' } })).toMatchObject({ status: 'released' });
    expect(await ended(fails, { classify: { EAUTH: 'rejected' } })).toMatchObject({ status: 'failed' });
    expect(await ended(fails, { classify: { EAUTH: 'maybeLanded' } })).toMatchObject({ status: 'unknown' });
    expect(await ended(fails, { classify: { OTHER: 'notLanded' } })).toMatchObject({ status: 'unknown' });
    expect(await ended(fails, { classify: { toString: 'notLanded' } })).toMatchObject({ status: 'unknown' });
  });

  test('`classify` can be a function, which may say that it had landed', async () => {
    const classify = (error: unknown) =>
      (error as { code?: string }).code === 'EAUTH' ? new AlreadyLanded('by then') : undefined;
    expect(await ended(fails, { classify })).toMatchObject({
      status: 'succeeded',
      result: { ok: true, value: 'by then' },
    });
  });

  test('a function that throws or answers nonsense has recognised nothing', async () => {
    const throws = () => {
      throw new Error('bug');
    };
    expect(await ended(fails, { classify: throws })).toMatchObject({ status: 'unknown' });
    expect(await ended(fails, { classify: () => 'released' })).toMatchObject({ status: 'unknown' });
  });

  test('the provider, where the contract says nothing', async () => {
    const provider = { name: 'mailer', window: '48h', classify: () => 'notLanded' };
    expect(await ended(fails, { provider })).toMatchObject({ status: 'released' });
    expect(await ended(fails, { provider, classify: () => 'rejected' })).toMatchObject({ status: 'failed' });
  });

  test('what the tool says itself comes first', async () => {
    const run: Run = () => {
      throw new MaybeLanded('no receipt');
    };
    expect(await ended(run, { classify: () => 'notLanded' })).toMatchObject({ status: 'unknown' });
  });
});

describe('the key that ctx.fetch adds', () => {
  test('goes to the provider’s hosts only', async () => {
    const stranger = await target();
    const provider = { name: 'mailer', window: '48h', hosts: [server.host] };
    const from = server.requests.length;
    const { result } = await ended(
      async (ctx) => {
        await post(ctx, '/a');
        await ctx.fetch(`${stranger.url}/read`);
        await ctx.fetch(`${server.url}/read`);
        return ctx.key;
      },
      { provider },
    );
    const [a, read] = server.requests.slice(from);
    expect(a?.key).toBe(result.ok ? result.value : undefined);
    expect(read?.key).toBeUndefined();
    expect(stranger.requests[0]?.key).toBeUndefined();
  });

  test('a write to a stranger is not sent: without a key a re-run would repeat it', async () => {
    const stranger = await target();
    const provider = { name: 'mailer', window: '48h', hosts: [server.host] };
    const { result } = await ended((ctx) => ctx.fetch(`${stranger.url}/b`, { method: 'POST' }), { provider });
    expect(result.ok ? '' : String(result.error.cause)).toMatch(/is not in the `hosts` of mailer/);
    expect(stranger.requests).toEqual([]);
  });

  test('is not carried to a stranger by a redirect', async () => {
    const stranger = await target();
    const redirecting = await target((_request, response) => {
      response.writeHead(307, { location: `${stranger.url}/caught` });
      response.end();
    });
    const provider = { name: 'mailer', window: '48h', hosts: [redirecting.host] };
    await ended((ctx) => post(ctx, `${redirecting.url}/go`), { provider });
    expect(redirecting.requests[0]?.key).toBeDefined();
    expect(stranger.requests.map(({ key }) => key)).not.toContain(redirecting.requests[0]?.key);
  });

  test('is in the form and in the header that the provider wants', async () => {
    const seen: unknown[] = [];
    const server2 = await target((request, response) => {
      seen.push(request.headers['x-once']);
      response.end('{}');
    });
    const provider = {
      name: 'mailer',
      window: '48h',
      hosts: [server2.host],
      header: 'X-Once',
      format: (uuid: string) => `k_${uuid.replaceAll('-', '')}`,
    };
    const { result } = await ended(
      async (ctx) => {
        await post(ctx, `${server2.url}/`);
        return ctx.key;
      },
      { provider },
    );
    expect(seen).toEqual([result.ok ? result.value : '']);
    expect(seen[0]).toMatch(/^k_[0-9a-f]{32}$/);
  });

  test('does not replace one that the tool set itself', async () => {
    const from = server.requests.length;
    const provider = { name: 'mailer', window: '48h', hosts: [server.host] };
    await ended((ctx) => post(ctx, '/own', { headers: { 'Idempotency-Key': 'mine' } }), { provider });
    expect(server.requests[from]?.key).toBe('mine');
  });

  test('differs from request to request, is the same again on a retry, and also for requests at once', async () => {
    const flaky = await target((request, response) => {
      response.statusCode = (request.url === '/2' && flaky.requests.length < 4 ? 500 : 200) as number;
      response.end('{}');
    });
    const provider = { name: 'mailer', window: '48h', hosts: ['127.0.0.1'] };
    const { code } = await ended(
      async (ctx) => {
        await Promise.all([post(ctx, `${flaky.url}/1`), post(ctx, `${flaky.url}/2`)]);
      },
      { provider, retry: { tries: 3, backoff: 1 }, dispatch: 'explicit' },
    );
    expect(code).toBe('ok');
    const keyOf = (path: string) => [
      ...new Set(flaky.requests.filter((r) => r.path === path).map((r) => r.key)),
    ];
    expect(keyOf('/1')).toHaveLength(1);
    expect(keyOf('/2')).toHaveLength(1);
    expect(keyOf('/1')[0]).not.toBe(keyOf('/2')[0]);
  });

  test('a provider without hosts is an error before anything is sent without a key', async () => {
    const from = server.requests.length;
    const provider = { name: 'mailer', window: '48h' };
    const { code, status, result } = await ended((ctx) => post(ctx, '/a'), { provider, via: 'fetch' });
    expect({ code, status }).toEqual({ code: 'CONTRACT_INVALID', status: 'released' });
    expect(result.ok ? '' : result.error.message).toMatch(/hosts/);
    expect(server.requests.length).toBe(from);
  });
});

describe('the line', () => {
  test('an explicit line: what is thrown before it is not landed, and free to run again', async () => {
    const semel = quick();
    let ran = 0;
    const tool = semel.tool({
      ...base,
      dispatch: 'explicit',
      run: async (_args: unknown, ctx) => {
        ran += 1;
        if (ran === 1) throw new TypeError('config is undefined');
        await ctx.dispatch();
        return 'sent';
      },
    });
    expect(await tool.try({})).toMatchObject({ ok: false, error: { code: 'NOT_LANDED', retriable: true } });
    expect(await tool({})).toBe('sent');
  });

  test('ctx.dispatch crosses it: what is thrown after it is in doubt', async () => {
    const run: Run = async (ctx) => {
      await ctx.dispatch();
      throw new TypeError('after');
    };
    expect(await ended(run, { dispatch: 'explicit' })).toMatchObject({ status: 'unknown' });
  });

  test('the first request that is not a read crosses it', async () => {
    const run: Run = async (ctx) => {
      await ctx.fetch(`${server.url}/status/200`);
      throw new Error('before');
    };
    expect(await ended(run, { dispatch: 'explicit' })).toMatchObject({ status: 'released' });
    const late: Run = async (ctx) => {
      await post(ctx, '/status/200');
      throw new Error('after');
    };
    expect(await ended(late, { dispatch: 'explicit' })).toMatchObject({ status: 'unknown' });
  });

  test('returning without a dispatch is an error at once, is never retried, and says what to write', async () => {
    let ran = 0;
    const { code, result, status } = await ended(
      () => {
        ran += 1;
        return 'sent by other means';
      },
      {
        dispatch: 'explicit',
        retry: { tries: 3, backoff: 1 },
        provider: { name: 'mailer', window: '48h', hosts: [] },
      },
    );
    expect(ran).toBe(1);
    expect({ code, status }).toEqual({ code: 'IN_DOUBT', status: 'unknown' });
    expect(result.ok ? '' : result.error.message).toMatch(/without `ctx\.dispatch\(\)`/);
    expect(result.ok ? '' : result.error.message).toMatch(/await ctx\.dispatch\(\)/);
  });

  test('prepared: what `prepare` throws is not landed; its output is stored and sent again by a retry', async () => {
    const semel = quick();
    const sent: string[] = [];
    let prepared = 0;
    const tool = semel.tool({
      ...base,
      name: 'mail',
      identity: ['to'],
      prepare: async (args: { to: string; hint: string }) => {
        prepared += 1;
        if (prepared === 1) throw new Error('the model was overloaded');
        return { text: `Dear ${args.to}, ${args.hint} (draft ${prepared})` };
      },
      run: (_args, ctx) => {
        sent.push(ctx.prepared.text);
        if (sent.length === 1) throw new NotLanded('mailbox was busy');
        return sent.length;
      },
    });
    expect(await tool.try({ to: 'ann', hint: 'a' })).toMatchObject({ error: { code: 'NOT_LANDED' } });
    expect(sent).toEqual([]);
    expect(await tool.try({ to: 'ann', hint: 'b' })).toMatchObject({ error: { code: 'NOT_LANDED' } });
    expect(await tool({ to: 'ann', hint: 'c' })).toBe(2);
    expect(sent).toEqual(['Dear ann, b (draft 2)', 'Dear ann, b (draft 2)']);
    expect(prepared).toBe(2);
  });

  test.each([
    ['a request', (ctx: AttemptContext) => ctx.fetch(`${server.url}/model`, { method: 'POST' })],
    ['a step', (ctx: AttemptContext) => ctx.step('draft', () => undefined)],
    ['`ctx.dispatch`', (ctx: AttemptContext) => ctx.dispatch()],
  ])('prepared with the help of %s, which dispatches: its output is stored all the same', async (_, use) => {
    const semel = quick();
    const sent: unknown[] = [];
    let drafts = 0;
    const tool = semel.tool({
      ...base,
      name: 'mail',
      provider: { name: 'mailer', window: '30d', hosts: [server.host] },
      async prepare(_: object, ctx) {
        await use(ctx as AttemptContext);
        drafts += 1;
        return `draft ${drafts}`;
      },
      run: (_, { key: _key, prepared }) => {
        sent.push(prepared);
        if (sent.length === 1) throw new Error('socket hang up');
        return sent.length;
      },
    });
    expect(await tool.try({})).toMatchObject({ error: { code: 'IN_DOUBT' } });
    expect(await tool({})).toBe(2);
    expect(sent).toEqual(['draft 1', 'draft 1']);
  });

  test('prepared output that cannot be stored is refused before anything is sent', async () => {
    const semel = quick();
    const tool = semel.tool({
      ...base,
      prepare: () => ({ send: () => 1 }),
      run: () => expect.fail('it must not be sent'),
    });
    expect(await tool.try({})).toMatchObject({ error: { code: 'CONTRACT_INVALID' }, ok: false });
    expect((await semel.records.list()).items[0]).toMatchObject({ status: 'released' });
  });

  test('a timeout before the line is not landed', async () => {
    const { code, status } = await ended(() => new Promise(() => undefined), {
      dispatch: 'explicit',
      timeout: '20ms',
    });
    expect({ code, status }).toEqual({ code: 'NOT_LANDED', status: 'released' });
  });

  test('an attempt that was ended while it asked to cross does not cross', async () => {
    const made = rig();
    const { clock, store } = made;
    const crossing = Promise.withResolvers<void>();
    store.before = (method) => (method === 'dispatch' ? crossing.promise : undefined);
    let crossed = false;
    const tool = made.semel.tool({
      ...base,
      dispatch: 'explicit',
      timeout: '5s',
      run: async (_args: unknown, ctx) => {
        await ctx.dispatch();
        crossed = true;
      },
    });
    const call = tool.try({});
    await clock.advance(6_000);
    const result = await clock.until(call);
    crossing.resolve();
    await clock.advance(1_000);
    expect(result).toMatchObject({ ok: false, error: { code: 'NOT_LANDED' } });
    expect(crossed).toBe(false);
  });
});

test('an error of a nested tool does not lend its code to the outer one', async () => {
  const semel = quick();
  const inner = semel.tool({
    ...base,
    name: 'inner',
    run: (_args: unknown) => {
      throw new Error('reset');
    },
  });
  const outer = semel.tool({
    ...base,
    name: 'outer',
    dispatch: 'explicit',
    run: (_args: unknown) => inner({}),
  });
  const result = await outer.try({});
  expect(result).toMatchObject({ ok: false, error: { code: 'NOT_LANDED' } });
});
