// Rows of the outbox that were changed behind semel's back, and words that no database stores: what is damaged is not
// delivered and is shown, and the other rows are delivered.

import pg from 'pg';
import { createSemel, type Delivery, NotLanded, type Semel } from 'semel';
import { postgresStore } from 'semel/postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownSchema } from '../servers/own-place.ts';

let url: string;
let schema: string;
let pool: pg.Pool;
let namespaces = 0;

beforeAll(async () => {
  ({ url, schema } = await ownSchema());
  pool = new pg.Pool({ connectionString: url, max: 4 });
});
afterAll(() => pool.end());

interface Refund {
  readonly order: string;
  readonly amount?: number;
}

function create(send: (refund: Refund) => unknown = () => 'ok') {
  namespaces += 1;
  const namespace = `damaged-${namespaces}`;
  const semel: Semel = createSemel({ store: postgresStore({ url, schema }), namespace, prune: false });
  const sent: Refund[] = [];
  const make = (name: string) =>
    semel.tool({
      name,
      effect: 'irreversible',
      per: 'ever',
      identity: ['order'],
      async run(refund: Refund) {
        sent.push(refund);
        return send(refund);
      },
    });
  return { semel, namespace, sent, refund: make('refund'), other: make('other') };
}

async function inTransaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } finally {
    client.release();
  }
}

const columns = ['call ', 'contract', 'key', 'version', 'group_name', 'fingerprint', 'caller'];
const changes: Record<string, string> = {
  'another amount': `call = replace(call, '100', '900')`,
  'another field': `call = replace(call, 'amount', 'amounT')`,
  'what should be JSON': `call = '{'`,
  'no call': `call = 'null'`,
  'another caller': `call = replace(call, '"identity":{', '"identity":{"caller":"mallory",')`,
  'another tool': `contract = 'other'`,
  'another key': `key = key || 'x'`,
  'another version': `version = '1.9'`,
  'another group': `group_name = 'b'`,
  'other args under its key': `fingerprint = 'x'`,
  "another caller's": `caller = 'mallory'`,
  'those of another row': `call = (SELECT call FROM semel.outbox WHERE call LIKE '%"fine%' ORDER BY n DESC LIMIT 1)`,
};

test('every column that a delivery depends on is tried', () => {
  for (const column of columns)
    expect(Object.values(changes).some((change) => change.startsWith(column))).toBe(true);
});

describe('a row is in doubt and not delivered where it was changed', () => {
  test.each(Object.entries(changes))('%s', async (_, change) => {
    const { semel, namespace, refund, sent } = create();
    await inTransaction(async (tx) => {
      await refund.stage(tx, { order: 'fine' });
      await refund.stage(tx, { order: 'damaged', amount: 100 }, { group: 'a' });
      await refund.stage(tx, { order: 'later' });
    });
    await pool.query(
      `UPDATE semel.outbox SET ${change} WHERE namespace = $1 AND call LIKE '%damaged%'`.replaceAll(
        'semel.',
        `${schema}.`,
      ),
      [namespace],
    );
    const told: Delivery[] = [];
    const report = await semel.outbox.drain({ onDelivery: (delivery) => told.push(delivery) });
    expect(report).toEqual({ delivered: 2, retried: 0, inDoubt: 1, dead: 0 });
    expect(sent.map(({ order }) => order).sort()).toEqual(['fine', 'later']);
    expect(told.find(({ outcome }) => outcome === 'in doubt')?.reason).toContain(
      'was changed since it was staged',
    );
    await semel.close();
  });
});

test('unreadable drift of one row does not stop the relay', async () => {
  const { semel, namespace, refund, sent } = create();
  await inTransaction(async (tx) => {
    for (const order of ['a', 'b']) await refund.stage(tx, { order });
  });
  const text = "UPDATE semel.outbox SET drift = '{' WHERE namespace = $1 AND call LIKE '%\"a%'";
  await pool.query(text.replaceAll('semel.', `${schema}.`), [namespace]);
  expect(await semel.outbox.drain()).toMatchObject({ delivered: 2 });
  expect(sent).toHaveLength(2);
  await semel.close();
});

test.each(['half of a pair: \ud83d', 'a zero: \0'])(
  'words of a provider that no database stores do not make a row immortal: %j',
  async (words) => {
    const { semel, refund, sent } = create(() => {
      throw new NotLanded(words);
    });
    await inTransaction((tx) => refund.stage(tx, { order: 'a' }));
    const report = await semel.outbox.drain({ maxTries: 3, backoff: 1, maxBackoff: 1 });
    // The last of the attempts that were due may come after `drain` looked.
    expect(report.dead + report.retried).toBe(sent.length);
    for (let looks = 0; sent.length < 3 && looks < 100; looks += 1)
      await semel.outbox.drain({ maxTries: 3, backoff: 1, maxBackoff: 1 });
    expect(sent).toHaveLength(3);
    await semel.close();
  },
);

test.each([
  ['', /is empty/],
  ['a\0b', /control characters/],
  ['a\ud800', /surrogate/],
  ['g'.repeat(501), /500 is the most/],
  [7, /not a string/],
  [null, /not a string/],
  [{}, /has no name/],
  [{ name: 'a', stict: true }, /no field `stict`/],
  [{ name: 'a', strict: 'yes' }, /not true or false/],
])('a group that nobody could name is refused before the database sees it: %j', async (group, message) => {
  const { semel, refund } = create();
  await inTransaction(async (tx) => {
    await expect(refund.stage(tx, { order: 'a' }, { group: group as string })).rejects.toThrow(message);
    // The caller's transaction goes on.
    await refund.stage(tx, { order: 'b' });
  });
  await semel.close();
});

test('an intent that a trigger keeps out of the table does not count as staged', async () => {
  const { semel, refund, sent } = create();
  await semel.open();
  const drops = `CREATE FUNCTION semel.drops() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    CREATE TRIGGER drops BEFORE INSERT ON semel.outbox FOR EACH ROW EXECUTE FUNCTION semel.drops()`;
  const sql = (text: string) => pool.query(text.replaceAll('semel.', `${schema}.`));
  await sql(drops);
  try {
    await inTransaction(async (tx) => {
      const staging = refund.stage(tx, { order: 'a' });
      await expect(staging).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
    });
  } finally {
    await sql('DROP TRIGGER drops ON semel.outbox');
  }
  await inTransaction((tx) => refund.stage(tx, { order: 'a' }));
  expect(await semel.outbox.drain()).toMatchObject({ delivered: 1 });
  expect(sent).toHaveLength(1);
  await semel.close();
});
