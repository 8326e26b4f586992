// The outbox with a drain loop: the mail is a row that commits with its order, and a loop sends and deletes the rows.
// The incident: the loop is killed after it has sent, before it has deleted the row. The next one sends the mail again.

import { DatabaseSync } from 'node:sqlite';
import { createSemel } from 'semel';
import { file, killed, land, look, options, say, start, tell } from './story.ts';

async function byHand(): Promise<void> {
  const database = new DatabaseSync(file('shop.db'));
  if (start === 1) {
    database.exec('CREATE TABLE orders (id TEXT); CREATE TABLE mails (order_id TEXT)');
    // 1. Order and mail commit together.
    database.exec('BEGIN IMMEDIATE');
    database.exec(`INSERT INTO orders VALUES ('order-7')`);
    database.exec(`INSERT INTO mails VALUES ('order-7')`);
    database.exec('COMMIT');
  }
  // 2. Drain: take each row,
  for (const { order_id: order } of database.prepare('SELECT order_id FROM mails').all()) {
    // 3. send,
    land(`mail for ${order}`);
    killed();
    // 4. delete.
    database.prepare('DELETE FROM mails WHERE order_id = ?').run(order as string);
  }
}

const verify = ({ order }: { order: string }) => look(`mail for ${order}`);

async function withSemel(isVerified = false): Promise<void> {
  await using semel = createSemel(options);
  await semel.open();
  const database = new DatabaseSync(file('ledger.db')); // your tables and the ledger share a file
  const mail = semel.tool({
    name: 'order.confirm',
    effect: 'irreversible',
    per: 'ever',
    identity: ['order'],
    run: ({ order }: { order: string }) => {
      // 3. Send,
      land(`mail for ${order}`);
      killed();
      // 4. and semel removes the row in the commit that records it.
    },
    ...(isVerified && { verify }),
  });
  if (start === 1) {
    database.exec('CREATE TABLE orders (id TEXT)');
    // 1. Order and mail commit together.
    database.exec('BEGIN IMMEDIATE');
    database.exec(`INSERT INTO orders VALUES ('order-7')`);
    await mail.stage(database, { order: 'order-7' });
    database.exec('COMMIT');
  }
  // 2. Drain. In a service: semel.outbox.relay({ signal }), in any number of processes.
  const { delivered, inDoubt } = await semel.outbox.drain();
  say(`${delivered} delivered, ${inDoubt} in doubt`);
  database.close();
}

await tell({
  'by hand': byHand,
  'with semel': withSemel,
  'with semel and verify': () => withSemel(true),
});
// prints: by hand
// prints:   landed: mail for order-7, mail for order-7
// prints: with semel
// prints:   start 2: 0 delivered, 1 in doubt
// prints:   landed: mail for order-7
// prints:   in doubt: order.confirm
// prints: with semel and verify
// prints:   start 2: 1 delivered, 0 in doubt
// prints:   landed: mail for order-7
