// Group commit, and what happens when the disk, the file or a neighbour does not play along: the claim fails closed,
// the ledger stays whole, and it works again once it can.
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { type SqliteLike, type SqliteStore, sqliteStore } from '../../src/stores/sqlite/index.ts';
import { claimRequest, lose, take, theKey, theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { newFolder, newPath } from './sqlite-folder.ts';
import { decide } from './sqlite-verdict.ts';

type Trap = (sql: string) => void;

/** Counts the transactions, and calls `trap` before each statement. */
function observed(trap: Trap = () => {}) {
  const counts = { begun: 0, committed: 0, connected: 0, closed: 0 };
  async function connect(path: string): Promise<SqliteLike> {
    const database = new DatabaseSync(path, { timeout: 0 });
    counts.connected += 1;
    return {
      get isTransaction() {
        return database.isTransaction;
      },
      exec: (sql) => database.exec(sql),
      close() {
        counts.closed += 1;
        database.close();
      },
      prepare(sql) {
        const statement = database.prepare(sql);
        const run = statement.run.bind(statement);
        return Object.assign(statement, {
          run(...values: Parameters<typeof run>) {
            trap(sql);
            const answer = run(...values);
            if (sql === 'BEGIN IMMEDIATE') counts.begun += 1;
            if (sql === 'COMMIT') counts.committed += 1;
            return answer;
          },
        });
      },
    };
  }
  return { counts, machine: { connect } };
}

function sqliteError(errcode: number, message: string): Error {
  return Object.assign(new Error(message), { code: 'ERR_SQLITE_ERROR', errcode });
}

function opened(options: Parameters<typeof sqliteStore>[0] = {}): SqliteStore {
  const store = sqliteStore({ path: newPath(), ...options });
  onTestFinished(() => store.close());
  return store;
}

const keys = (n: number) => Array.from({ length: n }, (_, i) => `mail.send/=${i}`);

/** What another process would find in the file. */
function inTheFile(path: string): string[] {
  const database = new DatabaseSync(path, { readOnly: true });
  const rows = database.prepare('SELECT key FROM records').all();
  expect(Object.values(database.prepare('PRAGMA integrity_check').get() ?? {})).toEqual(['ok']);
  database.close();
  return rows.map(({ key }) => String(key));
}

describe('group commit', () => {
  test('a lone first execution is exactly two transactions', async () => {
    const { counts, machine } = observed();
    const store = opened({ machine });
    await store.open();
    const before = counts.committed;
    await (await take(store)).succeed();
    expect(counts.committed - before).toBe(2);
    expect(counts.begun).toBe(counts.committed);
  });

  test('a replay, a read and a list need no transaction', async () => {
    const { counts, machine } = observed();
    const store = opened({ machine });
    await (await take(store)).succeed();
    const before = counts.begun;
    expect(store.claim.glance?.(claimRequest())?.record?.status).toBe('succeeded');
    await store.read(theNamespace, theKey);
    await store.list({ namespace: theNamespace, limit: 10 });
    await store.history(theNamespace, theKey);
    expect(counts.begun).toBe(before);
  });

  test('128 callers share transactions, and each gets its own answer', async () => {
    const { counts, machine } = observed();
    const store = opened({ machine });
    await store.open();
    const before = counts.committed;
    const won = await Promise.all(
      keys(128).map(async (key) => {
        const attempt = await take(store, { key });
        await attempt.succeed(`"${key}"`);
        return store.claim.glance?.(claimRequest({ key }))?.record?.result?.text;
      }),
    );
    expect(won).toEqual(keys(128).map((key) => `"${key}"`));
    expect(counts.committed - before).toBe(2);
  });

  test('callers of one key in one batch have one winner', async () => {
    const store = opened();
    const answers = await Promise.all(Array.from({ length: 50 }, () => store.claim(claimRequest())));
    expect(answers.filter(({ won }) => won)).toHaveLength(1);
    const winner = answers.find(({ won }) => won)?.record;
    for (const { record } of answers) expect(record?.fence).toBe(winner?.fence);
  });

  test('no call is answered before the commit, and then it is in the file', async () => {
    const path = newPath();
    let told = 0;
    let toldAtCommit: number | undefined;
    const { machine } = observed((sql) => {
      if (sql === 'COMMIT') toldAtCommit = told;
    });
    const store = opened({ path, machine });
    await Promise.all(
      keys(10).map(async (key) => {
        await take(store, { key });
        told += 1;
        expect(inTheFile(path)).toContain(key.slice('mail.send/'.length));
      }),
    );
    expect(toldAtCommit).toBe(0);
  });

  test('losers to an uncommitted winner get no answer if its commit fails', async () => {
    let failing = false;
    const { machine } = observed((sql) => {
      if (failing && sql === 'COMMIT') throw sqliteError(1034, 'disk I/O error');
    });
    const store = opened({ machine });
    await store.open();
    failing = true;
    const answers = await Promise.allSettled(Array.from({ length: 5 }, () => store.claim(claimRequest())));
    for (const answer of answers) expect(answer).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE' } });
    failing = false;
    expect(await store.read(theNamespace, theKey)).toBeUndefined();
    await take(store);
  });

  test('a request that cannot be stored fails alone', async () => {
    const store = opened();
    const answers = await Promise.allSettled(
      keys(20).map((key, i) =>
        store.claim(claimRequest({ key, ...(i === 13 ? { owner: {} as never } : {}) })),
      ),
    );
    expect(answers.map(({ status }) => status).filter((status) => status === 'rejected')).toHaveLength(1);
    expect(answers[13]?.status).toBe('rejected');
    expect(await store.read(theNamespace, 'mail.send/=13')).toBeUndefined();
    expect(await store.read(theNamespace, 'mail.send/=12')).toMatchObject({ status: 'running' });
    // What was rolled back on the way is not counted.
    expect(await store.verify()).toEqual([]);
  });

  test('a first contract whose batch failed is known afterwards', async () => {
    const store = opened();
    await store.open();
    await Promise.allSettled([
      store.claim(claimRequest({ key: 'new.contract/=a', owner: {} as never })),
      store.claim(claimRequest({ key: 'new.contract/=b' })),
    ]);
    await (await take(store, { key: 'new.contract/=a' })).succeed();
    const { items } = await store.list({ namespace: theNamespace, contract: 'new.contract', limit: 10 });
    expect(items.map(({ key }) => key)).toEqual(['new.contract/=a', 'new.contract/=b']);
  });
});

describe('what one connection remembers', () => {
  test('is not trusted once another connection has written', async () => {
    const path = newPath();
    const [here, there] = [opened({ path }), opened({ path })];
    const attempt = await take(here, { crossing: true });
    await (await take(there, { key: 'mail.send/=other' })).succeed();
    await decide(there, theKey, { type: 'notLanded' }, { force: true });
    expect(await attempt.renew()).toMatchObject({ held: false });
    expect(await attempt.succeed()).toMatchObject({ fenced: true });
  });

  test('is nothing where others may write through the same handle', async () => {
    const database = new DatabaseSync(newPath());
    const [one, two] = [opened({ database }), opened({ database })];
    const attempt = await take(one, { crossing: true });
    await decide(two, theKey, { type: 'notLanded' }, { force: true });
    expect(await attempt.renew()).toMatchObject({ held: false });
  });

  test('does not trust that a key was free', async () => {
    const path = newPath();
    const [here, there] = [opened({ path }), opened({ path })];
    await here.open();
    expect(await here.read(theNamespace, theKey)).toBeUndefined();
    await take(there);
    await lose(here);
  });

  test('is not trusted after a rollback', async () => {
    let failing = false;
    const { machine } = observed((sql) => {
      if (failing && sql === 'COMMIT') throw sqliteError(13, 'database or disk is full');
    });
    const store = opened({ machine });
    await store.open();
    failing = true;
    await expect(take(store)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    failing = false;
    await take(store);
  });
});

describe('a locked ledger', () => {
  test('is waited for without blocking the event loop', async () => {
    const path = newPath();
    const store = opened({ path });
    await store.open();
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    let turns = 0;
    const ticking = setInterval(() => {
      turns += 1;
    }, 1);
    let isOver = false;
    const taken = take(store).finally(() => {
      isOver = true;
    });
    while (turns < 10) await new Promise((resolve) => setTimeout(resolve, 1));
    // A wait that blocks would have ended before anything else had its turn.
    expect(isOver).toBe(false);
    other.exec('COMMIT');
    await taken;
    clearInterval(ticking);
    other.close();
  });

  test('can still be read', async () => {
    const path = newPath();
    const store = opened({ path });
    await (await take(store)).succeed();
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    expect(store.claim.glance?.(claimRequest())?.record?.status).toBe('succeeded');
    other.exec('COMMIT');
    other.close();
  });

  test('is not waited for for ever', async () => {
    const path = newPath();
    let mono = 0;
    const waits: number[] = [];
    const clock = {
      ...systemClock,
      mono: () => mono,
      setTimeout(run: () => void, ms: number) {
        waits.push(ms);
        mono += ms + 100;
        return setImmediate(run);
      },
    };
    const store = opened({ path, clock });
    await store.open();
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    const claims = keys(3).map((key) => take(store, { key }));
    for (const claim of claims) {
      await expect(claim).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retriable: true });
      await expect(claim).rejects.toThrow(/is locked by another process/);
    }
    expect(mono).toBeGreaterThanOrEqual(10_000);
    expect(mono).toBeLessThan(11_000);
    // Jittered, so that processes which met do not meet again and again.
    expect(new Set(waits.slice(0, 50)).size).toBeGreaterThan(40);
    other.exec('COMMIT');
    other.close();
    await take(store);
  });

  test('the request that waits longest keeps its place in the order of urgency', async () => {
    const path = newPath();
    const store = opened({ path });
    const holder = await take(store);
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    const told: string[] = [];
    const work = [
      take(store, { key: 'mail.send/=new' }).then(() => told.push('claim')),
      holder.renew().then(() => told.push('renewal')),
    ];
    await new Promise((resolve) => setTimeout(resolve, 20));
    other.exec('COMMIT');
    await Promise.all(work);
    expect(told).toEqual(['renewal', 'claim']);
    other.close();
  });
});

