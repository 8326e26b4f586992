// A sender delivers an event three times, two of them at once, and the shop is killed in between. A client does the same with its
// request. Where the effect is in the shop's own transaction or the bank knows the key, it lands once; elsewhere it is a doubt that
// is shown, and never a second effect.

import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { createSemel } from 'semel';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startNode } from '../processes/node-process.ts';
import { newScratch } from '../processes/scratch.ts';
import { ownSchema } from '../servers/own-place.ts';
import { startEffectServer } from '../support/effect-server/index.ts';
import { stripeBody, stripeSignature } from './senders.ts';
import type { Point, ShopJob, ShopLine, Way } from './shop.ts';

const shop = new URL('shop.ts', import.meta.url);
let postgres: ShopJob['postgres'];
let pool: pg.Pool;

beforeAll(async () => {
  postgres = await ownSchema();
  pool = new pg.Pool({ connectionString: postgres.url, max: 2 });
  await pool.query(`CREATE TABLE ${postgres.schema}.effects (intent text)`);
});
afterAll(() => pool.end());

type Send = (port: number) => Promise<number | 'cut'>;

/** The status of the answer. */
async function post(port: number, path: string, headers: Record<string, string>, body: string) {
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 'cut';
  }
}

const senders: Record<string, (id: string) => Send> = {
  'a webhook': (id) => (port) => {
    const body = stripeBody(id);
    return post(port, '/hooks', { 'stripe-signature': stripeSignature(body) }, body);
  },
  'a request with a key': (id) => (port) =>
    post(port, '/orders', { 'idempotency-key': id }, JSON.stringify({ id })),
};

async function play(way: Way, dieAt: Point, sender: (id: string) => Send) {
  using scratch = newScratch('http-kill');
  await using bank = await startEffectServer({
    log: scratch.path('effects.jsonl'),
    targets: { bank: { keyed: way === 'keyed' ? { windowMs: 90 * 86_400_000 } : null } },
  });
  const id = `evt_${way}_${dieAt}_${sender === senders['a webhook']}`.replace(/ /g, '_');
  const ledger = scratch.path('ledger.db');
  const job: ShopJob = { way, url: bank.url, ledger, postgres };
  const send = sender(id);

  const first = startNode<ShopLine>(shop, { ...job, dieAt });
  expect(await send((await first.line((line) => 'port' in line)).port)).toBe('cut');
  expect(await first.ended).toMatchObject({ signal: 'SIGKILL' });

  const second = startNode<ShopLine>(shop, job);
  const { port } = await second.line((line) => 'port' in line);
  const atOnce = await Promise.all([send(port), send(port)]);
  const later = await send(port);
  await second.finish();

  if (way === 'sqlite transaction') {
    const database = new DatabaseSync(ledger);
    const effects = database.prepare('SELECT * FROM effects').all().length;
    database.close();
    return { atOnce, later, effects, doubts: 0 };
  }
  const { rows } = await pool.query(`SELECT FROM ${postgres.schema}.effects WHERE intent = $1`, [id]);
  const effects = bank.effects().length + rows.length;
  if (way === 'transaction') return { atOnce, later, effects, doubts: 0 };
  await using semel = createSemel({
    store: `sqlite:${ledger}`,
    namespace: 'shop',
    onWarning: () => undefined,
  });
  const { items } = await semel.doubts.list();
  return { atOnce, later, effects, doubts: items.length };
}

describe.each(Object.entries(senders))('%s', (name, sender) => {
  const done = name === 'a webhook' ? 200 : 201;
  const held = name === 'a webhook' ? 503 : 409;

  test.concurrent.each(['before effect', 'after effect'] as const)(
    'keyed, killed %s: it lands once',
    async (point) => {
      const { atOnce, later, effects, doubts } = await play('keyed', point, sender);
      expect(atOnce).toContain(done);
      expect(later).toBe(done);
      expect({ effects, doubts }).toEqual({ effects: 1, doubts: 0 });
    },
  );

  test.concurrent.each(
    (['transaction', 'sqlite transaction'] as const).flatMap((way) =>
      (['before effect', 'after effect', 'after commit'] as const).map((point) => [way, point] as const),
    ),
  )('in a %s, killed %s: it lands once', async (way, point) => {
    const { atOnce, later, effects } = await play(way, point, sender);
    expect(atOnce).toContain(done);
    expect(later).toBe(done);
    expect(effects).toBe(1);
  });

  test.concurrent.each(['before effect', 'after effect'] as const)(
    'without a key, killed %s: a doubt that is shown, and no second effect',
    async (point) => {
      const { atOnce, later, effects, doubts } = await play('plain', point, sender);
      expect([...atOnce, later]).toEqual([held, held, held]);
      expect({ effects, doubts }).toEqual({ effects: point === 'after effect' ? 1 : 0, doubts: 1 });
    },
  );
});
