// SIGKILL of the guard, of its command, of both: an effect is never repeated silently, a run is taken over, and nothing
// overlaps.

import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { daily, eventually, type Place, place, type Started, until } from './place.ts';

/** It waits for `go`, where it is to live on. */
const command = (waits = true) => [
  'sh',
  '-c',
  `echo $$ >> pids; ${waits ? `${until('go')}; ` : ''}echo x >> effects; echo done`,
];

async function pidOf(at: Place, nth = 0): Promise<number> {
  return Number(await eventually(() => at.lines('pids')[nth], 'the command'));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie whose guard was killed before it could be reaped is no process any more.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

async function killed(started: Started): Promise<void> {
  started.child.kill('SIGKILL');
  await new Promise((resolve) => started.child.once('exit', resolve));
}

describe('a run whose guard is killed', () => {
  test('stays taken as long as its command lives, and is taken over when that is gone', async () => {
    const at = place();
    const first = at.start('run', 'job', ...daily, '--', ...command());
    const pid = await pidOf(at);
    await killed(first);
    expect(isAlive(pid)).toBe(true);
    const busy = await at.semel('run', 'job', ...daily, '--', 'sh', '-c', 'echo overlap >> effects');
    expect([busy.code, busy.stderr]).toEqual([0, expect.stringContaining('job has been running since')]);
    writeFileSync(at.path('go'), '');
    await eventually(() => !isAlive(pid), 'its end');
    const next = await at.semel('run', 'job', ...daily, '--', 'sh', '-c', 'echo second >> effects');
    expect(next.code).toBe(0);
    expect(next.stderr).toContain('attempt 1 died');
    expect(at.lines('effects')).toEqual(['x', 'second']);
  });

  test('stays taken past its lease, and by what the command left behind too', async () => {
    const at = place();
    const script = `(${until('go')}; echo left >> effects) & echo $! >> pids; wait`;
    const first = at.start('run', 'job', ...daily, '--lease', '10s', '--', 'sh', '-c', script);
    const pid = await pidOf(at);
    await killed(first);
    await new Promise((resolve) => setTimeout(resolve, 11_000));
    const busy = await at.semel(
      'run',
      'job',
      ...daily,
      '--lease',
      '10s',
      '--',
      'sh',
      '-c',
      'echo overlap >> effects',
    );
    expect(busy.stderr).toContain('which is gone; what it started is still running');
    writeFileSync(at.path('go'), '');
    await eventually(() => !isAlive(pid), 'its end');
    expect((await at.semel('run', 'job', ...daily, '--', 'sh', '-c', 'echo next >> effects')).code).toBe(0);
    expect(at.lines('effects')).toEqual(['left', 'next']);
  });
});

test('a run whose guard and command are killed is taken over at once, long before its lease', async () => {
  const at = place();
  const first = at.start('run', 'job', ...daily, '--', 'sh', '-c', 'echo $$ >> pids; exec sleep 60');
  const pid = await pidOf(at);
  await killed(first);
  process.kill(pid, 'SIGKILL');
  await eventually(() => !isAlive(pid), 'its end');
  const next = await at.semel('run', 'job', ...daily, '--', 'echo', 'taken over');
  expect(next).toMatchObject({ code: 0, stdout: 'taken over\n' });
});

test('a run that died and then fails has its command’s exit code, and is still run again', async () => {
  const at = place();
  const first = at.start('run', 'job', ...daily, '--', 'sh', '-c', 'echo $$ >> pids; exec sleep 60');
  const pid = await pidOf(at);
  await killed(first);
  process.kill(pid, 'SIGKILL');
  await eventually(() => !isAlive(pid), 'its end');
  expect((await at.semel('run', 'job', ...daily, '--', 'sh', '-c', 'exit 3')).code).toBe(3);
  expect((await at.semel('run', 'job', ...daily, '--', 'sh', '-c', 'exit 3')).code).toBe(3);
  const last = await at.semel('run', 'job', ...daily, '--', 'echo', 'done');
  expect(last).toMatchObject({ code: 0, stdout: 'done\n' });
  expect(last.stderr).toContain('attempt 3 failed with exit 3');
  expect((await at.semel('doubt', '--exit-code')).code).toBe(0);
});

test.each([
  [[], 0],
  [['--after-failure', 'hold'], 1],
  [['--verify', 'exit 2'], 1],
] as const)('a killed run with %j alarms nobody, unless somebody has to decide', async (options, code) => {
  const at = place();
  const command = ['--', 'sh', '-c', 'echo $$ >> pids; exec sleep 60'];
  const first = at.start('run', 'job', ...daily, options, command);
  const pid = await pidOf(at);
  await killed(first);
  process.kill(pid, 'SIGKILL');
  const [record] = (await at.semel('ls', '--tool', 'run.job', '--json')).json();
  await at.semel('resolve', `${record?.ref}`, 'died');
  const said = await at.semel('doubt', '--exit-code');
  expect(said.code).toBe(code);
  expect(said.stdout.includes('nothing to decide')).toBe(code === 0);
});

test('a run whose command is killed has failed, and runs again', async () => {
  const at = place();
  const first = at.start('run', 'job', ...daily, '--', 'sh', '-c', 'echo $$ >> pids; exec sleep 60');
  process.kill(await pidOf(at), 'SIGKILL');
  expect((await first.ended).code).toBe(137);
  const next = await at.semel('run', 'job', ...daily, '--', 'echo', 'again');
  expect(next.stderr).toContain('attempt 1 was ended by SIGKILL');
});

describe('an effect', () => {
  test('whose command is killed is in doubt', async () => {
    const at = place();
    // What it left behind has the output, and is waited for.
    const first = at.start('once', 'mail', '--id', 'a=1', '--', ...command());
    process.kill(await pidOf(at), 'SIGKILL');
    expect((await first.ended).code).toBe(76);
    expect((await at.semel('once', 'mail', '--id', 'a=1', '--', ...command(false))).code).toBe(76);
    expect(at.lines('effects')).toEqual([]);
  });

  test('whose guard is killed is busy while its command lives, then in doubt: never run again silently', async () => {
    const at = place();
    const first = at.start('once', 'mail', '--id', 'a=1', '--', ...command());
    const pid = await pidOf(at);
    await killed(first);
    const again = (...more: string[]) =>
      at.semel('once', 'mail', '--id', 'a=1', ...more, '--', ...command(false));
    expect((await again('--if-busy', 'fail')).code).toBe(75);
    writeFileSync(at.path('go'), '');
    await eventually(() => !isAlive(pid), 'its end');
    const said = await again();
    expect([said.code, said.stderr]).toEqual([76, expect.stringContaining('The process that ran it died')]);
    expect(at.lines('effects')).toEqual(['x']);
    expect((await at.semel('doubt', '--exit-code')).code).toBe(1);
  });

  test('killed at any moment with its guard lands at most once, unless a person says otherwise', async () => {
    const at = place();
    // From before the claim until after the record.
    for (let round = 0; round < 12; round += 1) {
      const id = `a=${round}`;
      const started = at.start('once', 'mail', '--id', id, '--', 'sh', '-c', `echo ${round} >> effects`);
      await new Promise((resolve) => setTimeout(resolve, round * 25));
      started.child.kill('SIGKILL');
      await started.ended;
      const { code } = await at.semel(
        'once',
        'mail',
        '--id',
        id,
        '--',
        'sh',
        '-c',
        `echo ${round} >> effects`,
      );
      expect([0, 76]).toContain(code);
      const times = at.lines('effects').filter((line) => line === String(round)).length;
      expect(times).toBeLessThanOrEqual(1);
      if (code === 0) expect(times).toBe(1);
    }
  });
});

describe('signals', () => {
  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    '%s reaches the command, and the record says so',
    async (signal) => {
      const at = place();
      const script =
        'trap "echo got TERM >> effects; exit 5" TERM; trap "echo got INT >> effects; exit 5" INT; trap "echo got HUP >> effects; exit 5" HUP; echo $$ >> pids; while :; do sleep 0.05; done';
      const started = at.start('run', 'job', ...daily, '--', 'sh', '-c', script);
      await pidOf(at);
      started.child.kill(signal);
      expect((await started.ended).code).toBe(5);
      expect(at.lines('effects')).toEqual([`got ${signal.slice(3)}`]);
      const next = await at.semel('run', 'job', ...daily, '--', 'true');
      expect(next.stderr).toContain(`attempt 1 was interrupted by ${signal}`);
    },
  );

  test('a command that ignores TERM is killed after the grace: by a signal, or at its timeout', async () => {
    const at = place();
    const stubborn = ['sh', '-c', 'trap "" TERM; echo $$ >> pids; while :; do sleep 0.05; done'];
    const started = at.start('run', 'job', ...daily, '--grace', '300ms', '--', ...stubborn);
    await pidOf(at);
    started.child.kill('SIGTERM');
    expect((await started.ended).code).toBe(137);
    const timed = await at.semel(
      'run',
      'job',
      ...daily,
      '--timeout',
      '200ms',
      '--grace',
      '200ms',
      '--',
      ...stubborn,
    );
    expect(timed.code).toBe(124);
    const next = await at.semel('run', 'job', ...daily, '--', 'true');
    expect(next.stderr).toContain('attempt 2 was ended by its timeout of 200ms');
  });
});
