// Natural keys: order id and action name the effect, and a table of keys says which were done.
// The incident: the worker is killed after the refund, before the key is inserted, and refunds again. Later the customer is due
// another amount for the same order: the key is there, so that refund is dropped silently.

import { DatabaseSync } from 'node:sqlite';
import { createSemel } from 'semel';
import { file, killed, land, look, options, say, start, tell } from './story.ts';

const order = 'order-7';
const cents = start < 3 ? 4_900 : 500;

async function byHand(): Promise<void> {
  const database = new DatabaseSync(file('shop.db'));
  database.exec('CREATE TABLE IF NOT EXISTS done (key TEXT PRIMARY KEY)');
  // 1. The key: order id and action.
  const key = `${order}:refund`;
  // 2. If it is in the table, stop.
  if (database.prepare('SELECT 1 FROM done WHERE key = ?').get(key)) return say('done before');
  // 3. Act.
  land(`refund of ${cents}`);
  killed();
  // 4. Insert the key.
  database.prepare('INSERT INTO done VALUES (?)').run(key);
}

interface Refund {
  order: string;
  cents: number;
}

const verify = (args: Refund) => look(`refund of ${args.cents}`);

async function withSemel(isVerified = false): Promise<void> {
  await using semel = createSemel(options);
  const refund = semel.tool({
    name: 'refund', // the action
    effect: 'irreversible',
    per: 'ever',
    identity: ['order', 'cents'], // what has to be the same under one key
    run: (args: Refund) => {
      // 3. Act.
      land(`refund of ${args.cents}`);
      killed();
      // 4. Then semel records that the key is done.
    },
    ...(isVerified && { verify }),
  });
  // 1. and 2. Claim the key. If it is on record with the same amount, nothing runs; with another amount, it is a conflict.
  const result = await refund.try({ order, cents }, { key: order });
  say(result.ok ? 'refunded' : result.error.code);
}

await tell(
  {
    'by hand': byHand,
    'with semel': withSemel,
    'with semel and verify': () => withSemel(true),
  },
  { starts: 3 },
);
// prints: by hand
// prints:   start 3: done before
// prints:   landed: refund of 4900, refund of 4900
// prints: with semel
// prints:   start 2: IN_DOUBT
// prints:   start 3: KEY_CONFLICT
// prints:   landed: refund of 4900
// prints:   in doubt: refund
// prints: with semel and verify
// prints:   start 2: refunded
// prints:   start 3: KEY_CONFLICT
// prints:   landed: refund of 4900
