// A hand-off between agents: however often it is delivered, and however B words what it does, it is one intent.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import {
  handoffFromEnvironment,
  handoffFromHeaders,
  handoffFromMeta,
  handoffToEnvironment,
  handoffToHeaders,
  handoffToMeta,
} from '../../src/identity/index.ts';
import { quick } from '../library/support.ts';

const semel = quick();
const given = semel.within({ conversation: 'c', turn: '7' }, semel.handoff);

const ways = [
  { name: 'a header', there: (text: string) => handoffFromHeaders(handoffToHeaders(text)) },
  { name: 'headers', there: (text: string) => handoffFromHeaders(new Headers(handoffToHeaders(text))) },
  { name: '_meta', there: (text: string) => handoffFromMeta(handoffToMeta(text, { progressToken: 1 })) },
  { name: 'an environment', there: (text: string) => handoffFromEnvironment(handoffToEnvironment(text)) },
];

test.each(ways)('it arrives unchanged by $name', ({ there }) => {
  expect(there(given)).toBe(given);
  expect(semel.within(there(given), semel.handoff)).toBe(given);
});

test('what is in _meta already stays', () => {
  expect(handoffToMeta(given, { progressToken: 1 })).toEqual({
    progressToken: 1,
    'dev.semel/context': given,
  });
});

describe('refused', () => {
  test.each([
    ['a header', () => handoffFromHeaders({})],
    ['_meta', () => handoffFromMeta(undefined)],
    ['_meta that is no text', () => handoffFromMeta({ 'dev.semel/context': 7 })],
    ['an environment', () => handoffFromEnvironment({ SEMEL_CONTEXT: '' })],
  ])('none in %s', (_, read) => {
    expect(read).toThrow(expect.objectContaining({ code: 'NO_IDENTITY' }));
    expect(read).toThrow(/semel\.handoff\(\)/);
  });

  test('to write what is none, and to take one that was damaged on the way', () => {
    expect(() => handoffToHeaders(`${given}\r\nX: y`)).toThrow(/not a valid semel hand-off/);
    expect(() => semel.within(handoffFromHeaders({ 'semel-context': `${given}x` }), () => 1)).toThrow(
      /damaged/,
    );
  });
});

test('A hands to B by a header, loses the answer, hands again, B words it differently: one effect', async () => {
  const posts: string[] = [];
  const ofB = quick();
  const post = ofB.tool({
    name: 'ticket.open',
    effect: 'write-non-idempotent',
    per: 'turn',
    identity: ['customer'],
    run: ({ text }: { customer: string; text: string }) => posts.push(text),
  });
  const wordings = ['The parcel is late.', 'Late parcel, please look.'];
  let deliveries = 0;
  const b = createServer((request, response) => {
    const text = wordings[deliveries++]!;
    void ofB
      .within(handoffFromHeaders(request.headers), () => post.try({ customer: 'ann', text }))
      .then(({ receipt }) => {
        // Done, and the first answer is lost.
        if (deliveries === 1) request.socket.destroy();
        else response.end(JSON.stringify(receipt.drift));
      });
  });
  await new Promise<void>((resolve) => b.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(b.address() as AddressInfo).port}`;

  const hand = () =>
    semel.within({ conversation: 'support', turn: 'm-12' }, () =>
      fetch(url, { method: 'POST', headers: handoffToHeaders(semel.handoff()) }),
    );
  await expect(hand()).rejects.toThrow();
  const second = await hand();
  expect(await second.json()).toEqual(['text']);
  expect(posts).toEqual(['The parcel is late.']);
  expect(deliveries).toBe(2);
  b.close();
  await ofB.close();
});
