// Reads the ledger's own file, without its log. POSIX drops all of a process's locks on a file when any of its threads
// closes any descriptor of it. So SQLite opens the file: it knows the locks of all threads, and delays the close.

import { fstatSync, openSync, statSync } from 'node:fs';
import { isNodeSqlite, openWithoutLog, type SqliteLike, single } from '../client.ts';
import { metaPage, parseWrites, readBytes } from './meta-page.ts';

/** The write count; 0 if it cannot be read. An expected count is trusted at the first read. */
export type OwnWrites = (...expected: readonly number[]) => number;

/** `handle` is the user's own, perhaps of another SQLite library. */
export async function createOwnWritesReader(
  path: string,
  handle: SqliteLike | undefined,
): Promise<OwnWrites> {
  if (handle === undefined || (await isNodeSqlite(handle))) {
    const look = await openWithoutLog();
    return readUntilStable(() => countWritesBySqlite(look, path));
  }
  // Another library does not know our handles. In a worker thread, which closes its handles when it ends, don't check.
  if (!process.getBuiltinModule('node:worker_threads').isMainThread) return () => Number.POSITIVE_INFINITY;
  const file = keepOpen(path);
  return readUntilStable(() => countWritesInFile(file));
}

/** An unexpected count is read again, because another process may be writing it. Each read opens the file: expensive. */
function readUntilStable(read: () => number): OwnWrites {
  return (...expected) => {
    for (let seen = read(); ; ) {
      if (expected.includes(seen)) return seen;
      const again = read();
      if (again === seen) return seen;
      seen = again;
    }
  };
}

function countWritesBySqlite(look: (path: string) => SqliteLike, path: string): number {
  try {
    const database = look(path);
    try {
      return single(database, 'SELECT writes FROM meta') as number;
    } finally {
      database.close();
    }
  } catch {
    return 0;
  }
}

function countWritesInFile(file: number): number {
  const size = readBytes(file, 0, 18)?.readUInt16BE(16) ?? 0;
  const pageSize = size === 1 ? 65_536 : size;
  if (pageSize < 512) return 0;
  const page = readBytes(file, (metaPage - 1) * pageSize, pageSize);
  return (page && parseWrites(page)) ?? 0;
}

/** Shared by all copies of semel in this process. */
const name = Symbol.for('semel.sqlite.files');
const registry = globalThis as unknown as Record<symbol, Map<string, number> | undefined>;

/** Never closed: we cannot know when the other library has closed its last handle. */
function keepOpen(path: string): number {
  registry[name] ??= new Map();
  const files = registry[name];
  const known = files.get(formatInode(statSync(path)));
  if (known !== undefined) return known;
  const file = openSync(path, 'r');
  files.set(formatInode(fstatSync(file)), file);
  return file;
}

export function formatInode({ dev, ino }: { dev: number; ino: number }): string {
  return `${dev}:${ino}`;
}
