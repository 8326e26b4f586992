// Several real processes on one file.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { take, theKey, theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { newPath } from './sqlite-folder.ts';

interface Worker {
  readonly process: ChildProcess;
  readonly won: () => string[];
}

async function start(path: string, keys: number, together: number): Promise<Worker> {
  const script = join(import.meta.dirname, 'sqlite-race-worker.ts');
  const child = spawn(process.execPath, [script, path, String(keys), String(together)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  await once(child.stdout, 'data');
  return { process: child, won: () => output.split('\n').slice(1, -1) };
}

const go = ({ process: child }: Worker) => child.stdin?.end('go\n');
const over = async ({ process: child }: Worker) => (await once(child, 'close'))[0];

test('six processes race over 200 keys: each key has exactly one winner', async () => {
  const path = newPath();
  const workers = await Promise.all(Array.from({ length: 6 }, (_, i) => start(path, 200, i < 3 ? 1 : 20)));
  const ends = workers.map(over);
  for (const worker of workers) go(worker);
  expect(await Promise.all(ends)).toEqual(workers.map(() => 0));
  const won = workers.flatMap((worker) => worker.won());
  expect(won).toHaveLength(200);
  expect(new Set(won).size).toBe(200);

  const store = sqliteStore({ path });
  for (const worker of workers) {
    for (const key of worker.won()) {
      const record = await store.read(theNamespace, key);
      expect(record).toMatchObject({ status: 'succeeded', attempts: 1, doubtFence: null });
      expect(record?.result?.text).toBe(`"${worker.process.pid}"`);
    }
  }
  await store.close();
});

test('every confirmed write survives a killed process, and the others continue', async () => {
  const path = newPath();
  const workers = await Promise.all([start(path, 4000, 4), start(path, 4000, 4), start(path, 300, 4)]);
  const [first, second, last] = workers as [Worker, Worker, Worker];
  const ends = workers.map(over);
  for (const worker of workers) go(worker);
  for (const worker of [first, second]) {
    while (worker.won().length < 20) await new Promise((resolve) => setTimeout(resolve, 5));
    worker.process.kill('SIGKILL');
  }
  await Promise.all(ends);
  expect(last.process.exitCode).toBe(0);

  const won = workers.flatMap((worker) => worker.won());
  expect(new Set(won).size).toBe(won.length);
  const store = sqliteStore({ path });
  for (const key of won) expect(await store.read(theNamespace, key), key).toBeDefined();
  await store.close();
});

test('what another process adds to a running record is seen when it is settled by what its holder remembers', async () => {
  const path = newPath();
  const [here, there] = [sqliteStore({ path }), sqliteStore({ path })];
  const dead = await take(there, { crossing: true, leaseMs: 0 });
  const holder = await take(here, { for: 'rerun' });
  await dead.succeed('"sent"');
  expect(await holder.settle('released')).toMatchObject({ record: { status: 'succeeded' } });
  expect(await here.read(theNamespace, theKey)).toMatchObject({ result: { text: '"sent"' } });
  await Promise.all([here.close(), there.close()]);
});

/** Whoever had lost it would find its log removed by the next process that looks into the ledger with an older SQLite. */
test.runIf(process.platform === 'linux').each([
  ['closed', 'node:sqlite'],
  ['left open', 'node:sqlite'],
  ['left open', 'better-sqlite3'],
])(
  'a thread that ends with its store %s takes no lock on the file from the other threads (%s)',
  (ends, library) => {
    const script = join(import.meta.dirname, 'sqlite-thread-worker.ts');
    const { stdout } = spawnSync(process.execPath, [script, newPath(), ends, library], { encoding: 'utf8' });
    const { before, after } = JSON.parse(stdout);
    expect(before).toHaveLength(1);
    expect(after).toEqual(before);
  },
);
