// Comments on an issue, and dies before it is recorded: `killed-worker.ts { "folder", "url", "reaches" }`.

import { join } from 'node:path';
import { createSemel } from '../../src/semel/index.ts';

const { folder, url, reaches } = JSON.parse(process.argv[2] ?? '') as Record<string, string>;
const semel = createSemel({ store: `sqlite:${join(`${folder}`, 'ledger.db')}`, namespace: 'shop' });
const comment = semel.tool({
  name: 'comment',
  effect: 'irreversible',
  per: 'ever',
  lease: '1s',
  // A busy machine needs more than one for the request.
  timeout: '5s',
  verifyAfter: '1s',
  run: async (_: { issue: number }, ctx) => {
    const body = JSON.stringify({ body: `Shipped.\n<!-- ${ctx.mark()} -->` });
    if (reaches) await fetch(`${url}/repos/ann/shop/issues/7/comments`, { method: 'POST', body });
    process.kill(process.pid, 'SIGKILL');
    await new Promise(() => undefined);
  },
});
await comment({ issue: 7 });
