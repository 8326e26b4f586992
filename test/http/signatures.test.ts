// What each source lets in. Whatever is not genuine is answered with 401 and leaves no record.

import { Buffer } from 'node:buffer';
import {
  githubEvents,
  type ReceiveOptions,
  receive,
  shopifyEvents,
  slackEvents,
  standardWebhooks,
  stripeEvents,
  type WebhookSource,
} from 'semel/http';
import { describe, expect, test } from 'vitest';
import { quick } from '../library/support.ts';
import {
  fromGitHub,
  fromShopify,
  fromSlack,
  fromStandard,
  fromStripe,
  secrets,
  stripeBody,
  stripeSignature,
} from './senders.ts';

function endpoint<Event>(source: WebhookSource<Event>, options: ReceiveOptions<Event> = {}) {
  const semel = quick();
  const events: Event[] = [];
  const handle = receive(semel, source, (event) => void events.push(event), options);
  return {
    events,
    handle,
    post: async (request: Request) => (await handle(request)).status,
    countRecords: async () => (await semel.records.list()).items.length,
  };
}

const sources = [
  {
    name: 'Stripe',
    source: (secret: string | string[]) => stripeEvents({ secret }),
    send: fromStripe,
    secret: secrets.stripe,
  },
  {
    name: 'GitHub',
    source: (secret: string | string[]) => githubEvents({ secret }),
    send: fromGitHub,
    secret: secrets.github,
  },
  {
    name: 'Shopify',
    source: (secret: string | string[]) => shopifyEvents({ secret }),
    send: fromShopify,
    secret: secrets.shopify,
  },
  {
    name: 'Slack',
    source: (secret: string | string[]) => slackEvents({ secret }),
    send: fromSlack,
    secret: secrets.slack,
  },
  {
    name: 'Standard Webhooks',
    source: (secret: string | string[]) => standardWebhooks({ name: 'clerk', secret }),
    send: fromStandard,
    secret: secrets.standard,
  },
] as const;

describe.each(sources)('$name', ({ source, send, secret }) => {
  const other = 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';

  test('a genuine event is executed once, however often it is delivered', async () => {
    const { post, events, countRecords } = endpoint<unknown>(source(secret) as WebhookSource);
    expect(await post(send('evt_1'))).toBe(200);
    expect(await post(send('evt_1'))).toBe(200);
    expect(await post(send('evt_2'))).toBe(200);
    expect(events).toHaveLength(2);
    expect(await countRecords()).toBe(2);
  });

  test('another secret, another body and no signature are refused, and leave no record', async () => {
    const { post, events, countRecords } = endpoint<unknown>(source(secret) as WebhookSource);
    expect(await post(send('evt_1', { secret: other }))).toBe(401);
    const genuine = send('evt_1');
    const changed = new Request(genuine.url, {
      method: 'POST',
      headers: genuine.headers,
      body: `${await genuine.text()} `,
    });
    expect(await post(changed)).toBe(401);
    const unsigned = send('evt_1');
    for (const name of [...unsigned.headers.keys()])
      if (/signature|hmac/.test(name)) unsigned.headers.delete(name);
    expect(await post(unsigned)).toBe(401);
    expect(events).toHaveLength(0);
    expect(await countRecords()).toBe(0);
  });

  test('while a secret is rotated, both are taken', async () => {
    const { post, events } = endpoint<unknown>(source([other, secret]) as WebhookSource);
    expect(await post(send('evt_1'))).toBe(200);
    expect(await post(send('evt_2', { secret: other }))).toBe(200);
    expect(events).toHaveLength(2);
  });

  test('a missing secret is refused at construction', () => {
    for (const missing of [undefined, '', ' ', [], [secret, '']])
      expect(() => source(missing as never)).toThrow(/secret is missing/);
  });

  test('an id that came twice, or is empty, is refused', async () => {
    const { post, countRecords } = endpoint<unknown>(source(secret) as WebhookSource);
    for (const id of ['', 'evt_1, evt_2', 'x'.repeat(500)]) expect(await post(send(id))).toBe(400);
    expect(await countRecords()).toBe(0);
  });
});

describe.each([sources[0], sources[3], sources[4]])('$name', ({ source, send, secret }) => {
  test('a signature that is too old, or from the future, is refused', async () => {
    const { post, events } = endpoint<unknown>(source(secret) as WebhookSource);
    expect(await post(send('evt_1', { at: Date.now() - 6 * 60_000 }))).toBe(401);
    expect(await post(send('evt_1', { at: Date.now() + 6 * 60_000 }))).toBe(401);
    expect(events).toHaveLength(0);
    expect(await post(send('evt_1', { at: Date.now() - 4 * 60_000 }))).toBe(200);
  });
});

