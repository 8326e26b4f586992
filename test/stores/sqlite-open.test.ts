// Opening a ledger: what is made, and what is refused. Every refusal is an injection of its own, says what happened,
// where, and what to do, and leaves the files as they were.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import Database from 'better-sqlite3';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { isSemelError, type SemelError } from '../../src/core/errors.ts';
import { createSemel, type Semel } from '../../src/index.ts';
import { defaultPath, type SqliteLike, sqliteStore } from '../../src/stores/sqlite/index.ts';
import { lose, take, theKey, theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { newFolder, newPath } from './sqlite-folder.ts';

type Options = Parameters<typeof sqliteStore>[0];
const isRoot = process.geteuid?.() === 0;

/** The refusal of `open`, whose message must name the path and say what to do. */
async function refusal(options: Options & { path: string }): Promise<SemelError> {
  const store = sqliteStore(options);
  const error = await store.open().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  await store.close();
  if (!isSemelError(error)) throw new Error(`not refused with a SemelError: ${String(error)}`);
  expect(error.message).toContain(dirname(options.path));
  expect(error.correctiveAction.length).toBeGreaterThan(20);
  return error;
}

/** A ledger with one settled record. */
async function usedLedger(path = newPath()): Promise<string> {
  const store = sqliteStore({ path });
  await (await take(store)).succeed();
  await store.close();
  return path;
}

const mode = (path: string) => statSync(path).mode & 0o777;

afterEach(() => vi.unstubAllEnvs());

describe('a new ledger', () => {
  test("is in the user's state folder by default", () => {
    vi.stubEnv('XDG_STATE_HOME', '/var/state');
    expect(defaultPath()).toBe('/var/state/semel/ledger.db');
    vi.stubEnv('XDG_STATE_HOME', undefined);
    expect(defaultPath()).toBe(join(homedir(), '.local/state/semel/ledger.db'));
    vi.stubEnv('XDG_STATE_HOME', 'relative');
    expect(defaultPath()).toBe(join(homedir(), '.local/state/semel/ledger.db'));
    vi.stubEnv('HOME', '');
    expect(isAbsolute(defaultPath())).toBe(true);
    vi.stubEnv('HOME', 'relative');
    expect(isAbsolute(defaultPath())).toBe(true);
  });

  test('is for this user only, whatever the umask says', async () => {
    const path = join(newFolder(), 'made', 'by', 'semel', 'ledger.db');
    const before = process.umask(0);
    try {
      const store = sqliteStore({ path });
      await take(store);
      for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}.id`]) expect(mode(file)).toBe(0o600);
      expect(mode(dirname(path))).toBe(0o700);
      expect(mode(dirname(dirname(path)))).toBe(0o700);
      await store.close();
    } finally {
      process.umask(before);
    }
  });

  test('that others could read is for this user only once it is opened', async () => {
    const path = await usedLedger();
    const before = process.umask(0);
    try {
      for (const file of [path, `${path}.id`]) chmodSync(file, 0o664);
      const store = sqliteStore({ path });
      expect((await store.open()).warning).toBeUndefined();
      for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}.id`]) expect(mode(file)).toBe(0o600);
      await store.close();
    } finally {
      process.umask(before);
    }
  });

  test('that is shared on purpose keeps its mode', async () => {
    const path = await usedLedger();
    chmodSync(path, 0o660);
    const store = sqliteStore({ path, shared: true });
    expect((await store.open()).warning).toBeUndefined();
    expect(mode(path)).toBe(0o660);
    await store.close();
  });

  test.runIf(isRoot)('whose mode we may not change is reported as readable', async () => {
    const path = await usedLedger();
    chmodSync(path, 0o644);
    // As if root had made the file for us.
    const store = sqliteStore({ path, machine: { user: () => 12345 } });
    expect((await store.open()).warning).toMatch(
      /Other users .* can read or write .*ledger\.db, .* mode to 600/,
    );
    expect(mode(path)).toBe(0o644);
    await store.close();
  });

  test.each([0o777, 0o1777, 0o702])('in a world-writable folder (%o) is refused', async (bits) => {
    const path = newPath();
    chmodSync(dirname(path), bits);
    // Anybody could put a log there after we looked and before SQLite opens it.
    await expect(sqliteStore({ path }).open()).rejects.toMatchObject({
      code: 'STORE_UNSAFE',
      message: expect.stringMatching(/Every user of this machine can write the folder .*semel\/ledger\.db/),
    });
    expect(readdirSync(dirname(path))).toEqual([]);
    const own = sqliteStore({ path: join(dirname(path), 'semel', 'ledger.db') });
    expect((await own.open()).warning).toBeUndefined();
    await own.close();
  });

  test('in a world-writable folder is reported if it is shared on purpose', async () => {
    const path = newPath();
    chmodSync(dirname(path), 0o777);
    const store = sqliteStore({ path, shared: true });
    expect((await store.open()).warning).toMatch(
      /Every user of this machine can write the folder .*chmod o-w/,
    );
    await store.close();
  });

  test('in such a folder warns the user of the library once', async () => {
    const path = newPath();
    chmodSync(dirname(path), 0o777);
    const said: string[] = [];
    const onWarning = (sentence: string) => void said.push(sentence);
    const store = sqliteStore({ path, shared: true });
    await using semel = createSemel({ store, namespace: 'test', onWarning });
    await semel.once('mail.welcome', 1, () => 'sent');
    await semel.once('mail.welcome', 2, () => 'sent');
    expect(said.filter((sentence) => /can write the folder/.test(sentence))).toHaveLength(1);
  });

  test('leaves no draft of its id', async () => {
    const path = await usedLedger();
    expect(readdirSync(dirname(path)).sort()).toEqual(['ledger.db', 'ledger.db.id']);
  });

  test('opens once for many callers, and says where it is', async () => {
    const path = newPath();
    const store = sqliteStore({ path });
    const [facts] = await Promise.all([store.open(), store.open(), take(store)]);
    expect(facts).toMatchObject({
      kind: 'sqlite',
      location: realpathSync(path),
      forgets: undefined,
      clockProblem: undefined,
    });
    await store.close();
  });

  test('is the same through a link', async () => {
    const path = await usedLedger();
    const link = join(newFolder(), 'link.db');
    symlinkSync(path, link);
    const store = sqliteStore({ path: link });
    await lose(store);
    await store.close();
    expect(existsSync(`${link}.id`)).toBe(false);
  });

  test('is durable: WAL, synchronous FULL, a format of its own', async () => {
    const path = newPath();
    const database = new DatabaseSync(path);
    const store = sqliteStore({ database });
    await take(store);
    const pragma = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];
    expect(pragma('journal_mode')).toBe('wal');
    expect(pragma('synchronous')).toBe(2);
    expect(pragma('busy_timeout')).toBe(0);
    expect(pragma('application_id')).toBe(0x736d656c);
    await store.close();
    database.close();
  });

  test('is not made by making a store: only by using it', async () => {
    const path = newPath();
    const store = sqliteStore({ path });
    await store.close();
    expect(existsSync(path)).toBe(false);
  });
});

