// A shop behind Hono: Stripe's webhook credits a customer once, and an order is booked once, however often they are sent.
import { once } from 'node:events';
import { serve } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { createSemel } from 'semel';
import { idempotentHono, receive, stripeEvents } from 'semel/http';
import Stripe from 'stripe';

await using semel = createSemel({ store: 'memory:', namespace: 'shop' }); // in a service: leave `store` out, or pass your database
const secret = 'whsec_example';
const credits: string[] = [];
const orders: string[] = [];

const hooks = receive(semel, stripeEvents<Stripe.Event>({ secret }), async (event) => {
  if (event.type === 'payment_intent.succeeded') credits.push(event.id);
});

const app = new Hono();
app.post('/hooks', (c) => hooks(c.req.raw));
app.post(
  '/orders',
  idempotentHono(
    semel,
    { name: 'orders.create', caller: (c: Context) => c.req.header('authorization') },
    async (c) => {
      const { item } = await c.req.json<{ item: string }>();
      orders.push(item);
      return c.json({ order: orders.length }, 201);
    },
  ),
);
const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
await once(server, 'listening');
const address = server.address() as { port: number };
const post = async (path: string, headers: Record<string, string>, body: string) => {
  const response = await fetch(`http://127.0.0.1:${address.port}${path}`, { method: 'POST', headers, body });
  return response.status;
};

// Stripe delivers an event three times.
const event = JSON.stringify({ id: 'evt_1', type: 'payment_intent.succeeded' });
const signature = new Stripe('sk_unused').webhooks.generateTestHeaderString({ payload: event, secret });
for (let delivery = 1; delivery <= 3; delivery += 1)
  await post('/hooks', { 'stripe-signature': signature }, event);

// A client times out and sends its order again; another client has the same key.
const order = { 'idempotency-key': 'k-1', authorization: 'ann' };
await post('/orders', order, '{"item":"lamp"}');
await post('/orders', order, '{"item":"lamp"}');
await post('/orders', { ...order, authorization: 'bob' }, '{"item":"lamp"}');
const conflict = await post('/orders', order, '{"item":"chair"}');

console.log(`credits: ${credits.length}, orders: ${orders.length}, another order under the key: ${conflict}`);
// prints: credits: 1, orders: 2, another order under the key: 422
server.close();
