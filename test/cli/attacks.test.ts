// What somebody who wanted to break it tried: each of these once repeated, lost, overlapped, hung or lied.

import { spawn, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { describe, expect, test } from 'vitest';
import { daily, eventually, main, place, until } from './place.ts';

describe('one intent stays one', () => {
  test('in whatever order the ids are typed, an effect inside the run is done once', async () => {
    const at = place();
    const script = `${at.word} once publish -- sh -c 'echo published >> effects'; test "$SEMEL_ATTEMPT" -gt 1`;
    await at.semel('run', 'job', ...daily, '--id', 'a=1', '--id', 'b=2', '--', 'sh', '-c', script);
    expect(
      (await at.semel('run', 'job', ...daily, '--id', 'b=2', '--id', 'a=1', '--', 'sh', '-c', script)).code,
    ).toBe(0);
    expect(at.lines('effects')).toEqual(['published']);
  });

  test('two ids that JavaScript cannot distinguish are refused, not merged', async () => {
    const at = place();
    writeFileSync(at.path('id.json'), '{"order": 9007199254740993}');
    const said = await at.semel('once', 'pay', '--id-json', 'id.json', '--', 'true');
    expect([said.code, said.stderr]).toEqual([64, expect.stringContaining('9007199254740993')]);
    const line = `exec '${process.execPath}' '${main}' once pay --id "file=$(printf 'caf\\351')" -- true`;
    const child = spawn('sh', ['-c', line], { cwd: at.folder, env: at.env, stdio: 'ignore' });
    expect(await new Promise((resolve) => child.once('close', resolve))).toBe(64);
    const empty = await at.semel('once', 'pay', '--id', 'lead=', '--', 'true');
    expect([empty.code, empty.stderr]).toEqual([64, expect.stringContaining('--id lead is empty')]);
  });

  test('another command line for the same effect is reported', async () => {
    const at = place();
    await at.semel('once', 'send', '--id', 'a=1', '--', 'echo', 'first');
    const second = await at.semel('once', 'send', '--id', 'a=1', '--', 'echo', 'second');
    expect(second.stdout).toBe('first\n');
    expect(second.stderr).toContain('by another command line');
  });
});

describe('what the command left behind', () => {
  test('keeps the job from being started again until it has ended', async () => {
    const at = place();
    const first = await at.semel(
      'run',
      'job',
      '--per',
      'none',
      '--',
      'sh',
      '-c',
      '(while [ ! -e go ]; do sleep 0.05; done; echo late >> effects) & echo started',
    );
    expect([first.code, first.stdout]).toEqual([0, 'started\n']);
    expect(first.stderr).toContain('still running');
    const second = await at.semel('run', 'job', '--per', 'none', '--', 'sh', '-c', 'echo second >> effects');
    expect(second.stderr).toContain('processes of an earlier run of job');
    writeFileSync(at.path('go'), '');
    await eventually(() => at.lines('effects').length === 1);
    await at.semel('run', 'job', '--per', 'none', '--wait', '10s', '--', 'sh', '-c', 'echo third >> effects');
    expect(at.lines('effects')).toEqual(['late', 'third']);
  });

  test('holds the turn also of a run that is in doubt', async () => {
    const at = place();
    const script = 'setsid sh -c "while [ ! -e go ]; do sleep 0.05; done; echo late >> effects" & exit 4';
    const first = await at.semel('run', 'job', ...daily, '--verify', 'exit 5', '--', 'sh', '-c', script);
    expect([first.code, first.stderr]).toEqual([76, expect.stringContaining('still running')]);
    const again = [
      'run',
      'job',
      ...daily,
      '--verify',
      'exit 1',
      '--verify-after',
      '0s',
      '--',
      'sh',
      '-c',
      'echo overlap >> effects',
    ];
    expect((await at.semel(...again)).stderr).toContain('processes of an earlier run of job');
    writeFileSync(at.path('go'), '');
    await eventually(() => at.lines('effects').length === 1);
    expect(at.lines('effects')).toEqual(['late']);
  });

  test('is ended with the command at its timeout, before it is tried again', async () => {
    const at = place();
    const script = `sh -c 'for i in 1 2 3 4 5 6 7 8; do echo $SEMEL_ATTEMPT >> effects; sleep 0.3; done'; echo after`;
    const said = await at.semel(
      ...[
        'run',
        'job',
        ...daily,
        '--timeout',
        '1s',
        '--retries',
        '1',
        '--backoff',
        '100ms',
        '--',
        'sh',
        '-c',
        script,
      ],
    );
    expect(said.code).toBe(124);
    const lines = at.lines('effects');
    expect(lines).toEqual([...lines].sort());
    expect(new Set(lines).size).toBe(2);
  });

  test('may still land: an effect that failed beside it is busy, then in doubt', async () => {
    const at = place();
    const script = 'setsid sh -c "while [ ! -e go ]; do sleep 0.05; done; echo sent >> effects" & exit 4';
    const send = (...more: string[]) =>
      at.semel('once', 'pay', '--id', 'o=1', '--grace', '100ms', ...more, '--', 'sh', '-c', script);
    const first = await send();
    expect([first.code, first.stderr]).toEqual([76, expect.stringContaining('still running')]);
    expect((await send('--if-busy', 'fail')).code).toBe(75);
    writeFileSync(at.path('go'), '');
    await eventually(() => at.lines('effects').length === 1);
    const later = await send('--verify', 'grep sent effects');
    expect([later.code, later.stdout]).toEqual([0, 'sent\n']);
    expect(at.lines('effects')).toEqual(['sent']);
  });

  test('inside two nested guards, keeps both alive', async () => {
    const at = place();
    const inner = `${at.word} once work --id a=1 -- sh -c 'echo begin >> effects; while [ ! -e go ]; do sleep 0.05; done; echo end >> effects'`;
    const outer = at.start('run', 'job', ...daily, '--', 'sh', '-c', `echo $$ >> pids; ${inner}`);
    await eventually(() => at.lines('effects').length === 1);
    const group = Number(at.lines('pids')[0]);
    outer.child.kill('SIGKILL');
    // The shell and the inner guard; not the work, which leads a group of its own.
    process.kill(-group, 'SIGKILL');
    const rival = await at.semel('run', 'job', ...daily, '--', 'sh', '-c', 'echo overlap >> effects');
    expect(rival.stderr).toContain('job has been running since');
    writeFileSync(at.path('go'), '');
    await eventually(() => at.lines('effects').length === 2);
  });
});

describe('what did not happen does not count as done', () => {
  test('a command that exits with 0 on SIGTERM has not succeeded', async () => {
    const at = place();
    const polite = ['sh', '-c', 'trap "exit 0" TERM; echo $$ >> pids; sleep 10 & wait; echo work >> effects'];
    expect((await at.semel('run', 'job', ...daily, '--timeout', '500ms', '--', ...polite)).code).toBe(124);
    expect((await at.semel('once', 'mail', '--id', 'a=1', '--timeout', '500ms', '--', ...polite)).code).toBe(
      76,
    );
    const told = at.start('run', 'told', ...daily, '--', ...polite);
    await eventually(() => at.lines('pids').length === 3);
    told.child.kill('SIGTERM');
    expect((await told.ended).code).toBe(143);
    for (const job of ['job', 'told'])
      expect((await at.semel('run', job, ...daily, '--', 'echo', 'runs')).stdout).toBe('runs\n');
  });

  test('a command that cannot be started leaves no doubt and is reported at once', async () => {
    const at = place();
    for (const command of ['/etc/passwd/foo', '']) {
      const said = await at.semel('once', 'mail', '--id', 'a=1', '--', command);
      expect([126, 127]).toContain(said.code);
    }
    expect((await at.semel('once', 'mail', '--id', 'a=1', '--', 'echo', 'sent')).stdout).toBe('sent\n');
    const long = await at.semel(
      'run',
      'job',
      ...daily,
      '--id',
      `x=${'x'.repeat(600)}`,
      '--after-failure',
      'hold',
      '--',
      'true',
    );
    expect(long.code).toBe(64);
    expect((await at.semel('doubt', '--exit-code')).code).toBe(0);
  });

  test('however many descriptors are open: a command that could not be started does not count as one that exited with 127', () => {
    const at = place();
    for (let extra = 0; extra < 12; extra += 1) {
      const more = Array.from({ length: extra }, () => openSync('/dev/null', 'r'));
      const args = [main, 'once', 'mail', '--id', `n=${extra}`, '--', '/etc/passwd/foo'];
      const { status } = spawnSync(process.execPath, args, {
        env: at.env,
        stdio: ['ignore', 'ignore', 'ignore', ...more],
      });
      for (const descriptor of more) closeSync(descriptor);
      expect(status, `${extra} more`).toBe(126);
    }
  });

  test('a retry that cannot be made has the exit code of the command, which has run', async () => {
    const at = place();
    const script = 'echo ran >> effects; rm -rf ledger.db-live; exit 5';
    const said = await at.semel(
      'run',
      'job',
      ...daily,
      '--retries',
      '1',
      '--backoff',
      '10ms',
      '--',
      'sh',
      '-c',
      script,
    );
    expect([said.code, at.lines('effects')]).toEqual([5, ['ran']]);
    expect((await at.semel('run', 'job', ...daily, '--', 'echo', 'next')).stdout).toBe('next\n');
  });

  test('output that comes after the command has ended is part of the result', async () => {
    const at = place();
    const once = () =>
      at.semel('once', 'late', '--id', 'a=1', '--', 'bash', '-c', 'exec > >(sleep 0.6; cat); echo result');
    expect((await once()).stdout).toBe('result\n');
    expect((await once()).stdout).toBe('result\n');
  });

  test('a turn that somebody settled does not stop the job', async () => {
    const at = place();
    const script = `echo $$ >> pids; ${until('go')}`;
    const first = at.start('run', 'job', '--per', 'none', '--', 'sh', '-c', script);
    await eventually(() => at.lines('pids').length === 1);
    const [turn] = JSON.parse((await at.semel('ls', '--tool', 'lock.job', '--json')).stdout);
    expect((await at.semel('resolve', turn.ref, 'landed', '--force')).code).toBe(0);
    writeFileSync(at.path('go'), '');
    await first.ended;
    expect((await at.semel('run', 'job', '--per', 'none', '--', 'echo', 'runs')).stdout).toBe('runs\n');
  });
});

describe('the guard', () => {
  test('ignores a report that a live process has died', async () => {
    const at = place();
    const running = at.start(
      'run',
      'job',
      ...daily,
      '--',
      'sh',
      '-c',
      'echo $$ >> pids; while [ ! -e go ]; do sleep 0.05; done',
    );
    await eventually(() => at.lines('pids').length === 1);
    const [slot] = JSON.parse((await at.semel('ls', '--tool', 'run.job', '--json')).stdout);
    const said = await at.semel('resolve', slot.ref, 'died');
    expect([said.code, said.stderr]).toEqual([
      70,
      expect.stringContaining('is still running: its processes are alive'),
    ]);
    writeFileSync(at.path('go'), '');
    expect((await running.ended).code).toBe(0);
  });

  test('started inside its own command does not wait for itself', async () => {
    const at = place();
    const inner = `${at.word} once mail --id a=1 -- echo inner`;
    const said = await at.semel('once', 'mail', '--id', 'a=1', '--', 'sh', '-c', `${inner}; test $? = 64`);
    expect([said.code, said.stderr]).toEqual([0, expect.stringContaining('inside its own command')]);
    const job = await at.semel(
      'run',
      'job',
      ...daily,
      '--',
      'sh',
      '-c',
      `${at.word} run job --wait 1h -- true; test $? = 64 && ${at.word} run job -- true; test $? = 64`,
    );
    expect(job.code).toBe(0);
  });

  test('does not hang with a verifier that ignores TERM, or leaves somebody with its output', async () => {
    const at = place();
    const once = (id: string, verify: string) =>
      at.semel('once', 'mail', '--id', `a=${id}`, '--verify', verify, '--', 'sh', '-c', 'exit 3');
    expect((await once('1', '(sleep 20; touch late) 2>/dev/null & echo found')).stdout).toBe('found\n');
    expect(existsSync(at.path('late'))).toBe(false);
  });

  test('does not change how the command reads its input', async () => {
    const at = place();
    const script = 'trap "" USR1; echo $PPID >> pids; while read -r line; do echo "got $line"; done; cat';
    const child = spawn(process.execPath, [main, 'run', 'job', ...daily, '--', 'sh', '-c', script], {
      cwd: at.folder,
      env: at.env,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let said = '';
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    child.stdin.write('one\n');
    await eventually(() => said.includes('got one') && at.lines('pids').length === 1);
    child.kill('SIGUSR1');
    await new Promise((resolve) => setTimeout(resolve, 200));
    child.stdin.end('two\n');
    expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0);
    expect(said).toBe('got one\ngot two\n');
  });

  test('writes a step through a link, and keeps the file’s permissions', async () => {
    const at = place();
    writeFileSync(at.path('real.md'), 'before', { mode: 0o600 });
    symlinkSync('real.md', at.path('link.md'));
    await at.semel('run', 'job', ...daily, '--', 'sh', '-c', `${at.word} step draft -o link.md -- echo text`);
    expect(lstatSync(at.path('link.md')).isSymbolicLink()).toBe(true);
    expect([readFileSync(at.path('real.md'), 'utf8'), lstatSync(at.path('real.md')).mode & 0o777]).toEqual([
      'text\n',
      0o600,
    ]);
    expect(existsSync(at.path('link.md'))).toBe(true);
  });
});