describe('a full disk', () => {
  test('fails closed and loses nothing, and the ledger works again when there is space', async () => {
    const path = newPath();
    const database = new DatabaseSync(path);
    const store = opened({ database });
    await (await take(store)).succeed();
    const pages = Object.values(database.prepare('PRAGMA page_count').get() ?? {})[0] as number;
    database.exec(`PRAGMA max_page_count = ${pages}`);
    const claim = take(store, { key: 'mail.send/=big', args: 'x'.repeat(100_000) });
    await expect(claim).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retriable: true });
    await expect(claim).rejects.toThrow(/There is no space left for the ledger/);
    expect(await store.read(theNamespace, 'mail.send/=big')).toBeUndefined();
    await lose(store);
    database.exec('PRAGMA max_page_count = 1000000');
    await take(store, { key: 'mail.send/=big', args: 'x'.repeat(100_000) });
    expect(inTheFile(path)).toContain('=big');
    await store.close();
    database.close();
  });

  test('fails only what does not fit', async () => {
    const database = new DatabaseSync(newPath());
    const store = opened({ database });
    await (await take(store)).succeed();
    const pages = Object.values(database.prepare('PRAGMA page_count').get() ?? {})[0] as number;
    database.exec(`PRAGMA max_page_count = ${pages + 1}`);
    const answers = await Promise.allSettled([
      take(store, { key: 'mail.send/=small' }),
      take(store, { key: 'mail.send/=big', args: 'x'.repeat(100_000) }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    await store.close();
    database.close();
  });

  test('really full, on its own file system', async (context) => {
    const folder = join(newFolder(), 'small');
    mkdirSync(folder);
    const { status, stderr } = spawnSync(
      'mount',
      ['-t', 'tmpfs', '-o', 'size=1m,mode=700', 'tmpfs', folder],
      {
        encoding: 'utf8',
      },
    );
    if (status !== 0) {
      console.log(`skipped: a full disk of real bytes: mount: ${stderr}`);
      context.skip('this user may not mount');
    }
    try {
      const path = join(folder, 'ledger.db');
      const store = sqliteStore({ path });
      const told: string[] = [];
      let error: unknown;
      for (let i = 0; i < 200 && error === undefined; i += 1) {
        const key = `mail.send/=${i}`;
        await take(store, { key, args: 'x'.repeat(10_000) }).then(
          () => told.push(key),
          (reason) => {
            error = reason;
          },
        );
      }
      expect(told.length).toBeGreaterThan(10);
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retriable: true });
      expect(String(error)).toMatch(/There is no space left/);
      for (const key of told)
        expect(await store.read(theNamespace, key)).toMatchObject({ status: 'running' });
      expect(spawnSync('mount', ['-o', 'remount,size=8m', folder]).status).toBe(0);
      await take(store, { key: 'mail.send/=after', args: 'x'.repeat(10_000) });
      await store.close();
      expect(inTheFile(path).sort()).toEqual(
        [...told, 'mail.send/=after'].map((key) => key.slice(10)).sort(),
      );
    } finally {
      spawnSync('umount', ['-l', folder]);
    }
  });
});

