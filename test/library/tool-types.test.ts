// What the compiler knows of a tool. `npm run types` checks this file; the runner checks what is visible.

import { type } from 'arktype';
import {
  createSemel,
  day,
  isSemelError,
  landed,
  notLanded,
  type Receipt,
  type Result,
  SemelError,
  unsure,
} from 'semel';
import * as v from 'valibot';
import { describe, expect, expectTypeOf, test } from 'vitest';
import * as z from 'zod';
import { quick } from './support.ts';

const semel = createSemel({ store: 'memory:', namespace: 'test', onWarning: () => undefined });
const base = { effect: 'write-non-idempotent', per: 'ever' } as const;
interface Refund {
  paymentId: string;
  amount: { minor: number; currency?: string };
  reason?: string;
  lines?: { sku: string }[];
}
const refunded = (args: Refund) => ({ id: `re_${args.paymentId}`, at: new Date(0) });

describe('inference', () => {
  test('args and result from the annotation of run', () => {
    const refund = semel.tool({ ...base, name: 'refund', run: refunded });
    expectTypeOf(refund).parameter(0).toEqualTypeOf<Refund>();
    expectTypeOf(refund).returns.resolves.toEqualTypeOf<{ id: string; at: Date }>();
    expectTypeOf(refund.try).returns.resolves.toEqualTypeOf<Result<{ id: string; at: Date }>>();
    // @ts-expect-error an amount is needed
    void (() => refund({ paymentId: 'p' }));
    // @ts-expect-error a turn is text
    void (() => refund({ paymentId: 'p', amount: { minor: 1 } }, { turn: 1 }));
  });

  test('an async run, and one without args', () => {
    const ping = semel.tool({ ...base, name: 'ping', run: async () => 'pong' as const });
    expectTypeOf(ping).returns.resolves.toEqualTypeOf<'pong'>();
  });

  test('`verify` gets the args that `run` before it declares, also where `run` uses ctx', () => {
    semel.tool({
      ...base,
      name: 'verified',
      run: (args: Refund, { key }) => `${args.paymentId} ${key}`,
      verify: (args) => {
        expectTypeOf(args).toEqualTypeOf<Refund>();
        return landed('done');
      },
    });
  });

  test('a result is discriminated by `ok`', async () => {
    const refund = semel.tool({ ...base, name: 'refund2', run: refunded });
    const result = await refund.try({ paymentId: 'p', amount: { minor: 1 } });
    if (result.ok) expectTypeOf(result.value).toEqualTypeOf<{ id: string; at: Date }>();
    else expectTypeOf(result.error).toEqualTypeOf<SemelError>();
    expectTypeOf(result.receipt).toEqualTypeOf<Receipt>();
  });

  test('args from a zod schema: callers write its input, run gets its output', () => {
    const input = z.object({
      to: z.string(),
      at: z.string().transform((text) => new Date(text)),
      n: z.number().default(1),
    });
    const tool = semel.tool({
      ...base,
      name: 'zod',
      input,
      identity: ['to', 'n'],
      run: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ to: string; at: Date; n: number }>();
        return args.n;
      },
    });
    expectTypeOf(tool).parameter(0).toEqualTypeOf<{ to: string; at: string; n?: number | undefined }>();
    expectTypeOf(tool).returns.resolves.toEqualTypeOf<number>();
  });

  test('args from valibot and arktype schemas', () => {
    const withValibot = semel.tool({
      ...base,
      name: 'valibot',
      input: v.object({ to: v.string(), n: v.optional(v.number(), 1) }),
      identity: ['to'],
      run: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ to: string; n: number }>();
        return args.to;
      },
    });
    expectTypeOf(withValibot).parameter(0).toEqualTypeOf<{ to: string; n?: number | undefined }>();
    const withArktype = semel.tool({
      ...base,
      name: 'arktype',
      input: type({ to: 'string', 'n?': 'number' }),
      identity: ['to'],
      run: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ to: string; n?: number }>();
        return args.to;
      },
    });
    expectTypeOf(withArktype).parameter(0).toEqualTypeOf<{ to: string; n?: number }>();
  });

  test('paths of identity, content, volatile, redact and normalize', () => {
    void (() =>
      semel.tool({
        ...base,
        name: 'paths',
        identity: ['paymentId', 'amount.minor', 'amount.currency'],
        content: ['reason'],
        volatile: ['lines'],
        redact: ['reason'],
        normalize: { paymentId: 'trim', 'amount.currency': (value) => String(value).toUpperCase() },
        run: refunded,
      }));
    // @ts-expect-error there is no such field
    void (() => semel.tool({ ...base, name: 'x', identity: ['paymentID'], run: refunded }));
    // @ts-expect-error there is no such field inside
    void (() => semel.tool({ ...base, name: 'x', identity: ['amount.major'], run: refunded }));
    // @ts-expect-error a text has no fields
    void (() => semel.tool({ ...base, name: 'x', content: ['reason.length'], run: refunded }));
    // @ts-expect-error there is no such normaliser
    void (() => semel.tool({ ...base, name: 'x', normalize: { paymentId: 'phone' }, run: refunded }));
    // @ts-expect-error there is no such field
    void (() => semel.tool({ ...base, name: 'x', normalize: { payment: 'trim' }, run: refunded }));
    const input = z.object({ amount: z.object({ minor: z.number() }) });
    // @ts-expect-error what is remembered needs `per`
    expect(() => semel.tool({ name: 'p', effect: 'irreversible', run: () => 1 })).toThrow(/needs `per`/);
    // @ts-expect-error there is no such field in the schema
    void (() => semel.tool({ ...base, name: 'x', input, identity: ['amount.major'], run: () => 1 }));
  });

  test("`ifBusy: 'skip'` may give nothing", () => {
    const skipping = semel.tool({ ...base, name: 'skipping', ifBusy: 'skip', run: refunded });
    expectTypeOf(skipping).returns.resolves.toEqualTypeOf<{ id: string; at: Date } | undefined>();
    const failing = semel.tool({ ...base, name: 'failing', ifBusy: 'fail', run: refunded });
    expectTypeOf(failing).returns.resolves.toEqualTypeOf<{ id: string; at: Date }>();
  });

  test('what is prepared flows into ctx.prepared', () => {
    semel.tool({
      ...base,
      name: 'prepared',
      prepare: async (args: Refund) => ({ text: args.paymentId }),
      run: (_args: Refund, ctx) => {
        expectTypeOf(ctx.prepared).toEqualTypeOf<{ text: string }>();
        return ctx.prepared.text.length;
      },
    });
    semel.tool({
      ...base,
      name: 'unprepared',
      run: (_args: Refund, ctx) => {
        expectTypeOf(ctx.prepared).toEqualTypeOf<undefined>();
        expectTypeOf(ctx.signal).toEqualTypeOf<AbortSignal>();
        expectTypeOf(ctx.fetch).toEqualTypeOf<typeof fetch>();
      },
    });
  });

  test('verify answers with what run returns', () => {
    semel.tool({
      ...base,
      name: 'verified',
      run: refunded,
      verify: async (args, ctx) => {
        expectTypeOf(args).toEqualTypeOf<Refund>();
        expectTypeOf(ctx.remoteRef).toEqualTypeOf<string | undefined>();
        if (args.paymentId === 'x') return notLanded();
        return args.paymentId === 'y' ? unsure('why') : landed({ id: 'r', at: new Date() });
      },
    });
    // @ts-expect-error that is not what run returns
    void (() => semel.tool({ ...base, name: 'x', run: refunded, verify: () => landed('done') }));
    // @ts-expect-error that is no answer
    void (() => semel.tool({ ...base, name: 'x', run: refunded, verify: () => true }));
  });

  test('onReplay gets and gives what run returns', () => {
    semel.tool({
      ...base,
      name: 'replaying',
      run: refunded,
      onReplay: ({ args, stored }) => {
        expectTypeOf(args).toEqualTypeOf<Refund>();
        expectTypeOf(stored).toEqualTypeOf<{ id: string; at: Date } | undefined>();
        return stored ?? refunded(args);
      },
    });
    // @ts-expect-error that is not what run returns
    void (() => semel.tool({ ...base, name: 'x', run: refunded, onReplay: () => 'done' }));
  });

  test('once, begin and errors', async () => {
    const once = semel.once(
      'typed',
      { lead: 1 },
      { per: day('Europe/Paris') },
      async ({ key }) => key.length,
    );
    expectTypeOf(once).resolves.toEqualTypeOf<number>();
    const refund = semel.tool({ ...base, name: 'refund3', run: refunded });
    const begun = await semel.begin(refund, { paymentId: 'p', amount: { minor: 1 } });
    if (begun.execute) {
      expectTypeOf(begun.attempt.succeed).parameter(0).toEqualTypeOf<{ id: string; at: Date }>();
      await begun.attempt.release();
    }
    const error = new SemelError('IN_DOUBT', 'x.');
    expectTypeOf(error.receipt).toEqualTypeOf<Receipt | undefined>();
    if (isSemelError(error, 'IN_DOUBT')) expectTypeOf(error.retryAfterMs).toEqualTypeOf<number | undefined>();
    // @ts-expect-error the list of codes is closed
    void (() => new SemelError('OOPS', 'x.'));
    // @ts-expect-error a duration has a unit
    void (() => semel.tool({ ...base, name: 'x', window: '15 minutes', run: refunded }));
    // @ts-expect-error there is no such event
    void (() => semel.on('exploded', () => undefined));
  });
});

