// Refunds from a pg-boss queue, on Postgres. The producer times out and sends one twice, another has no payment, and every
// message is handled as its record says. DATABASE_URL names the database.
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { createSemel } from 'semel';
import { pgBossWorker } from 'semel/queues';
import { z } from 'zod';

const connectionString = process.env.DATABASE_URL as string;
const pool = new pg.Pool({ connectionString });
const semel = createSemel({ store: pool, namespace: 'shop' });
const boss = await new PgBoss({ connectionString, schema: 'example_queue' }).start();
await boss.createQueue('dead-refunds');
await boss.createQueue('refunds', {
  retryLimit: 10_000, // semel stops what never lands; a doubt waits for its decision
  retryDelay: 1,
  retryBackoff: true,
  retryDelayMax: 300,
  deadLetter: 'dead-refunds',
});

const refunds: string[] = [];
const refund = semel.tool({
  name: 'refund',
  effect: 'irreversible',
  per: 'ever',
  identity: ['payment'],
  input: z.object({ payment: z.string(), cents: z.number() }),
  async run({ payment }) {
    refunds.push(payment); // your payment API; ctx.key is its idempotency key
  },
});

const messages = [{ payment: 'pay-7', cents: 4_900 }, { payment: 'pay-7', cents: 4_900 }, { cents: 1 }];
const { promise: isOver, resolve } = Promise.withResolvers<void>();
let handled = 0;
const consumer = semel.consumer(refund, {
  redelivery: '14d',
  onDecision({ is }) {
    console.log(is);
    handled += 1;
    if (handled === messages.length) resolve();
  },
});
for (const body of messages) await boss.send('refunds', body);
await pgBossWorker(boss, 'refunds', consumer, { pollingIntervalSeconds: 0.5 });
await isOver;
console.log(`refunds: ${refunds.length}`);
// prints: ack
// prints: ack
// prints: dead letter
// prints: refunds: 1
await boss.stop();
await semel.close();
await pool.end();
