// A program on one SQLite file, its tables and the ledger, in a process of its own that kills itself at a given point.

import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createSemel, type Duration, landed, notLanded } from '../../src/index.ts';
import type { Store } from '../../src/store/store.ts';
import { die, dieWhen, mortal, type Point } from './relay-worker.ts';
import { libraries, shop } from './sqlite-place.ts';

export const callPoints = ['before the call', 'in run', 'before commit', 'after commit'] as const;

export interface SqliteJob {
  readonly path: string;
  readonly library: string;
  /** What landed, one line each. */
  readonly target: string;
  readonly what: 'call' | 'stage' | 'relay';
  readonly dieAt: Point | (typeof callPoints)[number];
  readonly lease?: Duration;
}

export function effectsIn(target: string): readonly string[] {
  return existsSync(target) ? readFileSync(target, 'utf8').split('\n').slice(0, -1) : [];
}

/** `plain` has nothing that decides a doubt; `verified` can ask the target. */
export function mailSemel(store: Store, target: string, lease: Duration = '400ms') {
  const semel = createSemel({ store, namespace: 'mail', prune: false });
  const common = {
    effect: 'irreversible',
    per: 'ever',
    lease,
    timeout: '3s',
    verifyAfter: '0s',
    async run({ id }: { id: string }) {
      appendFileSync(target, `${id}\n`);
      die('after effect');
      return id;
    },
  } as const;
  const plain = semel.tool({ ...common, name: 'plain' });
  const verified = semel.tool({
    ...common,
    name: 'verified',
    verify: async ({ id }) => (effectsIn(target).includes(id) ? landed(id) : notLanded()),
  });
  return { semel, plain, verified };
}

if (process.argv[1]?.endsWith('sqlite-worker.ts')) {
  const {
    path,
    library: name,
    target,
    what,
    dieAt,
    lease,
  } = JSON.parse(process.argv[2] as string) as SqliteJob;
  const library = libraries.find((each) => each.name === name)!;
  const at = (point: (typeof callPoints)[number]) => {
    if (point === dieAt) process.kill(process.pid, 'SIGKILL');
  };
  if (what === 'relay') {
    dieWhen(dieAt as Point);
    const { semel } = mailSemel(mortal(library.store(path)), target, lease);
    await semel.outbox.drain({ backoff: '20ms' });
  } else {
    const { database, define, insert } = await shop(library, path);
    const place = define(() => at('in run'));
    database.exec('BEGIN');
    insert(database, { id: 'data', cents: 1 });
    at('before the call');
    if (what === 'call') await place.inTransaction(database, { id: 'a', cents: 1 });
    else await mailSemel(library.store(path), target).plain.stage(database, { id: 'a' });
    at('before commit');
    database.exec('COMMIT');
    at('after commit');
  }
  process.exit();
}
