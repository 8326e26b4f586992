// Whether a run lives is told by a descriptor that its command inherits, and only to the kernel that made the pipe.

import { spawnSync } from 'node:child_process';
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { freeDescriptors } from '../../src/jobs/liveness/descriptors.ts';
import { closing, eventually, kernel, main, place, type Started, until } from './place.ts';

const job = (...script: readonly string[]) => ['run', 'job', '-q', '--', 'bash', '-c', ...script];
const next = ['run', 'job', '--', 'sh', '-c', 'echo next >> effects'];

async function killGuard({ child, ended }: Started): Promise<void> {
  child.kill('SIGKILL');
  await ended;
}

test('a script that uses descriptors itself keeps its life', async () => {
  const at = place();
  const own = [3, 9, 10, 42, 99, 100, 101, 123, 200, 254, 255].map((fd) => `${fd}>own`).join(' ');
  const first = at.start(job(`exec ${own}; touch begun; ${until('go')}; echo first >> effects`));
  await eventually(() => existsSync(at.path('begun')));
  await killGuard(first);
  expect((await at.semel(next)).stderr).toContain('job has been running since');
  writeFileSync(at.path('go'), '');
  await eventually(() => at.lines('effects').length === 1);
  await eventually(async () => (await at.semel(next)).code === 0 && at.lines('effects').length === 2);
  expect(at.lines('effects')).toEqual(['first', 'next']);
});

test('a command that lets go of its life is noticed, and its end is not concluded from that', async () => {
  const at = place();
  const script = `echo $$ >> pids; ${closing('*-live/*')}; ${until('go')}; echo first >> effects`;
  const first = at.start(...['run', 'job', '--', 'bash', '-c', script]);
  await eventually(() => first.stderrBytes().includes('which shows semel that it is alive'));
  await killGuard(first);
  const rival = await at.semel(next);
  expect(rival.stderr).toContain('job has been running since');
  expect(at.lines('effects')).toEqual([]);
  writeFileSync(at.path('go'), '');
  await eventually(() => at.lines('effects').length === 1);
});

test('that nobody holds a pipe of another kernel says nothing', async () => {
  const at = place();
  const first = at.start(job('echo $$ >> pids; exec sleep 60'));
  const pid = await eventually(() => at.lines('pids')[0]);
  // As it looks from a second machine that sees the same folder: the names are there, their readers are not.
  renameSync(at.path(`ledger.db-live/${kernel}`), at.path('ledger.db-live/0123456789ab'));
  const rival = await at.semel(next);
  expect(rival.stderr).toContain('job has been running since');
  await killGuard(first);
  process.kill(Number(pid), 'SIGKILL');
  expect((await at.semel(next)).stderr).toContain('job has been running since');
  expect(at.lines('effects')).toEqual([]);
  renameSync(at.path('ledger.db-live/0123456789ab'), at.path('mine'));
});

test('that nobody holds a copy of a pipe says nothing', async () => {
  const at = place();
  const first = at.start(job('echo $$ >> pids; exec sleep 60'));
  const pid = await eventually(() => at.lines('pids')[0]);
  // As a folder of the user looks in a sandbox that was forked from this one, on the same machine.
  renameSync(at.path('ledger.db-live'), at.path('original'));
  expect(spawnSync('cp', ['-a', at.path('original'), at.path('ledger.db-live')]).status).toBe(0);
  const rival = await at.semel(next);
  expect(rival.stderr).toContain('job has been running since');
  await killGuard(first);
  process.kill(Number(pid), 'SIGKILL');
  expect((await at.semel(next)).stderr).toContain('job has been running since');
  expect(at.lines('effects')).toEqual([]);
  renameSync(at.path('ledger.db-live'), at.path('copy'));
  renameSync(at.path('original'), at.path('ledger.db-live'));
  expect((await at.semel(next)).code).toBe(0);
  expect(at.lines('effects')).toEqual(['next']);
});

test.each([
  ['its environment', 'env -u SEMEL_HELD'],
  ['any environment', 'env -i SEMEL_STORE="$SEMEL_STORE" HOME="$HOME" TZ=UTC'],
  [
    'environment and descriptors',
    `${process.execPath} -e 'require("child_process").spawnSync("sh", ["-c", process.argv[1]], { stdio: "inherit", env: { ...process.env, SEMEL_HELD: "" } })'`,
  ],
])('an effect inside itself does not wait for itself, also without %s', async (_, without) => {
  const at = place();
  const inner = `${at.word} once mail --id a=1 -- echo inner`;
  const script = without.startsWith('env') ? `${without} ${inner}` : `${without} "${inner}"`;
  const said = await at.semel('once', 'mail', '--id', 'a=1', '--', 'sh', '-c', `${script}; exit 3`);
  expect(said.stderr).toContain('mail was started inside its own command, with the same identity');
  expect(said.stdout).not.toContain('inner');
});

describe('a low limit of open files', () => {
  const limited = (at: ReturnType<typeof place>, limit: number, ...words: string[]) =>
    spawnSync('sh', ['-c', `ulimit -n ${limit}; exec "$@"`, 'sh', process.execPath, main, ...words], {
      cwd: at.folder,
      env: at.env,
      encoding: 'utf8',
    });

  test('of ninety is enough', () => {
    const at = place();
    for (const words of [
      ['run', 'job', '-q', '--', 'echo', 'ran'],
      ['once', 'mail', '--id', 'a=1', '--', 'echo', 'ran'],
    ])
      expect(limited(at, 90, ...words)).toMatchObject({ status: 0, stdout: 'ran\n' });
  });

  test('that is too low is named, and nothing is run', () => {
    const at = place();
    const said = limited(at, 50, 'run', 'job', '-q', '--', 'echo', 'ran');
    expect(said).toMatchObject({ status: 69, stdout: '' });
    expect(said.stderr).toContain('The limit of 50 open files is too low');
    expect(said.stderr).toContain('ulimit -n');
  });

  test('leaves the descriptors that scripts use alone, and room for a spawn', () => {
    expect(freeDescriptors(20_000)).toBe(384);
    expect(freeDescriptors(1_024)).toBe(384);
    expect(freeDescriptors(512)).toBe(384);
    expect(freeDescriptors(256)).toBe(240);
    expect(() => freeDescriptors(30)).toThrow('The limit of 30 open files is too low');
  });
});
