// A relay in a process of its own, which kills itself at a given point, or is killed from outside. Its effects are rows of a
// table that it commits at once through a connection of its own: what landed, landed.

import pg from 'pg';
import { createSemel, landed, notLanded } from '../../src/index.ts';
import type { Store } from '../../src/store/store.ts';
import { postgresStore } from '../../src/stores/postgres/index.ts';

export const points = [
  'after take',
  'before mark',
  'after mark',
  'after effect',
  'before settle',
  'after settle',
  'before removal',
  'after removal',
] as const;
export type Point = (typeof points)[number];

export interface RelayJob {
  readonly url: string;
  readonly schema: string;
  readonly namespace: string;
  readonly dieAt?: Point;
  readonly untilEmpty?: boolean;
  readonly concurrency?: number;
}

/** `plain` has nothing that decides a doubt; `verified` can ask the target. */
export const toolNames = ['plain', 'verified'] as const;

export function relaySemel({ url, schema, namespace }: RelayJob, store: Store, pool: pg.Pool) {
  const semel = createSemel({ store, namespace, prune: false });
  const effects = `${schema}.effects`;
  const land = (name: string, id: string) =>
    pool.query(`INSERT INTO ${effects} (namespace, tool, id) VALUES ($1, $2, $3)`, [namespace, name, id]);
  const common = {
    effect: 'irreversible',
    per: 'ever',
    lease: '400ms',
    timeout: '3s',
    verifyAfter: '0s',
  } as const;
  const plain = semel.tool({
    ...common,
    name: 'plain',
    async run({ id }: { id: string }) {
      await land('plain', id);
      die('after effect');
      return id;
    },
  });
  const verified = semel.tool({
    ...common,
    name: 'verified',
    async run({ id }: { id: string }) {
      await land('verified', id);
      die('after effect');
      return id;
    },
    async verify({ id }) {
      const found = await pool.query(
        `SELECT FROM ${effects} WHERE namespace = $1 AND tool = 'verified' AND id = $2`,
        [namespace, id],
      );
      return found.rows.length > 0 ? landed(id) : notLanded();
    },
  });
  void url;
  return { semel, plain, verified };
}

let dieAt: Point | undefined;

/** From now on, the process dies at this point. */
export function dieWhen(point: Point | undefined): void {
  dieAt = point;
}

export function die(point: Point): void {
  if (point === dieAt) process.kill(process.pid, 'SIGKILL');
}

/** The store, with a death before or after what it is asked. */
export function mortal(store: Store): Store {
  const outbox = store.outbox!;
  const around =
    <Args extends unknown[], T>(
      before: Point | undefined,
      after: Point | undefined,
      ask: (...args: Args) => Promise<T>,
    ) =>
    async (...args: Args): Promise<T> => {
      if (before !== undefined) die(before);
      const answer = await ask(...args);
      const isEmpty = Array.isArray(answer) && answer.length === 0;
      if (after !== undefined && !isEmpty) die(after);
      return answer;
    };
  return {
    ...store,
    settle: around('before settle', 'after settle', store.settle),
    outbox: {
      ...outbox,
      // As a store does whose settlement cannot take the row along.
      ...(/mark|removal/.test(dieAt ?? '') && { removesLanded: false }),
      take: around(undefined, 'after take', outbox.take),
      mark: around('before mark', 'after mark', outbox.mark),
      remove: around('before removal', 'after removal', outbox.remove),
    },
  };
}

if (process.argv[1]?.endsWith('relay-worker.ts')) {
  const job = JSON.parse(process.argv[2] as string) as RelayJob;
  dieWhen(job.dieAt);
  const pool = new pg.Pool({ connectionString: job.url, max: 4 });
  pool.on('error', () => {});
  const store = mortal(postgresStore({ url: job.url, schema: job.schema }));
  const { semel } = relaySemel(job, store, pool);
  const stop = new AbortController();
  process.stdin.on('end', () => stop.abort()).resume();
  const options = {
    signal: stop.signal,
    idle: '50ms',
    backoff: '20ms',
    concurrency: job.concurrency ?? 4,
  } as const;
  console.log(JSON.stringify({ started: true }));
  const report = await (job.untilEmpty ? semel.outbox.drain(options) : semel.outbox.relay(options));
  console.log(JSON.stringify({ report }));
  await semel.close();
  await pool.end();
  process.exit();
}
