// Other users of the same machine: what they lay into the way of a command is not believed, followed or waited for.

import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import { writeFile } from '../../src/cli/render/file-output.ts';
import { isOwnerAlive } from '../../src/jobs/index.ts';
import {
  findOtherWriters,
  folderProblem,
  isOwnedByUser,
  makeFolder,
  openRegular,
} from '../../src/store/files.ts';
import { kernel, main, type Place, place } from './place.ts';

/** The user id of nobody. */
const other = 65_534;
const isRoot = process.geteuid?.() === 0;
if (!isRoot) console.info('skipped: files of another user (only root can make them)');

function giveAway(...paths: readonly string[]): void {
  for (const path of paths) spawnSync('chown', ['-h', String(other), path]);
}

function fifo(path: string): string {
  execFileSync('mkfifo', ['-m', '666', path]);
  return path;
}

const step = (at: Place, file: string) =>
  at.semel('run', 'job', '--per', 'none', '--', 'sh', '-c', `${at.word} step make -o ${file} -- echo secret`);

describe.runIf(isRoot)('of another user', () => {
  test('a folder of pipes is not trusted: nothing runs, nothing counts as dead, and doctor reports it', async () => {
    const at = place();
    await at.semel('once', 'mail', '--id', 'a=1', '--', 'true');
    const live = at.path('ledger.db-live');
    const mark = '0123456789abcdef0123';
    fifo(`${live}/${kernel}/${mark}`);
    chownSync(live, other, other);
    expect(isOwnerAlive(live, `host:1#${mark}`)).toBeUndefined();
    const said = await at.semel('run', 'job', '--', 'touch', 'ran');
    expect([said.code, said.stderr]).toEqual([69, expect.stringContaining('belongs to another user')]);
    expect(existsSync(at.path('ran'))).toBe(false);
    expect((await at.semel('doctor')).stdout).toContain('ledger.db-live belongs to another user');
  });

  test('a spare set of pipes is not adopted', async () => {
    const at = place();
    const once = (id: string) => at.semel('once', 'mail', '--id', `a=${id}`, '--', 'true');
    await once('1');
    const spare = at.path(`ledger.db-live/${kernel}/spare`);
    const [set] = readdirSync(spare);
    const pipe = `${spare}/${set}/out`;
    giveAway(pipe);
    expect((await once('2')).code).toBe(0);
    const [next] = readdirSync(spare);
    expect(lstatSync(`${spare}/${next}/out`)).toMatchObject({ uid: 0 });
  });

  test('a link or a pipe is not written to by a step', async () => {
    const at = place();
    writeFileSync(at.path('mine'), 'as it was');
    symlinkSync(at.path('mine'), at.path('link'));
    symlinkSync(at.folder, at.path('way'));
    giveAway(at.path('link'), at.path('way'), fifo(at.path('pipe')));
    for (const file of ['link', 'way/new']) {
      const said = await step(at, file);
      expect([said.code, said.stderr]).toEqual([64, expect.stringContaining('link of another user')]);
    }
    expect(readFileSync(at.path('mine'), 'utf8')).toBe('as it was');
    // Without a reader it would be waited for; with one, somebody would read what is not theirs.
    const reader = spawnSync(
      'sh',
      ['-c', `cat pipe > heard & ${at.word} run j -- ${at.word} step s -o pipe -- echo secret; kill %1`],
      {
        cwd: at.folder,
        env: at.env,
        encoding: 'utf8',
      },
    );
    expect(reader.stderr).toContain('belongs to another user');
    expect(readFileSync(at.path('heard'), 'utf8')).toBe('');
  });

  test.runIf(process.platform === 'linux')(
    'a folder that becomes a link while a step writes leads nowhere else',
    async () => {
      const at = place();
      for (const name of ['theirs', 'theirs/dir', 'mine']) mkdirSync(at.path(name));
      symlinkSync(at.path('mine'), at.path('theirs/link'));
      giveAway(at.path('theirs'), at.path('theirs/dir'), at.path('theirs/link'));
      const swapping = new Worker(
        `const { renameSync } = require('node:fs');
        const [dir, link, real] = ['dir', 'link', 'real'].map((name) => require('node:worker_threads').workerData + '/' + name);
        for (;;) {
          renameSync(dir, real);
          renameSync(link, dir);
          renameSync(dir, link);
          renameSync(real, dir);
        }`,
        { eval: true, workerData: at.path('theirs') },
      );
      try {
        for (let n = 0; n < 10_000 && readdirSync(at.path('mine')).length === 0; n += 1)
          await writeFile(at.path('theirs/dir/out'), Buffer.from('secret')).catch(() => undefined);
      } finally {
        await swapping.terminate();
      }
      expect(readdirSync(at.path('mine'))).toEqual([]);
    },
  );

  test('a file that is replaced by a step does not hand down its rights', async () => {
    const at = place();
    writeFileSync(at.path('out'), '');
    giveAway(at.path('out'));
    chmodSync(at.path('out'), 0o6777);
    await step(at, 'out');
    expect(lstatSync(at.path('out')).mode & 0o7022).toBe(0);
  });

  test('a user’s home is not used as root’s own: no ledger, no pipes, no cache', async () => {
    const at = place();
    mkdirSync(at.path('home'));
    giveAway(at.path('home'));
    const sudo = at.with({
      env: { HOME: at.path('home'), XDG_STATE_HOME: '', XDG_CACHE_HOME: '', SEMEL_STORE: '' },
    });
    const said = await sudo.semel('once', 'mail', '--id', 'a=1', '--', 'touch', 'ran');
    expect([said.code, said.stderr]).toEqual([
      69,
      expect.stringMatching(/belongs to another user .*sudo -H/s),
    ]);
    expect(readdirSync(at.path('home'))).toEqual([]);
    expect(existsSync(at.path('ran'))).toBe(false);
  });

  test('a log, an id or a name that waits for the ledger is refused before anything is written through it', async () => {
    for (const [name, lay] of [
      ['ledger.db-wal', (path: string) => writeFileSync(path, '')],
      ['ledger.db.id', (path: string) => fifo(path)],
      ['ledger.db', (path: string) => symlinkSync(`${path}.mine`, path)],
    ] as const) {
      const at = place();
      lay(at.path(name));
      giveAway(at.path(name));
      const said = await at.semel('once', 'mail', '--id', 'a=1', '--', 'touch', 'ran');
      expect([said.code, existsSync(at.path('ran')), existsSync(at.path('ledger.db.mine'))], name).toEqual([
        69,
        false,
        false,
      ]);
    }
  });

  test('the same as a user: nothing of root’s or of others is needed', () => {
    const at = place();
    const folder = at.path('nobody');
    mkdirSync(folder);
    chownSync(folder, other, other);
    chmodSync(at.folder, 0o755);
    const env = { PATH: process.env.PATH ?? '', HOME: folder, SEMEL_STORE: `sqlite:${folder}/ledger.db` };
    const built = at.path('semel');
    // The build of the tests is for its user only.
    execFileSync('cp', ['-r', join(main, '../../..'), built]);
    execFileSync('chmod', ['-R', 'a+rX', built]);
    const asOther = (...args: string[]) =>
      spawnSync(
        'setpriv',
        [`--reuid=${other}`, `--regid=${other}`, '--clear-groups', process.execPath, ...args],
        {
          cwd: folder,
          env,
          encoding: 'utf8',
        },
      );
    if (asOther('--version').status !== 0)
      return console.info('skipped: another user cannot run this Node.js');
    const said = asOther(`${built}/dist/lib/semel.cjs`, 'once', 'mail', '--id', 'a=1', '--', 'echo', 'sent');
    expect([said.status, said.stdout, said.stderr]).toEqual([0, 'sent\n', '']);
  });
});

