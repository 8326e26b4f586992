// A process that holds a claim is killed: the next call on the same machine does not wait for its lease. Whatever could be alive is
// waited for. All leases here are six hours long.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { createSemel, type Result } from '../../src/index.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { place } from '../cli/place.ts';
import { startNode } from '../processes/node-process.ts';
import { newScratch } from '../processes/scratch.ts';
import { type HolderJob, type HolderLine, openSemel, toolOf } from './holder.ts';

const scratch = newScratch('dead-holder');
afterAll(() => scratch[Symbol.dispose]());

const linux = test.runIf(process.platform === 'linux');
const file = new URL('./holder.ts', import.meta.url);
let made = 0;

function newJob(over: Partial<HolderJob> = {}): HolderJob {
  made += 1;
  return { ledger: scratch.path(`ledger-${made}.db`), id: `mail ${made}`, how: 'tool', ...over };
}

async function startHolder(job: HolderJob) {
  const holder = startNode<HolderLine>(file, job);
  await holder.line((line) => 'holds' in line);
  return holder;
}

async function killHolder(job: HolderJob): Promise<void> {
  const holder = await startHolder(job);
  await holder.kill();
}

/** The same call from this process. */
async function call(job: HolderJob): Promise<Result<unknown>> {
  await using semel = openSemel({ ...job, how: 'tool' });
  return await toolOf(semel, job, () => 'executed').try({ id: job.id });
}

function word(result: Result<unknown>): unknown {
  return result.ok ? result.value : result.error.code;
}

linux('what a killed process dispatched is in doubt at once, and says why', async () => {
  const job = newJob();
  await killHolder(job);
  const result = await call(job);
  expect(result).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  expect(!result.ok && result.error.message).toContain('The process that ran it died');
  await using semel = openSemel(job);
  const { items } = await semel.doubts.list();
  const history = await semel.records.history(items[0]?.key ?? '');
  expect(history).toMatchObject([{ type: 'resolved', detail: { act: 'died', by: 'semel' } }]);
});

linux('what a killed process did not dispatch runs at once, but not for ever', async () => {
  const job = newJob({ dispatch: 'explicit', maxAttempts: 2 });
  await killHolder(job);
  await killHolder(job);
  expect(word(await call(job))).toBe('POISON');
});

linux('`verify` is asked at once: "landed" settles it', async () => {
  const job = newJob({ verify: 'landed' });
  await killHolder(job);
  expect(word(await call(job))).toBe('found');
});

linux('"not landed" waits for what a child process of the dead one could still send', async () => {
  const job = newJob({ verify: 'not landed' });
  await killHolder(job);
  const result = await call(job);
  expect(word(result)).toBe('IN_DOUBT');
  expect(!result.ok && result.error.retryAfterMs).toBeGreaterThan(9 * 60_000);
});

linux('"not landed" does not wait for the timeout where only the dead process could send', async () => {
  const job = newJob({ verify: 'not landed', how: 'via fetch' });
  await killHolder(job);
  const result = await call(job);
  expect(word(result)).toBe('IN_DOUBT');
  expect(!result.ok && result.error.retryAfterMs).toBeLessThanOrEqual(60_000);
});

linux('a call that already waits goes on when the holder dies', async () => {
  const job = newJob({ verify: 'landed' });
  const holder = await startHolder(job);
  await using semel = openSemel(job);
  const busy = new Promise((resolve) => semel.on('busy', resolve));
  const waiting = toolOf(semel, job, () => 'executed', 'wait').try({ id: job.id });
  await busy;
  await holder.kill();
  expect(word(await waiting)).toBe('found');
});

linux('the command shows which holders are dead', async () => {
  const at = place();
  const job = newJob({ ledger: at.store.replace(/^sqlite:/, '') });
  const holder = await startHolder(job);
  const shown = async () => (await at.semel('ls', '--namespace', 'crash')).stdout;
  expect(await shown()).toMatch(/mail\.send +running (?!.*dead)/);
  await holder.kill();
  expect(await shown()).toMatch(/mail\.send +running, dead/);
  const doubt = (await at.semel('doubt', '--namespace', 'crash')).stdout;
  expect(doubt).toMatch(/^ {2}\S+ {2}its process died after it had dispatched: in doubt for /m);
});