describe('an error of the disk', () => {
  test.each([
    [1034, 'disk I/O error (fsync)'],
    [778, 'disk I/O error (write)'],
  ])('%i: everybody of the batch is told, and the ledger is opened anew', async (errcode, message) => {
    let failing = false;
    const { counts, machine } = observed((sql) => {
      if (failing && sql === 'COMMIT') throw sqliteError(errcode, message);
    });
    const store = opened({ machine });
    await (await take(store)).succeed();
    failing = true;
    const claims = keys(4).map((key) => take(store, { key }));
    for (const claim of claims) {
      await expect(claim).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        retriable: true,
        cause: { errcode },
      });
    }
    expect(counts).toMatchObject({ connected: 1, closed: 1 });
    failing = false;
    await lose(store);
    await take(store, { key: 'mail.send/=0' });
    expect(counts.connected).toBe(2);
  });

  test('of a real fsync, injected by strace', async (context) => {
    const script = join(import.meta.dirname, 'sqlite-fsync-worker.ts');
    const path = newPath();
    const { status, stdout, stderr, error } = spawnSync(
      'strace',
      [
        '-f',
        '-qq',
        '-o',
        '/dev/null',
        '-e',
        'trace=fsync,fdatasync',
        '-e',
        'inject=fsync,fdatasync:error=EIO:when=20..22',
        process.execPath,
        script,
        path,
      ],
      { encoding: 'utf8' },
    );
    if (error !== undefined || /ptrace|Operation not permitted/.test(stderr)) {
      console.log(`skipped: a real fsync that fails: ${error?.message ?? stderr}`);
      context.skip('strace cannot be used here');
    }
    expect(status, stderr).toBe(0);
    const told = JSON.parse(stdout) as { key: string; code?: string }[];
    expect(new Set(told.map(({ code }) => code))).toEqual(new Set([undefined, 'STORE_UNAVAILABLE']));
    const kept = inTheFile(path);
    // Acknowledged means durable; what was not may have been written all the same.
    for (const { key, code } of told)
      if (code === undefined) expect(kept).toContain(key.slice('mail.send/'.length));
    expect(told.at(-1)?.code).toBeUndefined();
  });

  test('damage that shows only later is refused, and nothing is deleted', async () => {
    let failing = false;
    const { machine } = observed((sql) => {
      if (failing && sql.startsWith('INSERT INTO records'))
        throw sqliteError(11, 'database disk image is malformed');
    });
    const path = newPath();
    const store = opened({ path, machine });
    await (await take(store)).succeed();
    failing = true;
    const claim = take(store, { key: 'mail.send/=next' });
    await expect(claim).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
    await expect(claim).rejects.toThrow(/is damaged .* Nothing was deleted/);
    await store.close();
    expect(inTheFile(path)).toHaveLength(1);
  });
});

