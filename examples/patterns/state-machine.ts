// The state machine: an order goes from pending to sent to confirmed, and a worker takes it up where its column says.
// The incident: the worker is killed after the parcel was ordered, before the column says "sent". The next one orders another.

import { DatabaseSync } from 'node:sqlite';
import { createSemel } from 'semel';
import { file, killed, land, look, options, say, tell } from './story.ts';

async function byHand(): Promise<void> {
  const database = new DatabaseSync(file('shop.db'));
  database.exec('CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, state TEXT)');
  database.exec(`INSERT OR IGNORE INTO orders VALUES ('order-7', 'pending')`);
  const read = database.prepare('SELECT state FROM orders WHERE id = ?');
  const write = database.prepare('UPDATE orders SET state = ? WHERE id = ?');
  // 1. Pending: send.
  if (read.get('order-7')?.state === 'pending') {
    land('parcel for order-7');
    killed();
    // 2. Now it is sent.
    write.run('sent', 'order-7');
  }
  // 3. Sent: confirm.
  if (read.get('order-7')?.state === 'sent') {
    land('mail for order-7');
    // 4. Now it is confirmed.
    write.run('confirmed', 'order-7');
  }
}

const verify = () => look('parcel for order-7');

async function withSemel(isVerified = false): Promise<void> {
  await using semel = createSemel(options);
  const ship = semel.tool({
    name: 'order.ship',
    effect: 'irreversible',
    per: 'ever',
    identity: ['order'],
    via: 'steps',
    run: async ({ order }: { order: string }, ctx) => {
      // 1. and 2. Send, unless the record of this step says that it is done.
      await ctx.step('send', isVerified ? { verify } : {}, () => {
        land(`parcel for ${order}`);
        killed();
      });
      // 3. and 4. Confirm, in the same way.
      await ctx.step('confirm', () => land(`mail for ${order}`));
    },
  });
  const result = await ship.try({ order: 'order-7' });
  say(result.ok ? 'confirmed' : result.error.code);
}

await tell({
  'by hand': byHand,
  'with semel': withSemel,
  'with semel and verify': () => withSemel(true),
});
// prints: by hand
// prints:   landed: parcel for order-7, parcel for order-7, mail for order-7
// prints: with semel
// prints:   start 2: IN_DOUBT
// prints:   landed: parcel for order-7
// prints:   in doubt: order.ship.send
// prints:   in doubt: order.ship
// prints: with semel and verify
// prints:   start 2: confirmed
// prints:   landed: parcel for order-7, mail for order-7
