// A ledger that lacks what it was told is refused before a claim: a damaged, cut off, older or lost log, an older copy, a
// file that is not where it was. A process that was killed, or that never closed its ledger, raises no alarm.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { type SqliteStore, sqliteStore } from '../../src/stores/sqlite/index.ts';
import { lose, take } from '../../src/testing/store-contract/attempt.ts';
import { newFolder, newPath, newPathInMemory } from './sqlite-folder.ts';

const sides = ['', '-wal', '-shm', '.id'] as const;
const keyOf = (nth: number) => `mail.send/=${nth}`;

async function record(store: SqliteStore, from: number, to: number): Promise<void> {
  for (let nth = from; nth < to; nth += 1)
    await (await take(store, { key: keyOf(nth) })).succeed('x'.repeat(1500));
}

/** By another process. */
function checkpoint(path: string, before = ''): void {
  const sql = `${before}; PRAGMA wal_checkpoint(RESTART)`;
  const script = `new (require('node:sqlite').DatabaseSync)(${JSON.stringify(path)}).exec(${JSON.stringify(sql)})`;
  expect(spawnSync(process.execPath, ['-e', script]).status).toBe(0);
}

/** To the nanosecond, as `cp -a` and `rsync -a` do it. */
function withTimesOf(folder: string, change: () => void): void {
  const kept = join(newFolder(), 'times');
  expect(spawnSync('touch', ['-r', folder, kept]).status).toBe(0);
  change();
  expect(spawnSync('touch', ['-r', kept, folder]).status).toBe(0);
}

/** By another process: closing a file of the ledger in this one would drop its locks. */
function copy(from: string, to: string): void {
  expect(spawnSync('cp', ['-a', from, to]).status).toBe(0);
}

/** The files as a killed process leaves them: 20 records in the ledger's own file, 10 in its log. */
async function killedLedger(): Promise<string> {
  const path = newPathInMemory();
  const store = sqliteStore({ path });
  await record(store, 0, 20);
  checkpoint(path);
  await record(store, 20, 30);
  const left = newPathInMemory();
  for (const side of sides) copy(path + side, left + side);
  await store.close();
  return left;
}

async function openingOf(path: string): Promise<unknown> {
  const store = sqliteStore({ path });
  try {
    await store.open();
    return undefined;
  } catch (error) {
    return error;
  } finally {
    await store.close();
  }
}

function flip(file: string, at: number): void {
  const bytes = readFileSync(file);
  bytes[at] = (bytes[at] as number) ^ 0x10;
  writeFileSync(file, bytes);
}

describe('a ledger that lacks confirmed writes is refused:', () => {
  const frame = 4096 + 24;
  const kinds: [string, (path: string) => void][] = [
    ['a byte of its log was flipped, in the header', (path) => flip(`${path}-wal`, 17)],
    ['a byte of its log was flipped, in a page', (path) => flip(`${path}-wal`, 32 + 3 * frame + 2000)],
    [
      'a byte of its log was flipped, in a frame’s checksum',
      (path) => flip(`${path}-wal`, 32 + 9 * frame + 17),
    ],
    ['its log was cut off', (path) => truncateSync(`${path}-wal`, 32 + 5 * frame + 100)],
    ['its log was emptied', (path) => truncateSync(`${path}-wal`, 0)],
    ['its log was deleted', (path) => rmSync(`${path}-wal`)],
    ['its log and index were deleted', (path) => ['-wal', '-shm'].map((side) => rmSync(path + side))],
  ];

  test.each(kinds)('%s', async (_, damage) => {
    const path = await killedLedger();
    damage(path);
    const log = existsSync(`${path}-wal`) ? readFileSync(`${path}-wal`) : Buffer.alloc(0);
    const ledger = readFileSync(path);
    for (const time of ['first', 'second']) {
      const error = await openingOf(path);
      expect(error, time).toMatchObject({ code: 'STORE_UNSAFE', retriable: false });
      expect(String(error)).toMatch(/lacks its last \d+ writes.*semel store accept-loss --store sqlite:/);
    }
    // What is left of the log is evidence, and may be all that a person has.
    expect(readFileSync(path).equals(ledger)).toBe(true);
    const after = existsSync(`${path}-wal`) ? readFileSync(`${path}-wal`) : Buffer.alloc(0);
    expect(after.equals(log)).toBe(true);
  });

  test('an older log is next to it', async () => {
    const path = newPathInMemory();
    const store = sqliteStore({ path });
    await record(store, 0, 3);
    const older = join(newFolder(), 'older-wal');
    copy(`${path}-wal`, older);
    checkpoint(path);
    await record(store, 3, 6);
    const left = newPathInMemory();
    for (const side of ['', '.id']) copy(path + side, left + side);
    copyFileSync(older, `${left}-wal`);
    await store.close();
    expect(String(await openingOf(left))).toMatch(/lacks its last/);
  });

  test('an older file was put beside its log', async () => {
    const path = newPathInMemory();
    const store = sqliteStore({ path });
    await record(store, 0, 40);
    // Room that is used again: the older file is as long as the newer one.
    checkpoint(path, 'DELETE FROM records WHERE id > 5');
    const older = join(newFolder(), 'older');
    copy(path, older);
    await record(store, 40, 50);
    checkpoint(path);
    await record(store, 50, 52);
    const left = newPathInMemory();
    for (const side of ['-wal', '-shm', '.id']) copy(path + side, left + side);
    copyFileSync(older, left);
    await store.close();
    expect(String(await openingOf(left))).toMatch(/lacks its last 20 writes/);
  });

  test('an older copy was put in its place while no process used it', async () => {
    const path = newPathInMemory();
    const first = sqliteStore({ path });
    await record(first, 0, 3);
    await first.close();
    const older = join(newFolder(), 'older');
    copyFileSync(path, older);
    const second = sqliteStore({ path });
    await record(second, 3, 5);
    await second.close();
    copyFileSync(older, path);
    expect(String(await openingOf(path))).toMatch(/lacks its last 4 writes/);
  });

  test('only its own file was copied, and all of its records were in the log', async () => {
    const path = newPathInMemory();
    const store = sqliteStore({ path });
    await record(store, 0, 1);
    const alone = newPathInMemory();
    copy(path, alone);
    await store.close();
    expect(String(await openingOf(alone))).toMatch(/is here without/);
  });

  test('only its own file was copied, without log and id', async () => {
    const path = await killedLedger();
    const alone = newPathInMemory();
    copyFileSync(path, alone);
    expect(String(await openingOf(alone))).toMatch(
      /is here without .*ledger\.db\.id, so it may be incomplete/,
    );
  });
});

