// A relay that dies at each point of a delivery, in a real process that is really killed. The next relay delivers what the
// target does not have, and says "in doubt" where nobody can tell.

import pg from 'pg';
import { postgresStore } from 'semel/postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startNode } from '../processes/node-process.ts';
import { ownSchema } from '../servers/own-place.ts';
import { type Point, points, type RelayJob, relaySemel } from './relay-worker.ts';

let url: string;
let schema: string;
let pool: pg.Pool;

beforeAll(async () => {
  ({ url, schema } = await ownSchema());
  pool = new pg.Pool({ connectionString: url, max: 6 });
  pool.on('error', () => {});
  await pool.query(`CREATE TABLE ${schema}.effects (namespace text, tool text, id text)`);
});
afterAll(() => pool.end());

/** What a tool without `verify` is left with: the effect, and whether a person has to decide. */
const expected: Record<Point, { readonly effects: number; readonly inDoubt: boolean }> = {
  'after take': { effects: 1, inDoubt: false },
  'before mark': { effects: 0, inDoubt: true },
  'after mark': { effects: 0, inDoubt: true },
  'after effect': { effects: 1, inDoubt: true },
  'before settle': { effects: 1, inDoubt: true },
  'after settle': { effects: 1, inDoubt: false },
  'before removal': { effects: 1, inDoubt: false },
  'after removal': { effects: 1, inDoubt: false },
};

describe.each(points)('a relay that dies %s', (dieAt) => {
  test('leaves one effect, or a doubt that is shown, and nothing is lost', async () => {
    const namespace = `crash-${dieAt.replace(' ', '-')}`;
    const job: RelayJob = { url, schema, namespace };
    const { semel, plain, verified } = relaySemel(job, postgresStore({ url, schema }), pool);
    for (const tool of [plain, verified]) {
      const client = await pool.connect();
      await client.query('BEGIN');
      await tool.stage(client, { id: '1' });
      await client.query('COMMIT');
      client.release();
      const victim = startNode(new URL('relay-worker.ts', import.meta.url), {
        ...job,
        dieAt,
        untilEmpty: true,
      });
      expect(await victim.ended, victim.errors()).toMatchObject({ signal: 'SIGKILL' });
      const effectsOf = async () => {
        const sql = `SELECT FROM ${schema}.effects WHERE namespace = $1 AND tool = $2`;
        return (await pool.query(sql, [namespace, tool.contract.name])).rows.length;
      };
      const rowsOf = async () => {
        const sql = `SELECT state FROM ${schema}.outbox WHERE namespace = $1 AND contract = $2`;
        return (await pool.query(sql, [namespace, tool.contract.name])).rows;
      };
      // The row goes with the settlement, or after it.
      if (dieAt === 'after settle') expect(await rowsOf()).toEqual([]);
      if (dieAt === 'before settle') expect(await rowsOf()).toHaveLength(1);
      // The dead relay's lease and its hold on the row run out.
      const isOver = async () => {
        await pool.query(`UPDATE ${schema}.outbox SET due = 0, ready = 0 WHERE namespace = $1`, [namespace]);
        await semel.outbox.drain({ tools: [tool] });
        const rows = await rowsOf();
        return rows.length === 0 || (tool === plain && rows[0].state === 1);
      };
      while (!(await isOver())) await new Promise((resolve) => setTimeout(resolve, 200));
      if (tool === verified) expect(await effectsOf()).toBe(1);
      else {
        const { effects, inDoubt } = expected[dieAt];
        expect(await effectsOf()).toBe(effects);
        expect((await rowsOf()).length > 0).toBe(inDoubt);
        expect((await semel.doubts.list({ contract: 'plain' })).items).toHaveLength(inDoubt ? 1 : 0);
      }
    }
    await semel.close();
  });
});
