// A shop behind Express, with Drizzle on Postgres: an order, its record and the intent to mail commit together; Stripe's webhook
// marks it as paid once. DATABASE_URL names the database. With `serve` it only serves; test/examples/orders.test.ts attacks it.
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable, serial, text } from 'drizzle-orm/pg-core';
import express from 'express';
import pg from 'pg';
import { createSemel } from 'semel';
import { idempotentExpress, receive, stripeEvents, toNode } from 'semel/http';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const db = drizzle(pool);
const semel = createSemel({ store: pool, namespace: 'shop' }); // the ledger is in the same database
const orders = pgTable('shop_orders', {
  id: serial().primaryKey(),
  item: text().notNull(),
  payments: integer().notNull().default(0),
});
const serves = process.argv[2] === 'serve';
if (!serves) await db.execute(sql`DROP TABLE IF EXISTS shop_orders`);
await db.execute(
  sql`CREATE TABLE IF NOT EXISTS shop_orders (id serial PRIMARY KEY, item text NOT NULL, payments integer NOT NULL DEFAULT 0)`,
);

const mailbox = process.env.MAILBOX ?? join(tmpdir(), `mails-${process.pid}.txt`);
const confirm = semel.tool({
  name: 'order.confirm',
  effect: 'irreversible',
  per: 'ever',
  identity: ['order'],
  lease: '10s', // so soon does the mail of a dead process show as in doubt
  run: ({ order }: { order: number }) => appendFileSync(mailbox, `${order}\n`), // your mail API
});

const app = express();
app.post(
  '/orders',
  express.json(),
  idempotentExpress(
    semel,
    {
      name: 'orders.create',
      caller: (request: express.Request) => request.get('x-user'), // your authentication
      transaction: (work) => db.transaction(work),
    },
    async (request, response: express.Response, ctx) => {
      const item: unknown = request.body?.item;
      if (typeof item !== 'string' || !/^\P{Cc}{1,200}$/u.test(item))
        return void response.status(422).json({ error: 'item: a text of at most 200 characters' });
      const tx = ctx.tx as typeof db;
      const [order] = await tx.insert(orders).values({ item }).returning();
      if (order === undefined) throw new Error('no row'); // rolls everything back
      await confirm.stage(tx, { order: order.id });
      response.status(201).json({ order: order.id });
    },
  ),
);

type Paid = { id: string; type: string; data: { object: { metadata?: { order?: string } } } };
const secret = 'whsec_example';
const onStripe = receive(
  semel,
  stripeEvents<Paid>({ secret }),
  async (event, ctx) => {
    if (event.type !== 'payment_intent.succeeded') return;
    const order = event.data.object.metadata?.order ?? '';
    const tx = ctx.tx as typeof db;
    const [found] = await tx
      .update(orders)
      .set({ payments: sql`${orders.payments} + 1` })
      .where(eq(sql`${orders.id}::text`, order))
      .returning();
    if (found === undefined) throw new Error(`no order ${order}`); // a payment must not be lost: Stripe delivers it again
  },
  { transaction: (work) => db.transaction(work) },
);
app.post('/hooks/stripe', toNode(onStripe)); // before any body parser

const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as { port: number };
const relay = new AbortController();
const relaying = semel.outbox.relay({ signal: relay.signal }); // here, or in a process of its own that defines `confirm`
if (serves) {
  console.log(`listening on ${port}`);
  await relaying;
}

// A client times out and sends its order again; Stripe delivers its event three times.
const post = (path: string, headers: Record<string, string>, body: string) =>
  fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body });
const keyed = { 'content-type': 'application/json', 'idempotency-key': 'k-1', 'x-user': 'ann' };
for (let attempt = 1; attempt <= 2; attempt += 1) await post('/orders', keyed, '{"item":"lamp"}');
const paid = JSON.stringify({
  id: 'evt_1',
  type: 'payment_intent.succeeded',
  data: { object: { metadata: { order: '1' } } },
});
const time = Math.floor(Date.now() / 1000);
const v1 = createHmac('sha256', secret).update(`${time}.${paid}`).digest('hex');
for (let delivery = 1; delivery <= 3; delivery += 1)
  await post('/hooks/stripe', { 'stripe-signature': `t=${time},v1=${v1}` }, paid);

relay.abort();
await relaying;
await semel.outbox.drain(); // what the relay had not begun
const [order] = await db.select().from(orders);
const mails = readFileSync(mailbox, 'utf8').trim().split('\n');
console.log(`orders: ${await db.$count(orders)}, payments: ${order?.payments}, mails: ${mails.length}`);
// prints: orders: 1, payments: 1, mails: 1
rmSync(mailbox);
server.close();
await semel.close();
await pool.end();