test('the name of the person who accepts the loss is kept', async () => {
  const path = await killedLedger();
  rmSync(`${path}-wal`);
  const store = sqliteStore({ path });
  await store.acceptLoss({ by: 'ada', note: 'nothing ran since' });
  await lose(store, { key: keyOf(19) });
  await take(store, { key: keyOf(29) });
  expect((await store.raw?.about())?.lossAccepted).toMatchObject({ by: 'ada', note: 'nothing ran since' });
  await store.close();
  expect(await openingOf(path)).toBeUndefined();
});

test('after a loss was accepted, a fuller copy from before it is another ledger', async () => {
  const path = await killedLedger();
  const full = newPathInMemory();
  for (const side of sides) copy(path + side, full + side);
  const whole = new DatabaseSync(full);
  whole.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  whole.close();
  rmSync(`${path}-wal`);
  const store = sqliteStore({ path });
  await store.acceptLoss();
  await record(store, 90, 91);
  await store.close();
  expect(await openingOf(path)).toBeUndefined();
  copy(full, path);
  expect(String(await openingOf(path))).toMatch(/is not the ledger that was here before/);
});

describe('no alarm is raised', () => {
  async function writer(path: string, name: string): Promise<ChildProcess> {
    const worker = join(import.meta.dirname, 'sqlite-write-worker.ts');
    const child = spawn(process.execPath, [worker, path, name], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout as NodeJS.ReadableStream, 'data');
    return child;
  }

  async function kill(child: ChildProcess): Promise<void> {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  test('by processes that are killed while others write and open', async () => {
    const path = newPathInMemory();
    const writers = [await writer(path, 'a'), await writer(path, 'b')];
    const found: unknown[] = [];
    for (let nth = 0; nth < 100; nth += 1) found.push(await openingOf(path));
    for (const child of writers) {
      await kill(child);
      found.push(await openingOf(path));
    }
    expect(found.filter((error) => error !== undefined)).toEqual([]);
    // The log was folded in by the last opening: here it is not.
    await kill(await writer(path, 'c'));
    expect(statSync(`${path}-wal`).size).toBeGreaterThan(0);
    expect(await openingOf(path)).toBeUndefined();
  });

  test('by a process that was killed, after another program folded its log in', async () => {
    const path = newPathInMemory();
    await kill(await writer(path, 'a'));
    const other = new DatabaseSync(path);
    other.prepare('SELECT count(*) FROM records').get();
    other.close();
    expect(existsSync(`${path}-wal`)).toBe(false);
    expect(await openingOf(path)).toBeUndefined();
  });

  test('by a ledger that was being made when its process ended', async () => {
    const path = newPathInMemory();
    const store = sqliteStore({ path });
    await store.open();
    await store.close();
    const database = new DatabaseSync(path);
    database.exec('UPDATE meta SET writes = 0');
    database.close();
    rmSync(`${path}.id`);
    expect(await openingOf(path)).toBeUndefined();
  });

  test('by checkpoints of other processes, while a process continues', async () => {
    const path = newPathInMemory();
    const store = sqliteStore({ path });
    for (let round = 0; round < 5; round += 1) {
      await record(store, round * 3, round * 3 + 3);
      checkpoint(path);
    }
    await record(store, 15, 16);
    await store.close();
    expect(await openingOf(path)).toBeUndefined();
  });
});

describe('a file that is not where it was: no claim goes into it any more', () => {
  async function refusedFromNowOn(store: SqliteStore): Promise<void> {
    for (const nth of [100, 101]) {
      const claim = take(store, { key: keyOf(nth) });
      await expect(claim).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
      await expect(claim).rejects.toThrow(/deleted or replaced while this process used it, or a link/);
    }
  }

  /** A process uses it; `older` holds its files as they were. */
  async function usedLedger(): Promise<{ path: string; older: string; store: SqliteStore }> {
    const path = newPath();
    const store = sqliteStore({ path });
    await record(store, 0, 5);
    checkpoint(path);
    const older = join(newFolder(), 'older');
    expect(spawnSync('cp', ['-a', dirname(path), older]).status).toBe(0);
    await record(store, 5, 10);
    checkpoint(path);
    await record(store, 10, 11);
    return { path, older: join(older, 'ledger.db'), store };
  }

  test('an older copy was written over it, with its times', async () => {
    const { path, older, store } = await usedLedger();
    withTimesOf(dirname(path), () => copy(older, path));
    await refusedFromNowOn(store);
    await store.close();
  });

  test('an older copy was written over it and its log and its index', async () => {
    const { path, older, store } = await usedLedger();
    for (const side of sides) copy(older + side, path + side);
    await refusedFromNowOn(store);
    await store.close();
  });

  test('an older copy was moved into its place, and the folder’s times were set back', async () => {
    const { path, older, store } = await usedLedger();
    withTimesOf(dirname(path), () => {
      for (const side of sides) {
        copy(older + side, `${path}${side}.new`);
        renameSync(`${path}${side}.new`, path + side);
      }
    });
    await refusedFromNowOn(store);
    await store.close();
  });

  test('only its log was exchanged, and the folder’s times were set back', async () => {
    const { path, older, store } = await usedLedger();
    withTimesOf(dirname(path), () => {
      copy(`${older}-wal`, `${path}-wal.new`);
      renameSync(`${path}-wal.new`, `${path}-wal`);
    });
    await refusedFromNowOn(store);
    await store.close();
  });

  test('a link on its path points elsewhere', async () => {
    const folder = newFolder();
    for (const release of ['1', '2']) mkdirSync(join(folder, release), { mode: 0o700 });
    const current = join(folder, 'current');
    symlinkSync('1', current);
    const store = sqliteStore({ path: join(current, 'ledger.db') });
    expect((await store.open()).warning).toMatch(/is reached through the link .*current: once that points/);
    await record(store, 0, 1);
    symlinkSync('2', `${current}.new`);
    renameSync(`${current}.new`, current);
    await refusedFromNowOn(store);
    // Its successor has made a ledger there meanwhile.
    const successor = sqliteStore({ path: join(current, 'ledger.db') });
    await take(successor);
    await refusedFromNowOn(store);
    await successor.close();
    await store.close();
  });

  test('the file itself is a link that points elsewhere', async () => {
    const [first, second] = [newPath(), newPath()];
    const made = sqliteStore({ path: first });
    await record(made, 0, 1);
    await made.close();
    const link = join(newFolder(), 'ledger.db');
    symlinkSync(first, link);
    const store = sqliteStore({ path: link });
    await record(store, 1, 2);
    const other = sqliteStore({ path: second });
    await record(other, 0, 1);
    symlinkSync(second, `${link}.new`);
    renameSync(`${link}.new`, link);
    await refusedFromNowOn(store);
    await store.close();
    await other.close();
  });
});

describe('a ledger that is mounted as a single file is refused', () => {
  test.each(['', '-wal', '.id'])('ledger.db%s', async (side) => {
    const path = newPath();
    const store = sqliteStore({ path });
    await take(store);
    await store.close();
    const mounted = sqliteStore({ path, machine: { mountPoints: () => ['/', '/proc', path + side] } });
    await expect(mounted.open()).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
    await expect(mounted.open()).rejects.toThrow(/is mounted as a single file.* Mount the folder .* instead/);
  });

  const isPossible = spawnSync('unshare', ['-m', 'true']).status === 0;
  test.runIf(isPossible)('as the kernel tells it, under a name with spaces', async () => {
    const path = newPath();
    const store = sqliteStore({ path });
    await take(store);
    await store.close();
    const inside = join(newFolder(), 'the ledger.db');
    const index = join(import.meta.dirname, '../../src/stores/sqlite/index.ts');
    const script = `import { sqliteStore } from ${JSON.stringify(index)};
      await sqliteStore({ path: ${JSON.stringify(inside)} }).open().catch((e) => console.log(e.code, e.message));`;
    const steps = `touch "$1" && mount --bind "$2" "$1" && exec "$3" --input-type=module -e "$4"`;
    const { stdout, stderr } = spawnSync(
      'unshare',
      ['-m', 'sh', '-c', steps, 'sh', inside, path, process.execPath, script],
      { encoding: 'utf8' },
    );
    expect(stdout, stderr).toMatch(/^STORE_UNSAFE .*the ledger\.db is mounted as a single file/);
  });
});
