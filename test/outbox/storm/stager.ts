// A process that stages intents together with rows of its own, until it is killed or asked to finish. Several of them stage the
// same intents, and some transactions are rolled back.

import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { createSemel, isSemelError } from '../../../src/index.ts';
import { postgresStore } from '../../../src/stores/postgres/index.ts';
import { monotonicMs } from '../../crash/storm/terms.ts';
import { chanceOf } from '../../processes/chance.ts';
import { jobOf, onFinish, print } from '../../processes/child.ts';
import { contracts, forgetful, groupOf, makeTools, namespace } from './terms.ts';

export interface StagerJob {
  readonly database: string;
  readonly url: string;
  readonly worker: string;
  readonly seed: number;
  readonly since: number;
  readonly perSecond: number;
}

const { database, url, worker, seed, since, perSecond } = jobOf<StagerJob>();
const chance = chanceOf(seed);
const pool = new pg.Pool({ connectionString: database, max: 4 });
pool.on('error', () => undefined);
// While a client is checked out, the pool does not listen: a connection that is cut between two statements would end the process.
pool.on('connect', (client) => client.on('error', () => undefined));
// One that is cut off between two statements tells nobody else.
pool.on('connect', (client) => client.on('error', () => undefined));
const semel = createSemel({ store: postgresStore({ url: database }), namespace, onWarning: () => undefined });
const tools = makeTools(semel, url, () => undefined);
let isFinishing = false;
let own = 0;
onFinish(() => {
  isFinishing = true;
});

async function stageSome(): Promise<void> {
  const latest = Math.floor(((monotonicMs() - since) / 1000) * perSecond);
  const nth = Math.max(0, latest - chance.whole(perSecond));
  const client = await pool.connect();
  let isBroken = true;
  try {
    await client.query('BEGIN');
    const contract = contracts[nth % contracts.length] as string;
    own += 1;
    // Those of the forgetful contract are nobody else's.
    await stageOne(client, contract, contract === forgetful ? `${worker}.${own}` : String(nth), groupOf(nth));
    if (chance.is(0.3)) await stageOne(client, 'keyed', `more ${nth}`, null);
    await delay(chance.between(0, 15));
    await client.query(chance.is(0.12) ? 'ROLLBACK' : 'COMMIT');
    isBroken = false;
  } finally {
    client.release(isBroken);
  }
}

async function stageOne(
  client: pg.PoolClient,
  contract: string,
  id: string,
  group: string | null,
): Promise<void> {
  const intent = `${contract} ${id}`;
  const notBefore = chance.is(0.1) ? Date.now() + 400 : undefined;
  await tools.get(contract)!.stage(
    client,
    { intent, wording: `${worker} ${chance.whole(1e9)}` },
    {
      run: 'storm',
      ...(group === null ? {} : { group: { name: group, strict: true } }),
      ...(notBefore === undefined ? {} : { notBefore }),
    },
  );
  await client.query(
    'INSERT INTO orders (intent, group_name, not_before) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
    [intent, group, notBefore ?? null],
  );
}

async function lane(): Promise<void> {
  while (!isFinishing) {
    try {
      await stageSome();
      print({ staged: true });
    } catch (error) {
      // A connection that was cut, a deadlock, a server that closes: its transaction left nothing.
      if (error instanceof TypeError || isSemelError(error, 'INVALID_ARGS')) throw error;
    }
    await delay(chance.between(0, 60));
  }
}

await Promise.all([lane(), lane()]);
await semel.close();
await pool.end();
process.exit(0);
