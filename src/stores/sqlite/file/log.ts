// SQLite's write-ahead log as it lies on the disk. Read directly: SQLite ignores what it cannot verify, without a word.
// Nobody locks the log itself, so that it may be opened and closed at will; the ledger's own file may not (own-file.ts).

import { closeSync, fstatSync, openSync } from 'node:fs';
import { bytesAt, metaPage, writesIn } from './meta-page.ts';

export interface Log {
  /** Which pages of the ledger it holds, in any frame that belongs to it. */
  pages(): ReadonlySet<number>;
  /** How many writes the ledger had had when the first one went into this log; undefined where that cannot be read. */
  firstWrites(): number | undefined;
}

const headerBytes = 32;
const frameBytes = 24;
const mostPages = 64;

/** Undefined: there is none, or nothing of it can be read. */
export function readLog<T>(path: string, read: (log: Log) => T): T | undefined {
  let file: number;
  try {
    file = openSync(`${path}-wal`, 'r');
  } catch {
    return undefined;
  }
  try {
    const header = bytesAt(file, 0, headerBytes);
    if (header === undefined) return undefined;
    return read(logIn(file, header));
  } finally {
    closeSync(file);
  }
}

function logIn(file: number, header: Buffer): Log {
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
        const image = bytesAt(file, at + frameBytes, pageSize);
        return image && writesIn(image);
      }
      return undefined;
    },
  };

  /** Frames of an earlier use of the log have other salts. */
  function* frames(limit: number): Generator<{ page: number; at: number }> {
    for (let nth = 0; nth < limit; nth += 1) {
      const at = headerBytes + nth * stride;
      const frame = bytesAt(file, at, frameBytes);
      if (frame === undefined || !frame.subarray(8, 16).equals(salts)) return;
      yield { page: frame.readUInt32BE(0), at };
    }
  }
}
