// The order service of examples/orders.ts under attack: killed at several points, equal requests at once, a webhook delivered three
// times, hostile bodies. Order, record and intent to mail agree whatever happens.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { createSemel } from 'semel';
import { expect, inject, onTestFinished, test } from 'vitest';
import { stripeSignature } from '../http/senders.ts';
import { compileCache } from '../processes/node-process.ts';
import { newScratch } from '../processes/scratch.ts';

const program = join(import.meta.dirname, '../../examples/orders.ts');
const preloads = ['../docs/semel-from-source.ts', 'die-at.ts'].map(
  (name) => `--import=${pathToFileURL(join(import.meta.dirname, name))}`,
);

async function service() {
  const scratch = newScratch('orders');
  const name = `orders_${Math.random().toString(36).slice(2)}`;
  const admin = new pg.Client(inject('postgresUrl'));
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name}`);
  await admin.end();
  const url = new URL(inject('postgresUrl'));
  url.pathname = `/${name}`;
  const pool = new pg.Pool({ connectionString: url.href, max: 2 });
  const mailbox = scratch.path('mails.txt');
  const running: ReturnType<typeof spawn>[] = [];
  onTestFinished(async () => {
    for (const child of running) child.kill('SIGKILL');
    await pool.end();
    scratch[Symbol.dispose]();
  });

  async function start(dieAt = '') {
    const child = spawn(process.execPath, [program, 'serve'], {
      env: {
        ...process.env,
        ...{ DATABASE_URL: url.href, MAILBOX: mailbox, DIE_AT: dieAt, NODE_OPTIONS: preloads.join(' ') },
        ...{ NODE_COMPILE_CACHE: compileCache(), NODE_NO_WARNINGS: '1' },
      },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    running.push(child);
    const ended = once(child, 'exit');
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const port = Number(/\d+$/.exec(line)?.[0]);
    const post = async (path: string, headers: Record<string, string>, body: string) => {
      try {
        const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body });
        await response.text();
        return response.status;
      } catch {
        return 'cut';
      }
    };
    return {
      ended,
      kill: () => child.kill('SIGKILL'),
      order: (body: string, key = 'k-1') =>
        post(
          '/orders',
          { 'content-type': 'application/json', 'idempotency-key': key, 'x-user': 'ann' },
          body,
        ),
      paid: (body: string) =>
        post(
          '/hooks/stripe',
          { 'stripe-signature': stripeSignature(body, { secret: 'whsec_example' }) },
          body,
        ),
    };
  }

  return {
    start,
    rows: async () =>
      (await pool.query('SELECT item, payments FROM shop_orders ORDER BY id')).rows as {
        item: string;
        payments: number;
      }[],
    mails: () => (existsSync(mailbox) ? readFileSync(mailbox, 'utf8').split('\n').filter(Boolean) : []),
    async doubts() {
      const semel = createSemel({ store: pool, namespace: 'shop', onWarning: () => undefined });
      const { items } = await semel.doubts.list();
      return items.length;
    },
  };
}

const lamp = '{"item":"lamp"}';
const event = (id: string, order: unknown) =>
  JSON.stringify({
    id,
    type: 'payment_intent.succeeded',
    data: { object: order === undefined ? {} : { metadata: { order } } },
  });

test.each([
  ['before insert into "shop_orders"', 1, 0],
  ['after insert into "shop_orders"', 1, 0],
  ['before insert into "shop_orders" > commit', 1, 0],
  ['after insert into "shop_orders" > commit', 1, 0],
  // Nobody can tell whether the mail went out: no second one, and a doubt that is shown.
  ['before mail', 0, 1],
  ['after mail', 1, 1],
])('killed %s: one order, and its mail is sent once or is in doubt', async (dieAt, mails, doubts) => {
  const shop = await service();
  const first = await shop.start(dieAt);
  await first.order(lamp);
  expect(await first.ended).toEqual([null, 'SIGKILL']);
  const second = await shop.start();
  const statuses = await Promise.all([second.order(lamp), second.order(lamp)]);
  expect(statuses).toContain(201);
  expect(await second.order(lamp)).toBe(201);
  expect(await shop.rows()).toEqual([{ item: 'lamp', payments: 0 }]);
  await expect
    .poll(async () => [shop.mails().length, await shop.doubts()], { timeout: 120_000 })
    .toEqual([mails, doubts]);
});

test.each([
  'before update "shop_orders"',
  'after update "shop_orders"',
  'after update "shop_orders" > commit',
])('killed %s: a webhook that is delivered three times pays once', async (dieAt) => {
  const shop = await service();
  const first = await shop.start(dieAt);
  await first.order(lamp);
  await first.paid(event('evt_1', '1'));
  expect(await first.ended).toEqual([null, 'SIGKILL']);
  const second = await shop.start();
  const statuses = await Promise.all([1, 2].map(() => second.paid(event('evt_1', '1'))));
  expect(statuses).toContain(200);
  expect(await second.paid(event('evt_1', '1'))).toBe(200);
  expect(await shop.rows()).toEqual([{ item: 'lamp', payments: 1 }]);
});

test('hostile bodies and events leave nothing behind, and the next request is served', async () => {
  const shop = await service();
  const at = await shop.start();
  const hostile: readonly (readonly [string, number])[] = [
    ['{', 400],
    ['[]', 422],
    ['{}', 422],
    ['{"item":null}', 422],
    ['{"item":{"toString":1}}', 422],
    ['{"item":"a\\u0000b"}', 422],
    [`{"item":"${'x'.repeat(90_000)}"}`, 422],
    [`{"item":"${'x'.repeat(200_000)}"}`, 413],
    ['{"__proto__":{"item":"lamp"}}', 422],
  ];
  for (const [index, [body, status]] of hostile.entries())
    expect([body.slice(0, 30), await at.order(body, `h-${index}`)]).toEqual([body.slice(0, 30), status]);
  // A payment for an order that is not there must not be acknowledged: it would be lost.
  for (const [index, order] of [undefined, '', '99', 'x', '1; DROP TABLE shop_orders', null, 7, {}].entries())
    expect(await at.paid(event(`evt_h${index}`, order))).toBe(503);
  expect(await at.paid('{"id":"evt_x","type":"payment_intent.succeeded"}')).toBe(503);
  expect(await shop.rows()).toEqual([]);
  expect(await at.order(lamp)).toBe(201);
  expect(await shop.rows()).toEqual([{ item: 'lamp', payments: 0 }]);
});