describe('Stripe', () => {
  const request = (body: string, signature: string) =>
    new Request('https://shop.example', { method: 'POST', body, headers: { 'stripe-signature': signature } });

  test('a body that was parsed and written again does not match', async () => {
    const { post, countRecords } = endpoint(stripeEvents({ secret: secrets.stripe }));
    const body = stripeBody('evt_1');
    expect(await post(request(JSON.stringify(JSON.parse(body)), stripeSignature(body)))).toBe(401);
    expect(await countRecords()).toBe(0);
  });

  test('one valid v1 signature is enough; another scheme does not count', async () => {
    const { post } = endpoint(stripeEvents({ secret: secrets.stripe }));
    const body = stripeBody('evt_1');
    const [time, v1] = stripeSignature(body).split(',') as [string, string];
    expect(await post(request(body, `${time},${v1.replace('v1', 'v0')}`))).toBe(401);
    expect(await post(request(body, `${time},v1=${'0'.repeat(64)},v1=not-hex,${v1}`))).toBe(200);
  });

  test('an old signature cannot borrow the time of a second header', async () => {
    const { post } = endpoint(stripeEvents({ secret: secrets.stripe }));
    const body = stripeBody('evt_1');
    const old = stripeSignature(body, { at: Date.now() - 3_600_000 });
    const now = `t=${Math.floor(Date.now() / 1_000)}`;
    expect(await post(request(body, `${now}, ${old}`))).toBe(401);
    expect(await post(request(body, `${old}, ${now}`))).toBe(401);
  });

  test('a signed body without an id, or that is not JSON, is refused', async () => {
    const { post, countRecords } = endpoint(stripeEvents({ secret: secrets.stripe }));
    for (const body of ['{"id":7}', '[]', 'null', '{"__proto__":{"id":"evt_1"}}', 'not JSON', ''])
      expect(await post(request(body, stripeSignature(body)))).toBe(400);
    expect(await countRecords()).toBe(0);
  });
});

test("GitHub's own example is genuine, and a form has its payload inside", async () => {
  const { handle, events } = endpoint(githubEvents({ secret: secrets.github }));
  const hello = new Request('https://shop.example', {
    method: 'POST',
    body: 'Hello, World!',
    headers: {
      'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
      'x-github-delivery': 'one',
    },
  });
  // Genuine, but not JSON.
  expect((await handle(hello)).status).toBe(400);
  const form = fromGitHub('two', {
    body: `payload=${encodeURIComponent('{"action":"closed"}')}`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  expect((await handle(form)).status).toBe(200);
  expect(events).toEqual([{ name: 'issues', payload: { action: 'closed' } }]);
});

test("Shopify's topics that share an event id are two events; without one, the webhook's id counts", async () => {
  const { post, events } = endpoint(shopifyEvents({ secret: secrets.shopify }));
  expect(await post(fromShopify('e1'))).toBe(200);
  expect(await post(fromShopify('e1', { headers: { 'x-shopify-topic': 'orders/paid' } }))).toBe(200);
  expect(events.map(({ topic }) => topic)).toEqual(['orders/create', 'orders/paid']);
  const older = () => {
    const request = fromShopify('e2', { headers: { 'x-shopify-webhook-id': 'w2' } });
    request.headers.delete('x-shopify-event-id');
    return request;
  };
  expect(await post(older())).toBe(200);
  expect(await post(older())).toBe(200);
  expect(events).toHaveLength(3);
});

test("Slack's check of an address is answered without a record, and only if it is signed", async () => {
  const { handle, events, countRecords } = endpoint(slackEvents({ secret: secrets.slack }));
  const body = JSON.stringify({ type: 'url_verification', challenge: '3eZbrw1a', token: 'old' });
  const reply = await handle(fromSlack('', { body }));
  expect(await reply.json()).toEqual({ challenge: '3eZbrw1a' });
  expect((await handle(fromSlack('', { body, secret: 'other' }))).status).toBe(401);
  expect(events).toHaveLength(0);
  expect(await countRecords()).toBe(0);
});

test("Slack's own example is genuine, and a retry by number is the same event", async () => {
  const source = slackEvents({ secret: secrets.slack });
  const body =
    'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c';
  const headers = new Headers({
    'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    'x-slack-request-timestamp': '1531420618',
  });
  const delivery = { headers, body: Buffer.from(body), text: body, json: undefined, now: 1_531_420_618_000 };
  expect(await source.verify(delivery)).toBe(true);
  const { post, events } = endpoint(source);
  expect(await post(fromSlack('Ev1'))).toBe(200);
  expect(await post(fromSlack('Ev1', { headers: { 'x-slack-retry-num': '1' } }))).toBe(200);
  expect(events).toHaveLength(1);
});

test("the specification's own example is genuine", async () => {
  const source = standardWebhooks({ name: 'spec', secret: secrets.standard });
  const text = '{"test": 2432232314}';
  const headers = new Headers({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,unrelated v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v2,other',
  });
  const delivery = { headers, body: Buffer.from(text), text, json: undefined, now: 1_614_265_330_000 };
  expect(await source.verify(delivery)).toBe(true);
});

test("Svix's names of the headers work too, but not mixed: the id that counts is the one that was signed", async () => {
  const { post, events } = endpoint(standardWebhooks({ name: 'svix', secret: secrets.standard }));
  expect(await post(fromStandard('msg_1', { prefix: 'svix' }))).toBe(200);
  expect(await post(fromStandard('msg_1', { prefix: 'svix', headers: { 'webhook-id': 'msg_2' } }))).toBe(401);
  expect(events).toHaveLength(1);
});
