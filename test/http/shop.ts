// A shop in a process of its own: /hooks credits an account per event, /orders books an order per key. It kills itself where the
// test says.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { idempotent, receive, stripeEvents, toNode } from '../../src/http/index.ts';
import { type AttemptContext, createSemel } from '../../src/index.ts';
import { postgresStore } from '../../src/stores/postgres/index.ts';
import { dieHere, jobOf, onFinish, print } from '../processes/child.ts';
import { senderHeaders } from '../support/effect-server/index.ts';
import { secrets } from './senders.ts';

export type Way = 'plain' | 'keyed' | 'transaction' | 'sqlite transaction';
export type Point = 'before effect' | 'after effect' | 'after commit';

export interface ShopJob {
  readonly way: Way;
  /** The effect server's address. */
  readonly url: string;
  readonly ledger: string;
  readonly postgres: { readonly url: string; readonly schema: string };
  readonly dieAt?: Point;
}

export interface ShopLine {
  readonly port: number;
}

async function main(job: ShopJob): Promise<void> {
  const { way, url, postgres } = job;
  const pool = new pg.Pool({ connectionString: postgres.url });
  pool.on('error', () => undefined);
  const die = (point: Point) => {
    if (job.dieAt === point) dieHere();
  };
  const semel = createSemel({
    store: way === 'transaction' ? postgresStore(postgres) : `sqlite:${job.ledger}`,
    namespace: 'shop',
    onWarning: () => undefined,
  });

  async function land(intent: string, ctx: AttemptContext): Promise<void> {
    die('before effect');
    if (way === 'sqlite transaction')
      (ctx.tx as DatabaseSync).prepare('INSERT INTO effects VALUES (?)').run(intent);
    else if (way === 'transaction')
      await (ctx.tx as pg.PoolClient).query(`INSERT INTO ${postgres.schema}.effects VALUES ($1)`, [intent]);
    else {
      const headers = senderHeaders({ namespace: 'shop', intent, pid: process.pid });
      await ctx.fetch(`${url}/do/bank`, { method: 'POST', headers });
    }
    die('after effect');
  }

  async function transaction<T>(work: (tx: unknown) => Promise<T>): Promise<T> {
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      const value = await work(client);
      await client.query('COMMIT');
      die('after commit');
      return value;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => undefined);
      throw error;
    } finally {
      client.release();
    }
  }

  // One connection, so one transaction after the other.
  const database = way === 'sqlite transaction' ? await openDatabase() : undefined;
  let last: Promise<unknown> = Promise.resolve();
  function sqliteTransaction<T>(work: (tx: unknown) => Promise<T>): Promise<T> {
    const run = async () => {
      database?.exec('BEGIN IMMEDIATE');
      try {
        const value = await work(database);
        database?.exec('COMMIT');
        die('after commit');
        return value;
      } catch (error) {
        database?.exec('ROLLBACK');
        throw error;
      }
    };
    const next = last.then(run);
    last = next.catch(() => undefined);
    return next;
  }

  async function openDatabase(): Promise<DatabaseSync> {
    // semel has to create the file.
    await semel.open();
    const handle = new DatabaseSync(job.ledger);
    handle.exec('PRAGMA busy_timeout = 10000; CREATE TABLE IF NOT EXISTS effects (intent text)');
    return handle;
  }

  const terms = {
    onError: () => undefined,
    ...(way === 'keyed' && {
      provider: { name: 'bank', window: '90d', hosts: [new URL(url).host] } as const,
    }),
    ...(way === 'transaction' && { transaction }),
    ...(way === 'sqlite transaction' && { transaction: sqliteTransaction }),
  };
  const hooks = receive(
    semel,
    stripeEvents<{ id: string }>({ secret: secrets.stripe }),
    ({ id }, ctx) => land(id, ctx),
    terms,
  );
  const orders = idempotent(
    semel,
    { name: 'orders.create', caller: 'anonymous', ...terms },
    async (request, ctx) => {
      const { id } = (await request.json()) as { id: string };
      await land(id, ctx);
      return Response.json({ booked: id }, { status: 201 });
    },
  );
  const server = createServer(
    toNode((request) => (new URL(request.url).pathname === '/hooks' ? hooks(request) : orders(request))),
  );
  server.listen(0, '127.0.0.1', () =>
    print({ port: (server.address() as AddressInfo).port } satisfies ShopLine),
  );
  onFinish(() => process.exit(0));
}

if (import.meta.main) await main(jobOf());