test('a folder that others can write to is made private, or refused as not ours', () => {
  const at = place();
  expect(folderProblem(at.folder)).toBeUndefined();
  chmodSync(at.folder, 0o770);
  expect(folderProblem(at.folder)).toBeUndefined();
  expect(lstatSync(at.folder).mode & 0o777).toBe(0o700);
  expect(folderProblem(at.folder, other + 1)).toContain('belongs to another user');
  symlinkSync(at.folder, at.path('link'));
  expect(folderProblem(at.path('link'))).toBe('is not a folder');
  expect(isOwnedByUser(lstatSync(at.folder), other + 1)).toBe(false);
});

test('who else may write a folder: every user, its group, or nobody', () => {
  const at = place();
  const stats = lstatSync(at.folder);
  expect(findOtherWriters(Object.assign(stats, { mode: 0o40_777 }))).toBe('every user');
  expect(findOtherWriters(Object.assign(stats, { mode: 0o40_770, gid: 4_242_424 }))).toBe('its group');
  expect(findOtherWriters(Object.assign(stats, { mode: 0o40_755 }))).toBeUndefined();
});

test('a step that writes to a pipe without a reader ends with an error, and a reader gets all of it', async () => {
  const at = place();
  fifo(at.path('pipe'));
  const said = await step(at, 'pipe');
  expect([said.code, said.stderr]).toEqual([64, expect.stringContaining('could not be written')]);
  const large = `${at.word} step large -o pipe -- head -c 300000 /dev/zero`;
  const { stdout } = spawnSync(
    'sh',
    [
      '-c',
      `${at.word} run j -- sh -c '${large.replaceAll("'", "'\\''")}' & (sleep 0.3; cat) < pipe | wc -c; wait`,
    ],
    {
      cwd: at.folder,
      env: at.env,
      encoding: 'utf8',
    },
  );
  expect(stdout.trim()).toBe('300000');
});

test('a folder below /proc is an error and not a loop', () => {
  expect(() => makeFolder('/proc/semel/ledger')).toThrow();
  const at = place();
  makeFolder(at.path('a/b/c'));
  expect(lstatSync(at.path('a/b/c')).mode & 0o777).toBe(0o700);
  writeFileSync(at.path('file'), '');
  expect(() => makeFolder(at.path('file/b'))).toThrow();
  expect(() => openRegular('/dev/zero')).toThrow(/not a regular file/);
});
