// Staging keeps its statement prepared, but only in a session that belongs to the caller's client alone: behind a pooler the
// next transaction may have another session, in which the statement would fail, and the caller's transaction with it.

import pg from 'pg';
import { createSemel, type Semel } from 'semel';
import { postgresStore } from 'semel/postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PgbouncerServer, startPgbouncer } from '../servers/pgbouncer.ts';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';

let server: PostgresServer;
let pooler: PgbouncerServer | undefined;

beforeAll(async () => {
  server = await startPostgres();
  pooler = await startPgbouncer(server);
});
afterAll(async () => {
  await pooler?.stop();
  await server?.stop();
});

function create() {
  const semel = createSemel({
    store: postgresStore({ url: server.url }),
    namespace: 'prepared',
    prune: false,
  });
  const tool = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'ever',
    identity: ['to'],
    run: async (_: { to: string }) => 'sent',
  });
  return { semel, tool };
}

type Mailer = ReturnType<typeof create>['tool'];

async function stageIn(client: pg.ClientBase, tool: Mailer, to: string): Promise<string> {
  await client.query('BEGIN');
  try {
    const { status } = await tool.stage(client, { to });
    await client.query('COMMIT');
    return status;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
}

async function listPrepared(client: pg.ClientBase): Promise<readonly string[]> {
  const { rows } = await client.query('SELECT name FROM pg_prepared_statements');
  return rows.map(({ name }) => name as string);
}

async function drain(semel: Semel): Promise<number> {
  const { delivered } = await semel.outbox.drain();
  await semel.close();
  return delivered;
}

test('behind a pooler nothing is prepared, and every transaction stages', async (context) => {
  if (pooler === undefined) return context.skip('no PgBouncer can be had');
  const { semel, tool } = create();
  const pool = new pg.Pool({ connectionString: pooler.url, max: 4 });
  const stageOne = async (n: number) => {
    const client = await pool.connect();
    try {
      return await stageIn(client, tool, `pooled-${n}`);
    } finally {
      client.release();
    }
  };
  const stagings = await Promise.all(Array.from({ length: 40 }, (_, n) => stageOne(n)));
  expect(new Set(stagings)).toEqual(new Set(['staged']));
  const client = await pool.connect();
  await client.query('BEGIN');
  expect(await listPrepared(client)).toEqual([]);
  await client.query('COMMIT');
  client.release();
  await pool.end();
  expect(await drain(semel)).toBe(40);
});

// The last one: from then on this process prepares nothing.
test('a session of its own keeps it prepared; one that forgets it fails one transaction, and no other', async () => {
  const { semel, tool } = create();
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  // The first answer shows whose session it is.
  expect(await stageIn(client, tool, 'ada')).toBe('staged');
  expect(await listPrepared(client)).toEqual([]);
  expect(await stageIn(client, tool, 'bob')).toBe('staged');
  expect(await listPrepared(client)).toEqual([expect.stringMatching(/^semel \d+ stage semel$/)]);
  expect(await stageIn(client, tool, 'bob')).toBe('staged before');
  await client.query('DISCARD ALL');
  await expect(stageIn(client, tool, 'cid')).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    retriable: true,
  });
  expect(await stageIn(client, tool, 'cid')).toBe('staged');
  expect(await listPrepared(client)).toEqual([]);
  await client.end();
  expect(await drain(semel)).toBe(3);
});
