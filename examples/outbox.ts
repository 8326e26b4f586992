// An order and its confirmation mail, with Drizzle on Postgres: the order and the intent to mail commit together, and the
// mail is sent once, whenever the process dies. DATABASE_URL names the database.
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import pg from 'pg';
import { createSemel } from 'semel';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const db = drizzle(pool);
await using semel = createSemel({ store: pool, namespace: 'shop' });

const orders = pgTable('example_orders', { id: text().primaryKey(), cents: integer().notNull() });
const stock = pgTable('example_stock', { item: text().primaryKey(), left: integer().notNull() });
await db.execute(sql`DROP TABLE IF EXISTS example_orders, example_stock`);
await db.execute(sql`CREATE TABLE example_orders (id text PRIMARY KEY, cents integer NOT NULL)`);
await db.execute(sql`CREATE TABLE example_stock (item text PRIMARY KEY, "left" integer NOT NULL)`);
await db.insert(stock).values({ item: 'lamp', left: 10 });

const outbox: string[] = [];
const confirm = semel.tool({
  name: 'order.confirm',
  effect: 'irreversible',
  per: 'ever',
  identity: ['order'],
  async run({ order }: { order: string }) {
    outbox.push(order); // your mail API; ctx.key is its idempotency key
  },
});

/** Its effect is in the same database, so it needs no outbox: it commits with the order, exactly once. */
const reserve = semel.tool({
  name: 'stock.reserve',
  effect: 'write-non-idempotent',
  per: 'ever',
  identity: ['order'],
  async run({ item }: { order: string; item: string }, ctx) {
    const tx = ctx.tx as typeof db;
    await tx
      .update(stock)
      .set({ left: sql`${stock.left} - 1` })
      .where(sql`${stock.item} = ${item}`);
  },
});

async function placeOrder(id: string, cents: number): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.insert(orders).values({ id, cents }).onConflictDoNothing();
    await reserve.inTransaction(tx, { order: id, item: 'lamp' });
    await confirm.stage(tx, { order: id });
  });
}

// The client times out and sends its order again.
await placeOrder('order-7', 4_900);
await placeOrder('order-7', 4_900);
await semel.outbox.drain(); // in a service: semel.outbox.relay({ signal }), in any number of processes
const [left] = await db.select().from(stock);
console.log(`mails: ${outbox.length}, lamps left: ${left?.left}`);
// prints: mails: 1, lamps left: 9
await semel.close();
await pool.end();
