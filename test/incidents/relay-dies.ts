// The process that drains an outbox dies: before it delivers a row, and after it has, before it records that.

import { DatabaseSync } from 'node:sqlite';
import { landed, notLanded } from '../../src/index.ts';
import { dieHere, jobOf } from '../processes/child.ts';
import { find, semelOf, send } from './actor.ts';
import type { Incident, Job, Stage } from './incident.ts';

type Death = 'before delivery' | 'after delivery';

const file = './relay-dies.ts';

async function twoRelays({ act }: Stage, death: Death): Promise<void> {
  await act({ isFirst: true, death });
  await act({ isFirst: false, death });
}

export const before: Incident = {
  title: 'A relay that dies before delivery',
  file,
  happened:
    'A shop commits an order, and with it a row that says "mail the customer". A relay deletes the row, and is killed before it sends the mail.',
  wanted: 1,
  ways: [
    {
      name: 'bare',
      effects: 0,
      inDoubt: 0,
    },
    {
      name: 'semel',
      effects: 0,
      inDoubt: 1,
    },
    {
      name: 'semel, verify',
      effects: 1,
      inDoubt: 0,
    },
  ],
  play: (stage) => twoRelays(stage, 'before delivery'),
};

export const after: Incident = {
  title: 'A relay that dies after delivery, before its record',
  file,
  happened: 'As above, but the relay sends the mail first, and is killed before it deletes the row.',
  wanted: 1,
  ways: [
    {
      name: 'bare',
      effects: 2,
      inDoubt: 0,
    },
    {
      name: 'semel',
      effects: 1,
      inDoubt: 1,
    },
    {
      name: 'semel, verify',
      effects: 1,
      inDoubt: 0,
    },
  ],
  play: (stage) => twoRelays(stage, 'after delivery'),
};

interface Part extends Job {
  readonly isFirst: boolean;
  readonly death: Death;
}

async function relay(job: Part): Promise<void> {
  const dieAt = (point: Death) => {
    if (job.isFirst && job.death === point) dieHere();
  };
  const mail = async (order: number) => {
    dieAt('before delivery');
    const sent = await send(job, `order ${order}`);
    dieAt('after delivery');
    return sent;
  };
  if (job.way === 'bare') return drainByHand(job, mail);
  // An hour later the row is free again, and no request of the first relay can be on its way.
  const semel = semelOf(job, job.isFirst ? 0 : 3_600_000);
  const verify = async ({ order }: { order: number }) => {
    const found = await find(job, `order ${order}`);
    return found === undefined ? notLanded() : landed(found);
  };
  await semel.open();
  const database = new DatabaseSync(job.ledger);
  // contract
  const confirm = semel.tool({
    name: 'order.confirm',
    effect: 'irreversible',
    per: 'ever',
    ...(job.way === 'semel, verify' && { verify }),
    run: ({ order }: { order: number }) => mail(order),
  });
  if (job.isFirst) {
    database.exec('BEGIN IMMEDIATE; CREATE TABLE orders (number INTEGER); INSERT INTO orders VALUES (5)');
    await confirm.stage(database, { order: 5 });
    database.exec('COMMIT');
  }
  await semel.outbox.drain();
  // end
  database.close();
  await semel.close();
}

/** Whichever order a hand-written loop has, one of the two deaths is its undoing. */
async function drainByHand(job: Part, mail: (order: number) => Promise<unknown>): Promise<void> {
  const database = new DatabaseSync(`${job.folder}/shop.db`);
  database.exec('CREATE TABLE IF NOT EXISTS mails (number INTEGER)');
  if (job.isFirst) database.exec('INSERT INTO mails VALUES (5)');
  const remove = database.prepare('DELETE FROM mails WHERE number = ?');
  for (const row of database.prepare('SELECT number FROM mails').all()) {
    const number = Number(row.number);
    if (job.death === 'before delivery') remove.run(number);
    await mail(number);
    remove.run(number);
  }
}

if (import.meta.main) await relay(jobOf());
