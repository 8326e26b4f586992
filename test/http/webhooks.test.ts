// What a receiver of webhooks answers in each state, and what it records.

import { landed, NotLanded, notLanded, Rejected } from 'semel';
import { type ReceiveOptions, receive, stripeEvents } from 'semel/http';
import { describe, expect, test } from 'vitest';
import { gate, quick, rig } from '../library/support.ts';
import { fromStripe, secrets, stripeBody, stripeSignature } from './senders.ts';

interface StripeEvent {
  readonly id: string;
}

const source = () => stripeEvents<StripeEvent>({ secret: secrets.stripe });

function endpoint(
  handler: (event: StripeEvent, ctx: { readonly key: string }) => unknown,
  options: ReceiveOptions<StripeEvent> = {},
) {
  const parts = rig();
  const errors: string[] = [];
  const handle = receive(parts.semel, source(), handler, {
    onError: (error) => void errors.push(error.code),
    ...options,
  });
  const post = async (id = 'evt_1') => {
    const response = await handle(fromStripe(id, { at: parts.clock.now() }));
    const body = (await response.json()) as Record<string, unknown>;
    return { status: response.status, retryAfter: response.headers.get('retry-after'), body };
  };
  return { ...parts, errors, handle, post };
}

test('while one delivery is being handled, another gets 503 and when to come back; then the outcome', async () => {
  const hold = gate();
  let runs = 0;
  const { post, errors } = endpoint(async () => {
    runs += 1;
    await hold.promise;
  });
  const first = post();
  await expect.poll(() => runs).toBe(1);
  const second = await post();
  expect(second).toMatchObject({ status: 503, body: { code: 'IN_FLIGHT', retriable: true } });
  expect(Number(second.retryAfter)).toBeGreaterThanOrEqual(1);
  hold.resolve();
  expect(await first).toMatchObject({ status: 200, body: { status: 'executed' } });
  expect(await post()).toMatchObject({ status: 200, body: { status: 'replayed' } });
  expect(runs).toBe(1);
  expect(errors).toEqual([]);
});

test('2xx only after the outcome is durable: what is done and not recorded is 503, and replayed later', async () => {
  let runs = 0;
  const { post, store, clock, errors } = endpoint(() => {
    runs += 1;
    store.break('settle');
  });
  expect(await clock.until(post())).toMatchObject({ status: 503, body: { code: 'UNRECORDED' } });
  expect(errors).toEqual(['UNRECORDED']);
  store.repair();
  await clock.advance(60_000);
  expect(await post()).toMatchObject({ status: 200, body: { status: 'replayed' } });
  expect(runs).toBe(1);
});

test('nothing is handled while the ledger is down', async () => {
  let runs = 0;
  const { post, store, clock } = endpoint(() => {
    runs += 1;
  });
  store.break();
  expect(await clock.until(post())).toMatchObject({ status: 503, body: { code: 'STORE_UNAVAILABLE' } });
  expect(runs).toBe(0);
  store.repair();
  await clock.advance(10_000);
  expect(await clock.until(post())).toMatchObject({ status: 200 });
});

test('a handler that threw may have had its effect: 503 without repeating it, until somebody decides', async () => {
  let runs = 0;
  const { post, semel, errors } = endpoint(() => {
    runs += 1;
    if (runs === 1) throw new Error('password=hunter2 at db.internal');
  });
  const first = await post();
  expect(first).toMatchObject({ status: 503, retryAfter: '60', body: { code: 'IN_DOUBT' } });
  // A stranger reads neither what was thrown nor where.
  expect(JSON.stringify(first.body)).not.toMatch(/hunter2|internal/);
  expect(await post()).toMatchObject({ status: 503, body: { code: 'IN_DOUBT' } });
  expect(runs).toBe(1);
  expect(errors).toEqual(['IN_DOUBT', 'IN_DOUBT']);
  const { ref } = first.body as { ref: string };
  await semel.doubts.resolve(ref, 'landed');
  expect(await post()).toMatchObject({ status: 200, body: { status: 'replayed' } });
  expect(runs).toBe(1);
});