describe('in every transaction', () => {
  test('a ledger that has moved meanwhile is noticed', async () => {
    const path = newPath();
    const store = opened({ path });
    await (await take(store)).succeed();
    const other = new DatabaseSync(path);
    other.exec("UPDATE meta SET moved_to = 'postgres://ledger'");
    other.close();
    await expect(take(store, { key: 'mail.send/=next' })).rejects.toMatchObject({ code: 'STORE_MOVED' });
  });

  test('a ledger that a newer semel has upgraded meanwhile is noticed', async () => {
    const path = newPath();
    const store = opened({ path });
    await (await take(store)).succeed();
    const other = new DatabaseSync(path);
    other.exec('UPDATE meta SET schema = 99');
    other.close();
    const claim = take(store, { key: 'mail.send/=next' });
    await expect(claim).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
    await expect(claim).rejects.toThrow(/has schema 99; this version of semel supports up to/);
  });
});

describe('closing', () => {
  test('flushes what is queued, and refuses what comes later', async () => {
    const path = newPath();
    const store = sqliteStore({ path });
    await store.open();
    const claims = keys(20).map((key) => store.claim(claimRequest({ key })));
    // Past `open`, into the queue.
    await null;
    await null;
    const closing = store.close();
    const late = store.claim(claimRequest({ key: 'mail.send/=late' })).catch((error) => error);
    await Promise.all(claims);
    await closing;
    expect(await late).toMatchObject({ code: 'STORE_UNAVAILABLE', retriable: false });
    expect(String(await late)).toMatch(/is closed/);
    await expect(store.open()).rejects.toThrow(/is closed/);
    await expect(store.read(theNamespace, theKey)).rejects.toThrow(/is closed/);
    expect(inTheFile(path)).toHaveLength(20);
  });

  test('leaves one file, and is safe to repeat', async () => {
    const path = newPath();
    const store = sqliteStore({ path });
    await (await take(store)).succeed();
    await Promise.all([store.close(), store.close()]);
    await store.close();
    rmSync(`${path}.id`);
    expect(spawnSync('ls', [join(path, '..')], { encoding: 'utf8' }).stdout.trim()).toBe('ledger.db');
  });
});
