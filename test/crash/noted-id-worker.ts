// Pays, notes the id that the provider gave the payment, and dies before it can say so.

import { appendFileSync } from 'node:fs';
import { createSemel } from '../../src/index.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { dieHere, jobOf, onFinish, print } from '../processes/child.ts';
import { type Paths, payments } from './payments.ts';

onFinish(() => process.exit(1));
const paths = jobOf<Paths>();
const semel = createSemel({
  store: sqliteStore({ path: paths.ledger }),
  namespace: 'crash',
  onWarning: () => undefined,
});
const pay = payments(semel, paths, async (ctx) => {
  appendFileSync(paths.paid, 're_123\n');
  print({ stored: await ctx.note('re_123') });
  dieHere();
});
await pay.try({ order: 'o-1' });