test('a handler that returned a generator has not run: 503, and it is in doubt', async () => {
  const handled: string[] = [];
  const { post } = endpoint(function* ({ id }) {
    yield handled.push(id);
  });
  for (const _ of [1, 2]) expect(await post()).toMatchObject({ status: 503, body: { code: 'IN_DOUBT' } });
  expect(handled).toEqual([]);
});

test('a handler that reports "not landed" is answered with 503, and the next delivery runs it', async () => {
  let runs = 0;
  const { post } = endpoint(() => {
    runs += 1;
    if (runs === 1) throw new NotLanded('the database is down');
  });
  expect(await post()).toMatchObject({ status: 503, retryAfter: '1', body: { code: 'NOT_LANDED' } });
  expect(await post()).toMatchObject({ status: 200, body: { status: 'executed' } });
});

test('a refusal for good is 500, and the record answers until its window is over', async () => {
  let runs = 0;
  const { post, clock } = endpoint(() => {
    runs += 1;
    throw new Rejected('no such customer');
  });
  expect(await post()).toMatchObject({ status: 500, body: { code: 'FAILED', retriable: false } });
  expect(await post()).toMatchObject({ status: 500 });
  expect(runs).toBe(1);
  await clock.advance(3_600_001);
  expect(await post()).toMatchObject({ status: 500 });
  expect(runs).toBe(2);
});

test('with `verify`, the next delivery decides the doubt by itself', async () => {
  const booked: string[] = [];
  let isLost = true;
  const { post, clock } = endpoint(
    ({ id }) => {
      if (id === 'evt_1') booked.push(id);
      if (isLost) throw new Error('the answer was lost');
      booked.push(id);
    },
    { verify: ({ id }) => (booked.includes(id) ? landed(undefined) : notLanded()) },
  );
  expect(await post('evt_1')).toMatchObject({ status: 200 });
  expect(await post('evt_2')).toMatchObject({ status: 503, body: { code: 'IN_DOUBT' } });
  isLost = false;
  await clock.advance(61_000);
  expect(await post('evt_2')).toMatchObject({ status: 200, body: { status: 'executed' } });
  expect(booked).toEqual(['evt_1', 'evt_2']);
});

test('with a provider that knows the key, the next delivery runs it again under the same key', async () => {
  const keys: string[] = [];
  const provider = { name: 'bank', window: '90d', sentBy: 'tool' } as const;
  const { post } = endpoint(
    (_event, { key }) => {
      keys.push(key);
      if (keys.length === 1) throw new Error('timeout');
    },
    { provider },
  );
  expect(await post()).toMatchObject({ status: 503 });
  expect(await post()).toMatchObject({ status: 200, body: { status: 'executed' } });
  expect(keys).toHaveLength(2);
  expect(new Set(keys).size).toBe(1);
});

describe('how long events are known', () => {
  test('records outlive the retries of their sender', async () => {
    let runs = 0;
    const { post, clock } = endpoint(() => {
      runs += 1;
    });
    await post();
    await clock.advance(29 * 86_400_000);
    expect(await post()).toMatchObject({ status: 200, body: { status: 'replayed' } });
    expect(runs).toBe(1);
  });

  test('less than the sender repeats itself is refused at construction', () => {
    const make = (keepFor: '29d' | '30d') => receive(quick(), source(), () => undefined, { keepFor });
    // Stripe itself repeats for three days; a person may for thirty.
    expect(() => make('29d')).toThrow(/kept for 29d, but stripe repeats itself for 30d/);
    expect(() => make('30d')).not.toThrow();
    // A program that knows better says so.
    const known = { ...source(), retriesFor: '3d' } as const;
    expect(() => receive(quick(), known, () => undefined, { keepFor: '4d' })).not.toThrow();
  });
});