describe('a handle that the user brings', () => {
  test('of better-sqlite3 works, and stays open', async () => {
    const path = newPath();
    const database = new Database(path);
    const store = sqliteStore({ database });
    await (await take(store)).succeed();
    await store.close();
    expect(database.open).toBe(true);
    database.close();
    const again = sqliteStore({ path });
    await lose(again);
    await again.close();
  });

  test('must be on a file', async () => {
    const store = sqliteStore({ database: new DatabaseSync(':memory:') });
    await expect(store.open()).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
    await expect(store.open()).rejects.toThrow(/memoryStore/);
  });

  test('inside a transaction of its owner is waited for', async () => {
    const database = new DatabaseSync(newPath());
    const store = sqliteStore({ database });
    await store.open();
    database.exec('BEGIN');
    const taken = take(store);
    await new Promise((resolve) => setTimeout(resolve, 20));
    database.exec('COMMIT');
    await taken;
    await store.close();
  });

  test('that its owner closed answers STORE_UNAVAILABLE', async () => {
    const database = new DatabaseSync(newPath());
    const store = sqliteStore({ database });
    const attempt = await take(store);
    database.close();
    await expect(attempt.succeed()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await expect(store.read(theNamespace, theKey)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });
});

describe('refused as a place', () => {
  test.each([
    [0x6969, 'NFS'],
    [0x517b, 'SMB'],
    [0xff534d42, 'CIFS'],
    [0xfe534d42, 'SMB2'],
    [0x01021997, '9P'],
    [0x00c36400, 'Ceph'],
    [0x65735546, 'FUSE'],
  ])('a network file system: %i', async (type, name) => {
    const path = newPath();
    const error = await refusal({ path, machine: { fileSystem: () => type } });
    expect(error.code).toBe('STORE_UNSAFE');
    expect(error.message).toContain(`a network file system (${name})`);
    expect(existsSync(path)).toBe(false);
  });

  test.each([
    [0x01021994, /is on tmpfs: it is lost when the machine restarts/],
    [0x794c7630, /container's own file system: it is lost when the container is replaced/],
  ])('warns about a file system that is lost on a restart, %i', async (type, sentence) => {
    const store = sqliteStore({ path: newPath(), machine: { fileSystem: () => type } });
    expect((await store.open()).forgets).toMatch(sentence);
    await store.close();
  });

  test('a disk does not forget', async () => {
    const store = sqliteStore({ path: newPath(), machine: { fileSystem: () => 0xef53 } });
    expect((await store.open()).forgets).toBeUndefined();
    await store.close();
  });

  test('a folder', async () => {
    const error = await refusal({ path: newFolder() });
    expect(error.message).toContain('is a folder');
  });

  test('a ledger with a second name', async () => {
    const path = await usedLedger();
    const second = join(newFolder(), 'second.db');
    linkSync(path, second);
    for (const name of [path, second]) {
      const error = await refusal({ path: name });
      expect(error.code).toBe('STORE_UNSAFE');
      expect(error.message).toContain('has 2 names (hard links)');
    }
    rmSync(second);
    const store = sqliteStore({ path });
    await lose(store);
    await store.close();
  });

  test('a folder that cannot be created', async () => {
    const file = join(newFolder(), 'file');
    writeFileSync(file, '');
    const error = await refusal({ path: join(file, 'ledger.db') });
    expect(error.message).toMatch(/The folder of the ledger .* cannot be created \(E(NOTDIR|EXIST)/);
  });

  test.runIf(isRoot)('a folder of another user, unless it is accepted', async () => {
    const path = newPath();
    chownSync(dirname(path), 12345, 12345);
    const error = await refusal({ path });
    expect(error.code).toBe('STORE_UNSAFE');
    expect(error.message).toContain('belongs to another user (12345, this process is 0)');
    expect(existsSync(path)).toBe(false);
    const store = sqliteStore({ path, shared: true });
    await take(store);
    await store.close();
  });

  test.runIf(isRoot)('a ledger of another user', async () => {
    const path = await usedLedger();
    chownSync(path, 12345, 12345);
    expect((await refusal({ path })).message).toContain('ledger.db belongs to another user');
  });

  /** Pages that SQLite would put back into the ledger when it is opened next: here, one of zeros. */
  function journalFor(path: string): Buffer {
    const pageSize = readFileSync(path).readUInt16BE(16);
    const header = Buffer.alloc(512);
    header.write('d9d505f920a163d7', 'hex');
    for (const [nth, value] of [1, 0, statSync(path).size / pageSize, 512, pageSize].entries())
      header.writeUInt32BE(value, 8 + 4 * nth);
    const page = Buffer.alloc(pageSize + 8);
    page.writeUInt32BE(3);
    return Buffer.concat([header, page]);
  }

  test.runIf(isRoot)(
    'a journal that another user has put next to it, which SQLite would play back',
    async () => {
      const path = await usedLedger();
      const before = readFileSync(path);
      writeFileSync(`${path}-journal`, journalFor(path));
      chownSync(`${path}-journal`, 12345, 12345);
      expect((await refusal({ path })).message).toContain('ledger.db-journal belongs to another user');
      expect(readFileSync(path).equals(before)).toBe(true);
    },
  );

  test('a journal that is a link to another one', async () => {
    const path = await usedLedger();
    const before = readFileSync(path);
    const elsewhere = join(newFolder(), 'journal');
    writeFileSync(elsewhere, journalFor(path));
    symlinkSync(elsewhere, `${path}-journal`);
    expect((await refusal({ path })).message).toContain('ledger.db-journal is not a regular file');
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('a folder that this user may not write', async () => {
    const folder = newFolder();
    chmodSync(folder, 0o755);
    const script = `
      import { sqliteStore } from ${JSON.stringify(join(import.meta.dirname, '../../src/stores/sqlite/index.ts'))};
      await sqliteStore({ path: ${JSON.stringify(join(folder, 'ledger.db'))} }).open().catch((e) => console.log(e.code, e.message));`;
    if (!isRoot) chmodSync(folder, 0o555);
    const user = isRoot ? { uid: 65534, gid: 65534 } : {};
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      ...user,
      encoding: 'utf8',
    });
    expect(stdout, stderr).toMatch(/^STORE_UNSAFE This user cannot write .*EACCES/);
  });
});

describe('refused as a file, and left as it was', () => {
  async function leftAlone(path: string, options: Options = {}): Promise<SemelError> {
    const before = readFileSync(path);
    const error = await refusal({ path, ...options });
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(error.code).toBe('STORE_UNSAFE');
    return error;
  }

  test('junk', async () => {
    const path = newPath();
    writeFileSync(path, 'a shopping list, '.repeat(1000));
    expect((await leftAlone(path)).message).toContain('is not a SQLite database');
  });

  test('a database of another program, by its tables', async () => {
    const path = newPath();
    const database = new DatabaseSync(path);
    database.exec('CREATE TABLE invoices (id INTEGER)');
    database.close();
    expect((await leftAlone(path)).message).toContain("another program's database (it holds invoices)");
  });

  test('a database of another program, by its application id', async () => {
    const path = newPath();
    const database = new DatabaseSync(path);
    database.exec('PRAGMA application_id = 252006674');
    database.close();
    expect((await leftAlone(path)).message).toContain(
      "another program's database (application id 252006674)",
    );
  });

  test.each([
    ['trigger', 'extra', 'CREATE TRIGGER extra AFTER INSERT ON records BEGIN DELETE FROM records; END'],
    ['view', 'Scopes', 'ALTER TABLE scopes RENAME TO kept; CREATE VIEW Scopes AS SELECT * FROM kept'],
    ['view', 'events', 'ALTER TABLE events RENAME TO kept; CREATE VIEW events AS SELECT * FROM kept'],
    [
      'index',
      'record_keys',
      'DROP INDEX record_keys; CREATE INDEX record_keys ON records (scope, key, key_sum)',
    ],
    ['table', 'records', 'ALTER TABLE records ADD COLUMN mine INTEGER DEFAULT 1'],
    ['table', 'scopes', 'ALTER TABLE scopes RENAME COLUMN contract TO contracts'],
  ])('a ledger with a %s of somebody else: %s', async (type, name, change) => {
    const path = await usedLedger();
    const database = new DatabaseSync(path);
    database.exec(change);
    database.close();
    expect((await leftAlone(path)).message).toContain(` ${type} that is not semel's (${name})`);
  });

  test('a ledger cut off at any page', async () => {
    const path = await usedLedger();
    const { size } = statSync(path);
    expect(size % 4096).toBe(0);
    for (let length = 4096; length < size; length += 4096) {
      const copy = newPath();
      copyFileSync(path, copy);
      truncateSync(copy, length);
      expect((await leftAlone(copy)).message, `${length} of ${size} bytes`).toMatch(/is damaged|is cut off/);
    }
  });

  test('a ledger cut off inside a page', async () => {
    const path = await usedLedger();
    truncateSync(path, statSync(path).size - 100);
    expect((await leftAlone(path)).message).toMatch(/is damaged|is cut off/);
  });

  test('a ledger that was cut off while its log was still there', async () => {
    const path = newPath();
    const store = sqliteStore({ path });
    for (let i = 0; i < 200; i += 1)
      await (await take(store, { key: `mail.send/=${i}` })).succeed('x'.repeat(2000));
    const other = new DatabaseSync(path);
    other.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    other.close();
    await take(store);
    const copy = newPath();
    for (const side of ['', '-wal']) copyFileSync(path + side, copy + side);
    await store.close();
    truncateSync(copy, 5 * 4096);
    expect((await leftAlone(copy)).message).toMatch(/is damaged|is cut off/);
  });

  test('an empty file where there was a ledger', async () => {
    const path = await usedLedger();
    truncateSync(path, 0);
    const error = await leftAlone(path);
    expect(error.message).toMatch(/is empty, but .*ledger\.db\.id shows that there was one/);
    expect(error.message).toContain('which may repeat everything done so far, delete');
  });

  test('an empty file whose log is still there: opening it would delete the log', async () => {
    const path = newPath();
    const store = sqliteStore({ path });
    await take(store);
    const copy = newPath();
    copyFileSync(`${path}-wal`, `${copy}-wal`);
    writeFileSync(copy, '');
    await store.close();
    expect((await leftAlone(copy)).message).toMatch(/is empty, but .*-wal shows that there was one/);
    expect(statSync(`${copy}-wal`).size).toBeGreaterThan(0);
  });

  test('a ledger that is gone', async () => {
    const path = await usedLedger();
    rmSync(path);
    const error = await refusal({ path });
    expect(error.message).toMatch(/is missing, but .*ledger\.db\.id shows that there was one/);
    expect(existsSync(path)).toBe(false);
  });

  test('another ledger in its place', async () => {
    const path = await usedLedger();
    copyFileSync(await usedLedger(), path);
    expect((await leftAlone(path)).message).toContain('is not the ledger that was here before');
  });

  test('a person accepts a new, empty ledger by deleting the id', async () => {
    const path = await usedLedger();
    truncateSync(path, 0);
    rmSync(`${path}.id`);
    const store = sqliteStore({ path });
    await take(store);
    await store.close();
    expect(readFileSync(`${path}.id`, 'utf8')).toMatch(/^[0-9a-f]{32}\n\d{16}\n$/);
  });

  test('a ledger that was copied with its id is the same ledger', async () => {
    const path = await usedLedger();
    const folder = join(newFolder(), 'copy');
    cpSync(dirname(path), folder, { recursive: true });
    const store = sqliteStore({ path: join(folder, 'ledger.db') });
    await lose(store);
    await store.close();
  });

  test('a ledger that was moved elsewhere by `store copy`', async () => {
    const path = await usedLedger();
    const database = new DatabaseSync(path);
    database.exec("UPDATE meta SET moved_to = 'postgres://ledger'");
    database.close();
    const error = await refusal({ path });
    expect(error.code).toBe('STORE_MOVED');
    expect(error.message).toContain('has moved to postgres://ledger');
  });

  test('a ledger that was moved answers no replay either, neither at once nor after the first call', async () => {
    const path = newPath();
    const sent = (semel: Semel) =>
      semel.once('mail', { to: 'ann' }, () => 'sent').catch((error) => error.code);
    await using before = createSemel({ store: `sqlite:${path}`, namespace: 'shop', cache: false });
    expect(await sent(before)).toBe('sent');
    const database = new DatabaseSync(path);
    database.exec("UPDATE meta SET moved_to = 'postgres://ledger'");
    database.close();

    await using after = createSemel({ store: `sqlite:${path}`, namespace: 'shop', cache: false });
    expect([await sent(after), await sent(after)]).toEqual(['STORE_MOVED', 'STORE_MOVED']);
    // Who was there before learns it by a write.
    await before.once('mail', { to: 'bob' }, () => 'sent').catch(() => {});
    expect(await sent(before)).toBe('STORE_MOVED');
  });

  test('a ledger that has lost its description', async () => {
    const path = await usedLedger();
    const database = new DatabaseSync(path);
    database.exec('DELETE FROM meta');
    database.close();
    expect((await leftAlone(path)).message).toContain('has lost its description');
  });

  test('any damage that a first look can see', async () => {
    const path = await usedLedger();
    const bytes = readFileSync(path);
    bytes.fill(0xff, 100, 4096);
    writeFileSync(path, bytes);
    expect((await leftAlone(path)).message).toContain('is damaged');
  });
});

describe('refused as a database library', () => {
  /** node:sqlite, with other answers to some statements. */
  function lying(answers: Record<string, unknown[]>) {
    return async (path: string): Promise<SqliteLike> => {
      const database = new DatabaseSync(path, { timeout: 0 });
      return {
        exec: (sql) => database.exec(sql),
        close: () => database.close(),
        prepare(sql) {
          const statement = database.prepare(sql);
          const answer = answers[sql];
          return answer === undefined ? statement : Object.assign(statement, { get: () => answer });
        },
      };
    };
  }

  test.each(['3.51.2', '3.50.9', '2.99.99'])('SQLite %s', async (version) => {
    const connect = lying({ 'SELECT sqlite_version()': [version] });
    const store = sqliteStore({ path: newPath(), machine: { connect } });
    await expect(store.open()).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
    await expect(store.open()).rejects.toThrow(`This SQLite is ${version}`);
  });

  test.each(['3.51.3', '3.51.10', '3.53.4', '4.0.0'])('not SQLite %s', async (version) => {
    const connect = lying({ 'SELECT sqlite_version()': [version] });
    const store = sqliteStore({ path: newPath(), machine: { connect } });
    await store.open();
    await store.close();
  });

  test('one that does not keep synchronous = FULL', async () => {
    const connect = lying({ 'PRAGMA synchronous': [1] });
    const error = await refusal({ path: newPath(), machine: { connect } });
    expect(error.message).toContain(
      'has synchronous = 1, not 2 (FULL): a power cut could lose committed records',
    );
  });

  test('one that cannot keep its log as WAL', async () => {
    const connect = lying({ 'PRAGMA journal_mode = WAL': ['delete'] });
    const error = await refusal({ path: newPath(), machine: { connect } });
    expect(error.message).toContain('has journal_mode = delete, not wal');
  });
});

describe('a file that is taken away under a running process', () => {
  test.each(['deleted', 'replaced', 'without its log', 'its log removed by another library'])(
    '%s: no claim goes into it any more',
    async (what) => {
      const path = newPath();
      const store = sqliteStore({ path });
      await (await take(store)).succeed();
      if (what === 'deleted') rmSync(path);
      if (what === 'replaced') {
        const other = await usedLedger();
        renameSync(other, path);
      }
      if (what === 'without its log') rmSync(`${path}-wal`);
      if (what === 'its log removed by another library') {
        // Its close drops the locks of the whole process, so it takes itself for the last one.
        const other = new Database(path);
        other.prepare('SELECT count(*) FROM records').get();
        other.close();
        expect(existsSync(`${path}-wal`)).toBe(false);
      }
      const claim = take(store, { key: 'mail.send/=next' });
      await expect(claim).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
      await expect(claim).rejects.toThrow(/or its log was deleted or replaced while this process used it/);
      // It stays so: whoever put the file back may have put back an older one.
      await expect(take(store, { key: 'mail.send/=other' })).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
      await store.close();
    },
  );

  test('a log that goes while a claim is written: the claim is not answered', async () => {
    const path = newPath();
    let isLogRemoved = false;
    const connect = async (file: string): Promise<SqliteLike> => {
      const database = new DatabaseSync(file, { timeout: 0 });
      return {
        exec: (sql) => database.exec(sql),
        close: () => database.close(),
        prepare(sql) {
          const statement = database.prepare(sql);
          if (sql !== 'COMMIT') return statement;
          const run = () => {
            if (isLogRemoved) rmSync(`${path}-wal`);
            return statement.run();
          };
          return Object.assign(Object.create(statement), { run });
        },
      };
    };
    const store = sqliteStore({ path, machine: { connect } });
    await (await take(store)).succeed();
    isLogRemoved = true;
    await expect(take(store, { key: 'mail.send/=next' })).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
    await store.close();
  });

  test.each(['', '-wal'])('closing does not touch the log of a later process: ledger.db%s', async (side) => {
    const path = newPath();
    const store = sqliteStore({ path });
    await (await take(store)).succeed();
    const elsewhere = new DatabaseSync(path);
    elsewhere.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    elsewhere.close();
    for (const file of side === '' ? ['', '-wal', '-shm', '.id'] : ['-wal', '-shm']) rmSync(path + file);
    const after = sqliteStore({ path });
    await take(after, { key: 'mail.send/=after' });
    await after.close();
    await store.close();
    const later = sqliteStore({ path });
    await lose(later, { key: 'mail.send/=after' });
    await later.close();
  });
});
