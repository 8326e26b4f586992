// What strangers may send before anybody knows who they are: how much, in how many pieces, and of how many at once.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { idempotent, receive, stripeEvents } from 'semel/http';
import { afterEach, expect, test } from 'vitest';
import { limits } from '../../src/core/limits.ts';
import { quick, rig } from '../library/support.ts';
import { fromStripe, secrets } from './senders.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const usual = { ...limits };
afterEach(() => void Object.assign(limits, usual));

const webhook = () => {
  const { semel, clock } = rig();
  const handle = receive(semel, stripeEvents({ secret: secrets.stripe }), () => undefined);
  return { handle, genuine: () => fromStripe('evt_1', { at: clock.now() }) };
};

function send(body: ReadableStream): Request {
  return new Request('https://shop.example/hooks', { method: 'POST', body, duplex: 'half' } as never);
}

/** A body that begins, and goes on when it is told to. */
function begin(bytes: number) {
  let end = () => {};
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new Uint8Array(bytes));
      end = () => controller.close();
    },
  });
  return { request: send(body), end: () => end() };
}

test('bytes that come one by one take no more room than others', async () => {
  const count = 200_000;
  const inUse = () => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const source = Buffer.alloc(count, 'x');
  let before = 0;
  let grown = 0;
  let sent = 0;
  const body = new ReadableStream({
    pull(controller) {
      if (sent === 1_000) before = inUse();
      if (sent === count) {
        grown = inUse() - before;
        controller.close();
      } else controller.enqueue(source.subarray(sent, sent + 1));
      sent += 1;
    },
  });
  expect((await webhook().handle(send(body))).status).toBe(401);
  expect(grown).toBeLessThan(20 * count);
});

test('unfinished bodies from many senders do not fill the memory: the longest is dropped', async () => {
  Object.assign(limits, { unfinishedBytes: 1_910 });
  const { handle, genuine } = webhook();
  const longer = begin(1_200);
  const shorter = begin(700);
  const answers = [handle(longer.request), handle(shorter.request)] as const;
  // Both are there before the genuine one comes.
  await new Promise(setImmediate);
  expect((await handle(genuine())).status).toBe(200);
  const refused = await answers[0];
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  expect(await refused.json()).toMatchObject({ retriable: true, code: 'ABORTED' });
  shorter.end();
  expect((await answers[1]).status).toBe(401);
});

test('what was read gives its room back', async () => {
  Object.assign(limits, { unfinishedBytes: 1_000 });
  const { handle } = webhook();
  for (let n = 0; n < 5; n += 1) {
    const { request, end } = begin(900);
    end();
    expect((await handle(request)).status).toBe(401);
  }
});

test('a declared length that is refused does not wait for its sender', async () => {
  const body = new ReadableStream({ cancel: () => new Promise<void>(() => {}) });
  const request = new Request('https://shop.example/hooks', {
    method: 'POST',
    body,
    duplex: 'half',
    headers: { 'content-length': '99999999' },
  } as never);
  expect((await webhook().handle(request)).status).toBe(413);
});

test('a limit that bounds nothing is refused', () => {
  const semel = quick();
  const source = stripeEvents({ secret: secrets.stripe });
  for (const maxBytes of [Number.NaN, Number.POSITIVE_INFINITY, 0, -1, 1.5, '1mb', limits.messageBytes + 1]) {
    const wrong = { maxBytes: maxBytes as number };
    expect(() => receive(semel, source, () => undefined, wrong), String(maxBytes)).toThrow(/maxBytes/);
    expect(() => receive(semel, { ...source, ...wrong }, () => undefined)).toThrow(/maxBytes/);
    const terms = { name: 'orders', caller: 'anonymous' } as const;
    for (const each of [wrong, { maxResponseBytes: maxBytes as number }])
      expect(() => idempotent(semel, { ...terms, ...each }, () => new Response())).toThrow(/max\w*Bytes/);
  }
});
