// A ledger that cannot be used: exit 69, the command is not started, the ledger is intact. And a clock that is wrong.

import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { daily, eventually, main, type Place, place, type Said, until } from './place.ts';

const guarded = (name: string): readonly (readonly string[])[] => [
  ['run', name, ...daily, '--', 'sh', '-c', 'echo ran >> effects'],
  ['once', name, '--id', 'a=1', '--', 'sh', '-c', 'echo ran >> effects'],
];

async function refuses(at: Place, env: Record<string, string>, sentence: string): Promise<void> {
  for (const args of guarded('job')) {
    const { code, stderr } = await at.with({ env }).semel(...args);
    expect(stderr).toContain(sentence);
    expect([args[0], code]).toEqual([args[0], 69]);
  }
  expect(at.lines('effects')).toEqual([]);
}

describe('nothing is run', () => {
  test('where the file is not a ledger', async () => {
    const at = place();
    writeFileSync(at.path('ledger.db'), 'this is not a database, and it is not ours\n'.repeat(100));
    const before = readFileSync(at.path('ledger.db'));
    await refuses(at, {}, 'ledger.db');
    expect(readFileSync(at.path('ledger.db')).equals(before)).toBe(true);
  });

  test('where the ledger is damaged', async () => {
    const at = place();
    await at.semel('run', 'first', ...daily, '--', 'true');
    const bytes = readFileSync(at.path('ledger.db'));
    bytes.fill(0xff, 100, Math.min(bytes.length, 60_000));
    writeFileSync(at.path('ledger.db'), bytes);
    await refuses(at, {}, 'ledger.db');
  });

  test('where the folder belongs to somebody else', async (context) => {
    if (process.getuid?.() !== 0) context.skip('only root can give a folder away');
    const at = place();
    mkdirSync(at.path('theirs'));
    chownSync(at.path('theirs'), 12345, 12345);
    chmodSync(at.path('theirs'), 0o777);
    // Root may do anything, so it is refused as another user.
    const child = spawn(process.execPath, [main, ...(guarded('job')[0] as string[])], {
      cwd: at.folder,
      env: { ...at.env, SEMEL_STORE: `sqlite:${at.path('theirs/ledger.db')}` },
    });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect([code, said]).toEqual([69, expect.stringContaining('belongs to another user')]);
    expect(at.lines('effects')).toEqual([]);
  });

  test('while somebody keeps the ledger locked', async () => {
    const at = place();
    await at.semel('run', 'first', ...daily, '--', 'true');
    const locker = new DatabaseSync(at.path('ledger.db'));
    locker.exec('BEGIN IMMEDIATE');
    const { code, stderr } = await at.semel(...(guarded('job')[0] as string[]));
    expect([code, stderr]).toEqual([69, expect.stringContaining('is locked by another process')]);
    expect(at.lines('effects')).toEqual([]);
    locker.exec('ROLLBACK');
    locker.close();
    expect((await at.semel(...(guarded('job')[0] as string[]))).code).toBe(0);
  });

  test('on a disk that is full, and the ledger works again when there is space', async (context) => {
    const at = place();
    mkdirSync(at.path('small'));
    const mounted = spawnSync(
      'mount',
      ['-t', 'tmpfs', '-o', 'size=400k,mode=700', 'tmpfs', at.path('small')],
      {
        encoding: 'utf8',
      },
    );
    if (mounted.status !== 0) {
      console.log(`skipped: a full disk under the command: mount: ${mounted.stderr}`);
      context.skip('this user may not mount');
    }
    try {
      const env = { SEMEL_STORE: `sqlite:${at.path('small/ledger.db')}` };
      expect((await at.with({ env }).semel('run', 'first', ...daily, '-q', '--', 'true')).code).toBe(0);
      spawnSync('sh', ['-c', `head -c 10000000 /dev/zero > '${at.path('small/filler')}'`]);
      await refuses(at, env, 'small');
      spawnSync('rm', [at.path('small/filler')]);
      expect((await at.with({ env }).semel(...(guarded('job')[0] as string[]))).code).toBe(0);
      expect((await at.with({ env }).semel('run', 'first', ...daily, '--', 'false')).stderr).toContain(
        'was already done',
      );
    } finally {
      spawnSync('umount', ['-l', at.path('small')]);
    }
  });
});

test('a command that ran while the ledger was damaged is reported as unrecorded, never as not run', async () => {
  const damage =
    'echo ran >> effects; for file in ledger.db ledger.db-wal; do head -c 200000 /dev/urandom > $file; done';
  for (const guard of [
    ['run', 'job', '--per', 'ever'],
    ['once', 'job', '--id', 'a=1'],
  ]) {
    const at = place();
    const { code, stderr } = await at.semel(guard, '--', 'sh', '-c', damage);
    expect([guard[0], code, stderr]).toEqual([guard[0], 74, expect.stringContaining('do not repeat it')]);
    expect(at.lines('effects')).toEqual(['ran']);
  }
});

describe('a wrong clock', () => {
  const library = globSync('/usr/lib/*/faketime/libfaketime.so.1')[0];

  function faked(at: Place, offset: string, ...args: readonly string[]): Promise<Said> {
    // The monotonic clock of a machine does not jump with its wall clock.
    const env = { LD_PRELOAD: library as string, FAKETIME: offset, FAKETIME_DONT_FAKE_MONOTONIC: '1' };
    return at.with({ env }).semel(...args);
  }

  test('forward or back does not repeat what was done, nor take what is being done', async (context) => {
    if (library === undefined) {
      console.log(
        'skipped: a wrong clock under the command: libfaketime is not on this machine (package faketime)',
      );
      context.skip('no libfaketime');
    }
    const at = place();
    const once = ['once', 'mail', '--id', 'a=1', '--window', '1h', '--', 'sh', '-c', 'echo x >> effects'];
    expect((await at.semel(...once)).code).toBe(0);
    for (const offset of ['+2d', '-2d', '+10y', '+0']) {
      const { code } = await faked(at, offset, ...once);
      expect([offset, code]).toEqual([offset, 0]);
    }
    expect(at.lines('effects')).toHaveLength(1);

    const running = at.start(
      'run',
      'job',
      '--per',
      'ever',
      '--',
      'sh',
      '-c',
      `echo y >> running; ${until('go')}`,
    );
    await eventually(() => at.lines('running').length === 1);
    for (const offset of ['+2d', '-2d']) {
      const { stderr } = await faked(
        at,
        offset,
        'run',
        'job',
        '--per',
        'ever',
        '--',
        'sh',
        '-c',
        'echo overlap >> running',
      );
      expect(stderr).toContain('job has been running since');
    }
    at.file('go', '');
    await running.ended;
    expect(at.lines('running')).toEqual(['y']);
  });
});
