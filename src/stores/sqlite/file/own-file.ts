// The ledger's own file, without its log. The system drops all locks that a process has on a file when any of its threads
// closes any handle of it, and a thread that ends closes what it opened. So SQLite opens it, which knows the locks of all
// threads and keeps such a handle until they are gone.

import { fstatSync, openSync, statSync } from 'node:fs';
import { isOfNode, ownLooker, type SqliteLike, single } from '../client.ts';
import { bytesAt, metaPage, writesIn } from './meta-page.ts';

/** How many writes it knows of; 0 where it does not say. A count that was expected is believed at the first look. */
export type OwnWrites = (...expected: readonly number[]) => number;

/** `handle`: the user's own, which may be of another library. */
export async function ownWritesOf(path: string, handle: SqliteLike | undefined): Promise<OwnWrites> {
  if (handle === undefined || (await isOfNode(handle))) {
    const look = await ownLooker();
    return settled(() => writesSeenBy(look, path));
  }
  // That library would not know of our SQLite's handles, nor of those that end with a thread: nothing is looked at.
  if (!process.getBuiltinModule('node:worker_threads').isMainThread) return () => Number.POSITIVE_INFINITY;
  const file = keptOpen(path);
  return settled(() => writesAt(file));
}

/** Another count is read twice: another process may be writing it. Each look opens the file, which is expensive. */
function settled(read: () => number): OwnWrites {
  return (...expected) => {
    for (let seen = read(); ; ) {
      if (expected.includes(seen)) return seen;
      const again = read();
      if (again === seen) return seen;
      seen = again;
    }
  };
}

function writesSeenBy(look: (path: string) => SqliteLike, path: string): number {
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

function writesAt(file: number): number {
  const size = bytesAt(file, 0, 18)?.readUInt16BE(16) ?? 0;
  const pageSize = size === 1 ? 65_536 : size;
  if (pageSize < 512) return 0;
  const page = bytesAt(file, (metaPage - 1) * pageSize, pageSize);
  return (page && writesIn(page)) ?? 0;
}

/** One for all copies of semel in this process. */
const name = Symbol.for('semel.sqlite.files');
const registry = globalThis as unknown as Record<symbol, Map<string, number> | undefined>;

/** Never closed: nobody tells when the last handle of the other library is. */
function keptOpen(path: string): number {
  registry[name] ??= new Map();
  const files = registry[name];
  const known = files.get(nameOf(statSync(path)));
  if (known !== undefined) return known;
  const file = openSync(path, 'r');
  files.set(nameOf(fstatSync(file)), file);
  return file;
}

function nameOf({ dev, ino }: { dev: number; ino: number }): string {
  return `${dev}:${ino}`;
}
