// Idempotency-Key on each framework, through real HTTP.

import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { NotLanded, Rejected } from 'semel';
import { idempotentExpress } from 'semel/http';
import { afterEach, describe, expect, test } from 'vitest';
import { gate, rig } from '../library/support.ts';
import { type Framework, frameworks, type Running, type Terms, type Work } from './frameworks.ts';

const open: Running[] = [];

afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

async function api(framework: Framework, work: Work, terms: Terms = {}) {
  const parts = rig();
  const errors: string[] = [];
  const running = await framework.start(
    parts.semel,
    { onError: ({ code }) => void errors.push(code), ...terms },
    work,
  );
  open.push(running);
  const post = async (
    key: string | undefined,
    order: unknown = { item: 'lamp' },
    { user = 'ann', query = '', raw }: { user?: string | null; query?: string; raw?: string } = {},
  ) => {
    const response = await fetch(`${running.url}/orders${query}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(key === undefined ? {} : { 'idempotency-key': key }),
        ...(user === null ? {} : { 'x-user': user }),
      },
      body: raw ?? JSON.stringify(order),
    });
    const text = await response.text();
    const isReplay = response.headers.get('idempotent-replayed') === 'true';
    const code = text.startsWith('{') ? (JSON.parse(text) as { code?: string }).code : undefined;
    return { status: response.status, headers: response.headers, text, isReplay, code };
  };
  return { ...parts, ...running, errors, post };
}

/** Each order gets the next number. */
function counter() {
  const orders: unknown[] = [];
  const work: Work = (order) => {
    orders.push(order);
    return { body: JSON.stringify({ number: orders.length }) };
  };
  return { orders, work };
}

test('a handler that throws without a key fails its request, not the process', async () => {
  const { semel } = rig();
  const thrown = new Error('no lamp');
  const reported: unknown[] = [];
  const options = { name: 'orders', caller: 'anonymous', required: false } as const;
  const handler = idempotentExpress(
    semel,
    { ...options, onError: ({ cause }) => void reported.push(cause) },
    async () => {
      throw thrown;
    },
  );
  // Without Express there is nobody to pass the error on to.
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () =>
    new Promise<void>((resolve) => void server.close(() => resolve()).closeAllConnections());
  open.push({ url: '', close });
  const { port } = server.address() as AddressInfo;
  // Otherwise it is not answered at all.
  const signal = AbortSignal.timeout(20_000);
  const response = await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: '{}', signal });
  expect([response.status, await response.text()]).toEqual([500, expect.not.stringContaining('lamp')]);
  expect(reported).toEqual([thrown]);
  const passed: unknown[] = [];
  const request = Object.assign(new IncomingMessage(new Socket()), { method: 'POST', body: {} });
  await handler(request, new ServerResponse(request), (error) => void passed.push(error));
  expect(passed).toEqual([thrown]);
});

describe.each(frameworks)('$name', (framework) => {
  test('a second request with the key gets the first response, and says so', async () => {
    const { orders, work } = counter();
    const { post } = await api(framework, work);
    const first = await post('8e03978e-40d5-43dd-bc93-6894a57f9324');
    expect(first).toMatchObject({ status: 201, text: '{"number":1}', isReplay: false });
    const second = await post('8e03978e-40d5-43dd-bc93-6894a57f9324');
    expect(second).toMatchObject({ status: 201, text: '{"number":1}', isReplay: true });
    expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'));
    // What other parts of the server add is theirs, on every response.
    expect(second.headers.get('x-served-by')).toBe(first.headers.get('x-served-by'));
    expect(await post('another')).toMatchObject({ text: '{"number":2}' });
    expect(orders).toEqual([{ item: 'lamp' }, { item: 'lamp' }]);
  });

  test('quoted and bare keys are the same', async () => {
    const { orders, work } = counter();
    const { post } = await api(framework, work);
    await post('"k-1"');
    expect(await post('k-1')).toMatchObject({ isReplay: true });
    expect(orders).toHaveLength(1);
  });

  test('a missing key is 400; one that is not a key too', async () => {
    const { orders, work } = counter();
    const { post } = await api(framework, work);
    for (const key of [
      undefined,
      '',
      '""',
      '"a',
      'a"b',
      'a b',
      'a, b',
      '"a", "b"',
      '"a, b"',
      'a;b',
      'é',
      'x'.repeat(256),
    ]) {
      const refused = await post(key);
      expect(refused, String(key)).toMatchObject({ status: 400, code: 'INVALID_ARGS' });
      expect(refused.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    }
    expect(orders).toEqual([]);
    expect(await post('x'.repeat(255))).toMatchObject({ status: 201 });
  });

  test('where it is not required, a request without one runs every time', async () => {
    const { orders, work } = counter();
    const { post } = await api(framework, work, { required: false });
    expect(await post(undefined)).toMatchObject({ status: 201 });
    expect(await post(undefined)).toMatchObject({ status: 201, text: '{"number":2}' });
    expect(await post('a b')).toMatchObject({ status: 400 });
    // A client that meant to send one is not left without it.
    expect(await post('')).toMatchObject({ status: 400 });
    await post('k');
    await post('k');
    expect(orders).toHaveLength(3);
  });

  test('two headers are refused, whatever they say', async () => {
    const { orders, work } = counter();
    const { url } = await api(framework, work);
    for (const [one, other] of [
      ['a', 'b'],
      ['a', 'a'],
      ['"a', 'b"'],
      ['a', ''],
    ] as const) {
      const body = '{}';
      const request = `POST /orders HTTP/1.1\r\nhost: x\r\nx-user: ann\r\ncontent-type: application/json\r\nidempotency-key: ${one}\r\nIdempotency-Key: ${other}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`;
      expect(await exchange(url, request), `${one} | ${other}`).toMatch(/^HTTP\/1.1 400/);
    }
    expect(orders).toEqual([]);
  });

  test('while the first is processed, the second is 409 and when to come back', async () => {
    const hold = gate();
    let runs = 0;
    const { post } = await api(framework, async () => {
      runs += 1;
      await hold.promise;
      return { body: '{"done":true}' };
    });
    const first = post('k');
    await expect.poll(() => runs).toBe(1);
    const second = await post('k');
    expect(second).toMatchObject({ status: 409, code: 'IN_FLIGHT' });
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    // Another payload is a mistake at once.
    expect(await post('k', { item: 'chair' })).toMatchObject({ status: 422, code: 'KEY_CONFLICT' });
    hold.resolve();
    expect(await first).toMatchObject({ status: 201, isReplay: false });
    expect(runs).toBe(1);
  });

  test('another body or query under the key is 422, before and after', async () => {
    const { orders, work } = counter();
    const { post } = await api(framework, work);
    await post('k', { item: 'lamp' });
    expect(await post('k', { item: 'chair' })).toMatchObject({ status: 422, code: 'KEY_CONFLICT' });
    expect(await post('k', { item: 'lamp' }, { query: '?express=1' })).toMatchObject({ status: 422 });
    expect(await post('k', { item: 'lamp' })).toMatchObject({ status: 201, isReplay: true });
    expect(orders).toHaveLength(1);
  });

  test('a key belongs to its caller; a request without a caller gets 401', async () => {
    const { orders, work } = counter();
    const { post } = await api(framework, work);
    expect(await post('1', undefined, { user: 'ann' })).toMatchObject({ text: '{"number":1}' });
    expect(await post('1', undefined, { user: 'bob' })).toMatchObject({
      status: 201,
      text: '{"number":2}',
      isReplay: false,
    });
    // Neither another payload of another caller is a conflict, nor can it be guessed from one.
    expect(await post('1', { item: 'chair' }, { user: 'eve' })).toMatchObject({
      status: 201,
      isReplay: false,
    });
    expect(await post('1', undefined, { user: 'ann' })).toMatchObject({
      text: '{"number":1}',
      isReplay: true,
    });
    expect(await post('1', undefined, { user: null })).toMatchObject({ status: 401, code: 'NOT_PERMITTED' });
    expect(orders).toHaveLength(3);
  });

  test('status, listed headers and body are replayed; cookies and others are not', async () => {
    const { post } = await api(
      framework,
      () => ({
        status: 202,
        headers: {
          location: '/orders/1',
          'set-cookie': 'session=ann',
          'x-trace': 't1',
          'x-order': '1',
          etag: '"v1"',
        },
        body: '{"text":"Größe"}',
      }),
      { headers: ['X-Order'] },
    );
    const first = await post('k');
    expect(first.headers.get('set-cookie')).toBe('session=ann');
    const second = await post('k');
    expect(second).toMatchObject({ status: 202, text: '{"text":"Größe"}', isReplay: true });
    expect(second.headers.get('location')).toBe('/orders/1');
    expect(second.headers.get('etag')).toBe('"v1"');
    expect(second.headers.get('x-order')).toBe('1');
    expect(second.headers.get('set-cookie')).toBeNull();
    expect(second.headers.get('x-trace')).toBeNull();
  });

  test('a response in pieces is replayed whole', async () => {
    const { post } = await api(framework, () => ({ pieces: ['[1,', '2,', '3]'] }));
    expect(await post('k')).toMatchObject({ text: '[1,2,3]', isReplay: false });
    expect(await post('k')).toMatchObject({ text: '[1,2,3]', isReplay: true });
  });

  test('a response beyond the limit is sent whole and not kept: a retry learns that it is done', async () => {
    const pieces = Array.from({ length: 50 }, () => 'x'.repeat(1_000));
    let runs = 0;
    const { post } = await api(
      framework,
      () => {
        runs += 1;
        return { pieces };
      },
      { maxResponseBytes: 5_000 },
    );
    expect((await post('k')).text).toHaveLength(50_000);
    const second = await post('k');
    expect(second).toMatchObject({ status: 409, code: 'RESULT_OMITTED' });
    expect(second.headers.get('retry-after')).toBeNull();
    expect(runs).toBe(1);
  });

  test('a refusal of the handler is replayed too; a denial is not, and runs again', async () => {
    let runs = 0;
    const { post } = await api(framework, (order) => {
      runs += 1;
      return { status: (order as { status: number }).status, body: `{"run":${runs}}` };
    });
    expect(await post('a', { status: 404 })).toMatchObject({ status: 404, text: '{"run":1}' });
    expect(await post('a', { status: 404 })).toMatchObject({
      status: 404,
      text: '{"run":1}',
      isReplay: true,
    });
    for (const status of [401, 403, 429]) {
      const key = `d${status}`;
      const [first, second] = [await post(key, { status }), await post(key, { status })];
      expect([first.status, second.status]).toEqual([status, status]);
      expect(second.text).not.toBe(first.text);
    }
  });

  test('a 5xx is a doubt: its client gets it, the next one learns of the doubt, and nothing is repeated', async () => {
    let runs = 0;
    const { post, semel, errors } = await api(framework, () => {
      runs += 1;
      return { status: 502, body: '{"own":"words"}' };
    });
    expect(await post('k')).toMatchObject({ status: 502, text: '{"own":"words"}' });
    expect(await post('k')).toMatchObject({ status: 409, code: 'IN_DOUBT' });
    expect(runs).toBe(1);
    expect(errors).toEqual(['IN_DOUBT', 'IN_DOUBT']);
    const { items } = await semel.doubts.list();
    expect(items).toHaveLength(1);
  });

  test('a handler that throws leaves a doubt without its message; one that says what it did is trusted', async () => {
    const thrown: Error[] = [new Error('hunter2'), new NotLanded('no'), new Rejected('never')];
    let runs = 0;
    const { post } = await api(framework, () => {
      runs += 1;
      const error = thrown.shift();
      if (error !== undefined) throw error;
      return {};
    });
    const first = await post('a');
    expect(first).toMatchObject({ status: 500, code: 'IN_DOUBT' });
    expect(first.text).not.toContain('hunter2');
    expect(await post('a')).toMatchObject({ status: 409, code: 'IN_DOUBT' });
    expect(await post('b')).toMatchObject({ status: 503, code: 'NOT_LANDED' });
    expect(await post('c')).toMatchObject({ status: 500, code: 'FAILED' });
    expect(await post('c')).toMatchObject({ status: 500, code: 'FAILED' });
    expect(await post('b')).toMatchObject({ status: 201 });
    expect(runs).toBe(4);
  });

  test('2xx only after the outcome is durable', async () => {
    const { post, store, clock } = await api(framework, () => {
      store.break('settle');
      return { headers: { 'set-cookie': 'session=ann' }, body: '{"number":1}' };
    });
    const first = await clock.until(post('k'));
    expect(first).toMatchObject({ status: 503, code: 'UNRECORDED' });
    // Nothing of the response that is held back.
    expect(first.headers.get('set-cookie')).toBeNull();
    store.repair();
    await clock.advance(60_000);
    expect(await post('k')).toMatchObject({ status: 201, text: '{"number":1}', isReplay: true });
  });

  test('several cookies of the first response all go out', async () => {
    const { post } = await api(framework, () => ({ cookies: ['a=1', 'b=2'] }));
    expect((await post('k')).headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    expect((await post('k')).headers.getSetCookie()).toEqual([]);
  });

  test('nothing runs while the ledger is down', async () => {
    const { orders, work } = counter();
    const { post, store, clock } = await api(framework, work);
    store.break();
    expect(await clock.until(post('k'))).toMatchObject({ status: 503, code: 'STORE_UNAVAILABLE' });
    expect(orders).toEqual([]);
  });

  test('a client that hangs up does not stop it, and finds its record when it comes back', async () => {
    const started = gate();
    const hold = gate();
    let isAborted: boolean | undefined;
    const { post, url } = await api(framework, async (_order, _ctx, signal) => {
      started.resolve();
      await hold.promise;
      isAborted = signal?.aborted ?? false;
      return { body: '{"number":1}' };
    });
    const leaving = new AbortController();
    const left = fetch(`${url}/orders`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { 'content-type': 'application/json', 'idempotency-key': 'k', 'x-user': 'ann' },
      body: '{"item":"lamp"}',
    });
    await started.promise;
    leaving.abort();
    await expect(left).rejects.toThrow();
    hold.resolve();
    await expect.poll(async () => (await post('k')).text).toBe('{"number":1}');
    expect(await post('k')).toMatchObject({ status: 201, isReplay: true });
    expect(isAborted).toBe(false);
  });

  test('members named __proto__ are data, and pollute nothing', async () => {
    const { work } = counter();
    const { post } = await api(framework, work);
    const raw = '{"item":"lamp","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';
    expect([201, 400]).toContain((await post('k', undefined, { raw })).status);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});

describe.each(frameworks.filter(({ name }) => !/with a parser|Fastify/.test(name)))('$name', (framework) => {
  test('a body beyond the limit is 413, and one that does not come 408', async () => {
    const { orders, work } = counter();
    const { post, url, store } = await api(framework, work, { maxBytes: 1_000, bodyTimeout: '50ms' });
    expect(await post('k', { item: 'x'.repeat(2_000) })).toMatchObject({ status: 413 });
    const head =
      'POST /orders HTTP/1.1\r\nhost: x\r\nx-user: ann\r\nidempotency-key: k\r\nconnection: close\r\n';
    const endless = `${head}transfer-encoding: chunked\r\n\r\n800\r\n${'x'.repeat(2_048)}\r\n`;
    expect(await exchange(url, endless)).toMatch(/^HTTP\/1.1 413/);
    expect(await exchange(url, `${head}content-length: 100\r\n\r\n{`)).toMatch(/^HTTP\/1.1 408/);
    expect(orders).toEqual([]);
    expect(store.calls).not.toContain('claim');
  });
});

/** Bytes as they are, and the answer to them. */
function exchange(url: string, request: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let answer = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      answer += chunk;
      if (answer.includes('\r\n\r\n')) socket.destroy();
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
    socket.write(request);
  });
}