describe('what is visible', () => {
  test('only name, effect, per and run are needed', async () => {
    const own = quick();
    const tool = own.tool({
      name: 'post',
      effect: 'irreversible',
      per: 'ever',
      run: (args: { id: number }) => args.id,
    });
    expect(await tool({ id: 7 })).toBe(7);
    expect(tool.name).toBe('post');
    expect(tool.contract).toMatchObject({
      name: 'post',
      effect: 'irreversible',
      version: '1',
      leaseMs: 60_000,
    });
    const read = own.tool({ name: 'search', effect: 'read', run: () => 1 });
    const upsert = own.tool({ name: 'set', effect: 'write-idempotent', run: () => 1 });
    expect([await read({}), await upsert({})]).toEqual([1, 1]);
  });

  test('description, input and contract are on the function', () => {
    const input = z.object({ id: z.number() });
    const tool = quick().tool({
      ...base,
      name: 'post',
      description: 'Posts it.',
      version: '2.1',
      input,
      run: () => 1,
    });
    expect(tool.description).toBe('Posts it.');
    expect(tool.input).toBe(input);
    expect(tool.contract.version).toBe('2.1');
    expectTypeOf(tool.description).toEqualTypeOf<string | undefined>();
  });

  test('the thrown error is a SemelError with code, both parts, and the receipt', async () => {
    const tool = quick().tool({
      ...base,
      name: 'post',
      run: (_args: object) => {
        throw new Error('reset');
      },
    });
    const error = await tool({}).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(SemelError);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      name: 'SemelError',
      code: 'IN_DOUBT',
      receipt: { contract: 'post', executed: true, attempt: 1, key: expect.stringMatching(/^post\/-\//) },
    });
    expect(error.stack).toContain('IN_DOUBT'.length > 0 ? 'may have landed' : '');
  });

  test('`.try` never throws, whatever is wrong', async () => {
    const tool = quick().tool({ ...base, name: 'post', run: (args: { f?: unknown }) => args });
    for (const args of [undefined, null, { f: () => 1 }, 7])
      expect(typeof (await tool.try(args as never)).ok).toBe('boolean');
    expect(await tool.try({}, { key: '' })).toMatchObject({ ok: false });
  });

  test('identity fields that look re-worded or fresh are warned of once', async () => {
    const warnings: string[] = [];
    const own = quick({ onWarning: (message) => warnings.push(message) });
    own.tool({ ...base, name: 'a', identity: ['reason'], run: (_args: { reason: string }) => 1 });
    const tool = own.tool({
      ...base,
      name: 'b',
      run: (_args: { id: number; timestamp: number; traceId: string }) => 1,
    });
    await tool({ id: 1, timestamp: 1, traceId: 'x' });
    await tool({ id: 2, timestamp: 2, traceId: 'y' });
    const about = warnings.filter((message) => message.includes('part of the identity'));
    expect(about.map((message) => message.split(' is part')[0])).toEqual([
      'a: `reason`',
      'b: `timestamp`',
      'b: `traceId`',
    ]);
  });

  test('a ledger in memory says once that it forgets', async () => {
    const warnings: string[] = [];
    const own = quick({ onWarning: (message) => warnings.push(message) });
    await own.once('a', 1, () => 1);
    await own.once('a', 2, () => 1);
    expect(warnings).toEqual([
      expect.stringMatching(/in memory: other processes do not see it, and it is lost/),
    ]);
  });
});

test('a value that no ledger can give back needs a word about replays', () => {
  const fetched = async () => new Response('x');
  // @ts-expect-error a Response cannot be stored
  void (() => semel.tool({ ...base, name: 'r1', run: fetched }));
  // @ts-expect-error a function cannot be stored
  void (() => semel.tool({ ...base, name: 'r2', run: () => () => 1 }));
  // @ts-expect-error a stream cannot be stored
  void (() => semel.tool({ ...base, name: 'r3', run: (): ReadableStream | null => null }));
  semel.tool({ ...base, name: 'r4', result: 'reference', run: fetched });
  semel.tool({ ...base, name: 'r5', onReplay: () => new Response('y'), run: fetched });
  semel.tool({ name: 'r6', effect: 'read', run: fetched });
  semel.tool({ ...base, name: 'r7', run: (): unknown => 1 });
});