describe('what does not belong here', () => {
  test('another method is 405', async () => {
    const { handle } = endpoint(() => undefined);
    const response = await handle(new Request('https://shop.example'));
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('POST');
  });

  test('a body beyond the limit is 413, declared or not, and is not read to its end', async () => {
    const { handle } = endpoint(() => undefined, { maxBytes: 1_000 });
    const declared = new Request('https://shop.example', {
      method: 'POST',
      body: 'x'.repeat(2_000),
      headers: { 'content-length': '2000' },
    });
    expect((await handle(declared)).status).toBe(413);
    let pulled = 0;
    const body = new ReadableStream({
      pull(controller) {
        pulled += 1;
        controller.enqueue(new Uint8Array(600));
        if (pulled === 50) controller.close();
      },
    });
    const endless = new Request('https://shop.example', { method: 'POST', body, duplex: 'half' } as never);
    expect((await handle(endless)).status).toBe(413);
    expect(pulled).toBeLessThan(5);
  });

  test('a body that does not come is 408', async () => {
    const { handle, store } = endpoint(() => undefined, { bodyTimeout: '20ms' });
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(1)) });
    const slow = new Request('https://shop.example', { method: 'POST', body, duplex: 'half' } as never);
    expect((await handle(slow)).status).toBe(408);
    expect(store.calls).not.toContain('claim');
  });

  test('a body that somebody has read before is an error of the program', async () => {
    const { handle, errors, clock } = endpoint(() => undefined);
    const request = fromStripe('evt_1', { at: clock.now() });
    await request.text();
    expect((await handle(request)).status).toBe(500);
    expect(errors).toEqual(['CONTRACT_INVALID']);
  });

  test('nesting that would overflow a reader, and members named __proto__, do no harm', async () => {
    const { handle, clock } = endpoint(() => undefined);
    const at = clock.now();
    const deep = `{"id":"evt_deep","x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    const proto =
      '{"id":"evt_proto","__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}';
    for (const body of [deep, proto]) {
      const headers = { 'stripe-signature': stripeSignature(body, { at }) };
      const request = new Request('https://shop.example', { method: 'POST', body, headers });
      expect([200, 400]).toContain((await handle(request)).status);
    }
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

test('a source of your own is a small object', async () => {
  const semel = quick();
  const seen: unknown[] = [];
  const handle = receive(
    semel,
    {
      name: 'acme',
      retriesFor: '1d',
      verify: ({ headers }) => headers.get('x-token') === 'shared',
      id: ({ headers }) => headers.get('x-id'),
    },
    (event) => void seen.push(event),
  );
  const send = (token: string) =>
    handle(
      new Request('https://shop.example', {
        method: 'POST',
        body: '{"a":1}',
        headers: { 'x-token': token, 'x-id': 'one' },
      }),
    );
  expect((await send('wrong')).status).toBe(401);
  expect((await send('shared')).status).toBe(200);
  expect((await send('shared')).status).toBe(200);
  expect(seen).toEqual([{ a: 1 }]);
});

test('a source that throws or answers something else lets nobody in', async () => {
  for (const verify of [() => undefined, () => 1, () => 'true', () => Promise.reject(new Error('no key'))]) {
    let runs = 0;
    const handle = receive(
      quick(),
      { name: 'acme', retriesFor: '1d', verify: verify as never, id: () => 'one' },
      () => {
        runs += 1;
      },
      { onError: () => undefined },
    );
    const response = await handle(new Request('https://shop.example', { method: 'POST', body: '{}' }));
    expect([401, 500]).toContain(response.status);
    expect(runs).toBe(0);
  }
});

test('two receivers under one name are warned of, and with names of their own both get the event', async () => {
  const { semel, warnings, clock } = rig();
  const runs: string[] = [];
  const books = receive(semel, source(), () => void runs.push('books'), { name: 'webhook.books' });
  const mails = receive(semel, source(), () => void runs.push('mails'), { name: 'webhook.mails' });
  for (const handle of [books, mails]) await handle(fromStripe('evt_1', { at: clock.now() }));
  expect(runs).toEqual(['books', 'mails']);
  expect(warnings.join()).not.toMatch(/Two receivers/);
  receive(semel, source(), () => undefined, { name: 'webhook.mails' });
  expect(warnings.join()).toMatch(/Two receivers are named webhook.mails/);
});

test('the event is stored for a sweep, unless it is redacted', async () => {
  for (const redact of [false, true]) {
    const { post, semel } = endpoint(() => undefined, { redact });
    await post();
    const { items } = await semel.records.list();
    expect(JSON.stringify(items[0]?.args ?? null).includes('payment_intent')).toBe(!redact);
  }
  expect(stripeBody('evt_1')).toContain('payment_intent');
});
