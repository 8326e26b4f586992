// Reads SQLite's write-ahead log from disk, because SQLite silently ignores what it cannot verify. The log carries no locks,
// so it can be opened and closed freely; the ledger's own file cannot (own-file.ts).

import { closeSync, fstatSync, openSync } from 'node:fs';
import { metaPage, parseWrites, readBytes } from './meta-page.ts';

interface Log {
  /** The ledger's pages that the log holds. */
  pages(): ReadonlySet<number>;
  /** The write count after the first write in this log; undefined if it cannot be read. */
  firstWrites(): number | undefined;
}

const headerBytes = 32;
const frameBytes = 24;
const mostPages = 64;

/** Undefined if there is no readable log. */
export function readLog<T>(path: string, read: (log: Log) => T): T | undefined {
  let file: number;
  try {
    file = openSync(`${path}-wal`, 'r');
  } catch {
    return undefined;
  }
  try {
    const header = readBytes(file, 0, headerBytes);
    if (header === undefined) return undefined;
    return read(parseLog(file, header));
  } finally {
    closeSync(file);
  }
}

function parseLog(file: number, header: Buffer): Log {
  const pageSize = header.readUInt32BE(8);
  const salts = header.subarray(16, 24);
  const stride = frameBytes + pageSize;
  const isSane = pageSize >= 512 && pageSize <= 65_536;
  const count = isSane ? Math.floor((fstatSync(file).size - headerBytes) / stride) : 0;

  return {
    pages() {
      const found = new Set<number>();
      for (const { page } of frames(count)) found.add(page);
      return found;
    },
    firstWrites() {
      for (const { page, at } of frames(Math.min(count, mostPages))) {
        if (page !== metaPage) continue;
        const image = readBytes(file, at + frameBytes, pageSize);
        return image && parseWrites(image);
      }
      return undefined;
    },
  };

  /** Stops at frames from before the log was restarted: their salts differ. */
  function* frames(limit: number): Generator<{ page: number; at: number }> {
    for (let nth = 0; nth < limit; nth += 1) {
      const at = headerBytes + nth * stride;
      const frame = readBytes(file, at, frameBytes);
      if (frame === undefined || !frame.subarray(8, 16).equals(salts)) return;
      yield { page: frame.readUInt32BE(0), at };
    }
  }
}
