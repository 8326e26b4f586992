// The batch with a checkpoint file: after each item, the file says how many are done, and the next start skips those.
// The incident: the script is killed after it has sent an invoice, before it has written the checkpoint, and sends it again.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createSemel } from 'semel';
import { file, killed, land, look, options, say, tell } from './story.ts';

const invoices = ['inv-1', 'inv-2', 'inv-3', 'inv-4'].map((id) => ({ id }));

async function byHand(): Promise<void> {
  const checkpoint = file('checkpoint');
  // 1. How many are done?
  const done = existsSync(checkpoint) ? Number(readFileSync(checkpoint, 'utf8')) : 0;
  // 2. Go on with the next one.
  for (const [index, { id }] of [...invoices.entries()].slice(done)) {
    // 3. Act.
    land(id);
    if (id === 'inv-2') killed();
    // 4. Write the checkpoint.
    writeFileSync(checkpoint, String(index + 1));
  }
}

const verify = ({ id }: { id: string }) => look(id);

async function withSemel(isVerified = false): Promise<void> {
  await using semel = createSemel(options);
  const report = await semel.batch(
    'invoice.send',
    invoices,
    {
      // 1. and 4. Each item has a record, so the list may change between two starts.
      id: (invoice) => invoice.id,
      // 2. One after the other, as above; the default is 16 at a time.
      concurrency: 1,
      ...(isVerified && { verify }),
    },
    ({ id }) => {
      // 3. Act.
      land(id);
      if (id === 'inv-2') killed();
    },
  );
  say(`${report.done} done, ${report.inDoubt} in doubt`);
}

await tell({
  'by hand': byHand,
  'with semel': withSemel,
  'with semel and verify': () => withSemel(true),
});
// prints: by hand
// prints:   landed: inv-1, inv-2, inv-2, inv-3, inv-4
// prints: with semel
// prints:   start 2: 3 done, 1 in doubt
// prints:   landed: inv-1, inv-2, inv-3, inv-4
// prints:   in doubt: invoice.send
// prints: with semel and verify
// prints:   start 2: 4 done, 0 in doubt
// prints:   landed: inv-1, inv-2, inv-3, inv-4
