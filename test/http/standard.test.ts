// What only the web-standard form shows: the client's own signal, options, and what goes to whom.

import { landed, NotLanded, notLanded } from 'semel';
import { type IdempotentOptions, idempotent, receive, stripeEvents } from 'semel/http';
import { expect, test } from 'vitest';
import { gate, quick, rig } from '../library/support.ts';
import { fromStripe, secrets } from './senders.ts';

const base = { name: 'orders.create', caller: 'anonymous' } as const;

function order(key: string, init: RequestInit = {}, path = '/orders'): Request {
  const headers = { 'idempotency-key': key };
  return new Request(`https://shop.example${path}`, { method: 'POST', body: '{}', headers, ...init });
}

test("the client's signal does not reach the handler", async () => {
  const started = gate();
  const hold = gate();
  let signal: AbortSignal | undefined;
  const handle = idempotent(quick(), base, async (request) => {
    signal = request.signal;
    started.resolve();
    await hold.promise;
    return new Response('done');
  });
  const client = new AbortController();
  const answer = handle(order('k', { signal: client.signal }));
  await started.promise;
  client.abort();
  expect(signal?.aborted).toBe(false);
  hold.resolve();
  expect(await (await answer).text()).toBe('done');
});

test('method and path are part of the key, unless a route is named', async () => {
  let runs = 0;
  const make = (options: Partial<IdempotentOptions<Request>>) =>
    idempotent(quick(), { ...base, ...options }, () => {
      runs += 1;
      return new Response();
    });
  const each = make({});
  for (const path of ['/orders', '/refunds']) await each(order('k', {}, path));
  await each(order('k', { method: 'PUT' }));
  expect(runs).toBe(3);
  const all = make({ route: 'shop' });
  for (const path of ['/orders', '/orders/']) await all(order('k', {}, path));
  expect(runs).toBe(4);
});

test('a method that changes nothing is refused, and nothing is run', async () => {
  const handle = idempotent(quick(), base, () => new Response());
  const response = await handle(new Request('https://shop.example/orders'));
  expect(response.status).toBe(405);
});

test('the id of a caller is anything but empty, and half a character is not another', async () => {
  let runs = 0;
  const handle = idempotent(
    quick(),
    { name: 'orders.create', caller: (request) => JSON.parse(request.headers.get('x-user') ?? 'null') },
    () => {
      runs += 1;
      return new Response();
    },
  );
  const status = async (user: unknown) =>
    (await handle(order('k', { headers: { 'idempotency-key': 'k', 'x-user': JSON.stringify(user) } })))
      .status;
  for (const user of [null, '', 7, {}, '\ud800', '\udfff']) expect(await status(user)).toBe(401);
  expect(runs).toBe(0);
  for (const user of ['ann', 'Ann', 'ann ', 'anonymous', '__proto__']) expect(await status(user)).toBe(200);
  expect(runs).toBe(5);
});

test('the caller must be named', () => {
  const make = (options: object) => () => idempotent(quick(), options as never, () => new Response());
  expect(make({ name: 'orders.create' })).toThrow(/whose keys/);
  expect(make({ ...base, calller: 1 })).toThrow(/calller/);
  expect(make({ ...base, headers: ['Set-Cookie'] })).toThrow(/never replayed/);
});

test('a fingerprint of your own decides what is another payload', async () => {
  const handle = idempotent(
    quick(),
    { ...base, fingerprint: (request) => ({ type: request.headers.get('content-type') }) },
    () => new Response('one'),
  );
  expect((await handle(order('k', { body: 'a' }))).status).toBe(200);
  expect((await handle(order('k', { body: 'b' }))).headers.get('idempotent-replayed')).toBe('true');
});

test('`verify` gives the response that the first attempt would have given', async () => {
  const { semel } = rig();
  let runs = 0;
  const handle = idempotent(
    semel,
    {
      ...base,
      onError: () => undefined,
      verify: ({ key, route, method }) =>
        landed(Response.json({ found: [method, route, key] }, { status: 201 })),
    },
    () => {
      runs += 1;
      throw new Error('the answer was lost');
    },
  );
  const first = await handle(order('k'));
  expect([first.status, await first.json()]).toEqual([201, { found: ['POST', '/orders', 'k'] }]);
  expect((await handle(order('k'))).status).toBe(201);
  expect(runs).toBe(1);
});

test('`verify` is told whose key it is: the same key of two callers is two effects', async () => {
  const { semel } = rig();
  const made = new Map<string, string>();
  const handle = idempotent(
    semel,
    {
      name: 'orders.create',
      caller: (request) => request.headers.get('x-user'),
      onError: () => undefined,
      verify({ caller, key }) {
        const secret = made.get(`${caller} ${key}`);
        return secret === undefined ? notLanded() : landed(Response.json({ secret }));
      },
    },
    (request) => {
      const user = request.headers.get('x-user');
      if (user === 'ann') made.set('ann k', 'of ann');
      throw new Error('the answer was lost');
    },
  );
  const asked = async (user: string) => {
    const response = await handle(order('k', { headers: { 'idempotency-key': 'k', 'x-user': user } }));
    return [response.status, await response.text()] as const;
  };
  expect(await asked('ann')).toEqual([200, '{"secret":"of ann"}']);
  // "Not landed" is believed later: what bob sent may still be on its way.
  expect(await asked('bob')).toEqual([500, expect.stringContaining('IN_DOUBT')]);
});

test('a `verify` that was added since asks nothing about records without their caller', async () => {
  const { semel } = rig();
  const terms = { ...base, onError: () => undefined };
  const lost = () => {
    throw new Error('the answer was lost');
  };
  expect((await idempotent(semel, terms, lost)(order('k'))).status).toBe(500);
  const handle = idempotent(semel, { ...terms, verify: () => landed(Response.json('of whom?')) }, lost);
  const response = await handle(order('k'));
  expect([response.status, await response.json()]).toEqual([
    409,
    expect.objectContaining({ code: 'IN_DOUBT' }),
  ]);
});

test('a sweep does not run a request that is not there', async () => {
  const { semel } = rig();
  let runs = 0;
  const handle = idempotent(semel, { ...base, onError: () => undefined }, () => {
    runs += 1;
    throw new Error('lost');
  });
  await handle(order('k'));
  expect(await semel.doubts.sweep()).toMatchObject({ open: 1 });
  expect(runs).toBe(1);
});

test('a transaction that is rolled back leaves the key free, and needs a store that has transactions', async () => {
  const errors: string[] = [];
  const handle = receive(quick(), stripeEvents({ secret: secrets.stripe }), () => undefined, {
    transaction: (work) => work({}),
    onError: ({ code }) => void errors.push(code),
  });
  expect((await handle(fromStripe('evt_1'))).status).toBe(503);
  expect(errors).toEqual(['STORE_UNSAFE']);
});

test('after `keepFor` the key is new', async () => {
  const { semel, clock } = rig();
  let runs = 0;
  const handle = idempotent(semel, base, () => {
    runs += 1;
    if (runs === 1) throw new NotLanded('later');
    return new Response(String(runs));
  });
  expect((await handle(order('k'))).status).toBe(503);
  expect(await (await handle(order('k'))).text()).toBe('2');
  await clock.advance(23 * 3_600_000);
  expect(await (await handle(order('k'))).text()).toBe('2');
  await clock.advance(2 * 3_600_000);
  expect(await (await handle(order('k'))).text()).toBe('3');
});