linux('a process that stands still is alive', async () => {
  const job = newJob();
  const holder = await startHolder(job);
  holder.signal('SIGSTOP');
  await eventually(() => stateOf(holder.pid) === 'T');
  expect(word(await call(job))).toBe('IN_FLIGHT');
  await holder.kill();
  expect(word(await call(job))).toBe('IN_DOUBT');
});

linux('a zombie counts as alive: its threads may still be ending', async () => {
  const job = newJob();
  // The parent becomes `sleep`, which reaps nobody.
  const script = `"$0" --disable-warning=ExperimentalWarning "$1" "$2" <&3 & echo "{\\"pid\\":$!}"; exec sleep 600`;
  const parent = spawn('sh', ['-c', script, process.execPath, fileURLToPath(file), JSON.stringify(job)], {
    stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
  });
  try {
    let pid = 0;
    for await (const line of createInterface({ input: parent.stdout as Readable })) {
      const said = JSON.parse(line) as { pid?: number; holds?: string };
      pid = said.pid ?? pid;
      if (said.holds !== undefined && pid > 0) break;
    }
    process.kill(pid, 'SIGKILL');
    await eventually(() => stateOf(pid) === 'Z');
    expect(word(await call(job))).toBe('IN_FLIGHT');
  } finally {
    parent.kill('SIGKILL');
    await once(parent, 'exit');
  }
});

for (const how of ['begin', 'named'] as const)
  test(`the lease decides about a killed process: ${how}`, async () => {
    const job = newJob({ how });
    await killHolder(job);
    expect(word(await call(job))).toBe('IN_FLIGHT');
  });

test('the lease decides where other machines may use the ledger', async () => {
  const job = newJob();
  await killHolder(job);
  const machine = { fileSystem: () => 0x12345678 };
  const store = sqliteStore({ path: job.ledger, machine } as never);
  await using semel = createSemel({ store, namespace: 'crash', onWarning: () => undefined });
  expect((await semel.open()).isLocal).toBe(false);
  expect(word(await toolOf(semel, job, () => 'executed').try({ id: job.id }))).toBe('IN_FLIGHT');
});

linux('in a copy of the ledger too, only a dead process is called dead', async () => {
  const job = newJob();
  const holder = await startHolder(job);
  const copy = { ...job, ledger: scratch.path('copy.db') };
  for (const side of ['', '-wal', '-shm', '.id'])
    cpSync(`${job.ledger}${side}`, `${copy.ledger}${side}`, { force: true });
  const heard = word(await call(copy));
  // A copy beside its original may be refused for other reasons.
  expect(['IN_FLIGHT', 'STORE_UNSAFE']).toContain(heard);
  await holder.kill();
});

const canUnshare = spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0;

/** The process runs in a process id namespace of its own, as in a container. */
function inContainer(job: HolderJob) {
  const child = spawn(
    'unshare',
    [
      '--pid',
      '--fork',
      '--mount-proc',
      '--kill-child',
      process.execPath,
      fileURLToPath(file),
      JSON.stringify(job),
    ],
    { stdio: ['pipe', 'pipe', 'ignore'] },
  );
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    child,
    next: async () => JSON.parse(String((await lines.next()).value)) as Record<string, string>,
  };
}

test.runIf(canUnshare)('a live process outside of a container is not called dead inside', async () => {
  const job = newJob();
  const holder = await startHolder(job);
  const { child, next } = inContainer({ ...job, how: 'look' });
  expect(await next()).toEqual({ heard: 'IN_FLIGHT' });
  await once(child, 'exit');
  await holder.kill();
});

test.runIf(canUnshare)('a live process in a container is not called dead outside', async () => {
  const job = newJob();
  const { child, next } = inContainer(job);
  expect(await next()).toEqual({ holds: job.id });
  expect(word(await call(job))).toBe('IN_FLIGHT');
  child.kill('SIGKILL');
  await once(child, 'exit');
});

/** The kernel's letter for what a process does. */
function stateOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.[0];
  } catch {
    return undefined;
  }
}

async function eventually(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
}
