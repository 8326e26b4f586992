// The dedupe table: a message id is inserted before its mail is sent, so that a second delivery finds it.
// The incident: the worker is killed between the two. The queue delivers again, the id is there, and the mail is lost.

import { DatabaseSync } from 'node:sqlite';
import { createSemel } from 'semel';
import { file, killed, land, look, options, say, tell } from './story.ts';

const id = 'msg-7';

async function byHand(): Promise<void> {
  const database = new DatabaseSync(file('shop.db'));
  database.exec('CREATE TABLE IF NOT EXISTS processed (id TEXT PRIMARY KEY)');
  // 1. Insert the id. If it is there, the message was processed.
  const insert = database.prepare('INSERT OR IGNORE INTO processed VALUES (?)');
  if (insert.run(id).changes === 0) return say('processed before');
  killed();
  // 2. Act.
  land(`mail for ${id}`);
}

const verify = (args: { id: string }) => look(`mail for ${args.id}`);

async function withSemel(isVerified = false): Promise<void> {
  await using semel = createSemel(options);
  const mail = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'ever',
    // 1. Claim the id. If it is on record as done, nothing runs.
    identity: ['id'],
    run: (args: { id: string }) => {
      killed();
      // 2. Act. Then semel records that it is done.
      land(`mail for ${args.id}`);
    },
    // A claim without an outcome is in doubt. This asks the mail server.
    ...(isVerified && { verify }),
  });
  const result = await mail.try({ id });
  say(result.ok ? 'sent' : result.error.code);
}

await tell({
  'by hand': byHand,
  'with semel': withSemel,
  'with semel and verify': () => withSemel(true),
});
// prints: by hand
// prints:   start 2: processed before
// prints:   landed: nothing
// prints: with semel
// prints:   start 2: IN_DOUBT
// prints:   landed: nothing
// prints:   in doubt: mail.send
// prints: with semel and verify
// prints:   start 2: sent
// prints:   landed: mail for msg-7
