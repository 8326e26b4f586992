// A program whose rows and ledger are in one Postgres, and that kills itself at a given point of a call in its transaction.

import pg from 'pg';
import { createSemel } from '../../src/index.ts';
import { postgresStore } from '../../src/stores/postgres/index.ts';
import { dieHere, jobOf } from '../processes/child.ts';
import type { OwnSchema } from '../servers/own-place.ts';
import type { callPoints } from './sqlite-worker.ts';

export interface CallJob extends OwnSchema {
  readonly dieAt: (typeof callPoints)[number];
}

export function openShop({ url, schema }: OwnSchema, inRun: () => void = () => undefined) {
  const semel = createSemel({ store: postgresStore({ url, schema }), namespace: 'shop', prune: false });
  const insert = (tx: unknown, id: string) =>
    (tx as pg.ClientBase).query(`INSERT INTO ${schema}.orders VALUES ($1)`, [id]);
  const place = semel.tool({
    name: 'order.place',
    effect: 'write-non-idempotent',
    per: 'ever',
    async run({ id }: { id: string }, ctx) {
      await insert(ctx.tx, id);
      inRun();
      return 'placed';
    },
  });
  return { semel, insert, place };
}

if (import.meta.main) {
  const job = jobOf<CallJob>();
  const at = (point: CallJob['dieAt']) => {
    if (point === job.dieAt) dieHere();
  };
  const { insert, place } = openShop(job, () => at('in run'));
  const client = new pg.Client(job.url);
  await client.connect();
  await client.query('BEGIN');
  await insert(client, 'data');
  at('before the call');
  await place.inTransaction(client, { id: 'a' });
  at('before commit');
  await client.query('COMMIT');
  at('after commit');
}
