// Notices when the ledger's path no longer leads to the files that this process opened. After `rm`, `mv`, a restored copy, a
// changed link or a removed log, its claims would go where no other process sees them.

import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { reachesCount } from './meta-page.ts';
import { formatInode, type OwnWrites } from './own-file.ts';

interface WatchOptions {
  /** The path as the user gave it: a link on it may change. */
  readonly wanted: string;
  readonly path: string;
  /** The write count in the ledger's own file, without its log. */
  readonly ownWrites: OwnWrites;
}

/** Two changes within this time may have the same timestamp. */
const tickMs = 20;

/**
 * Does not stat the log unless the folder changed: after a stat, the next write updates the log's timestamps, which every
 * commit would then have to flush as well.
 *
 * Uses ctime, because `cp -a` and `rsync -a` set mtime back. While a file is open, its inode number is not reused.
 */
export function watch({ wanted, path, ownWrites }: WatchOptions): (writes?: number) => boolean {
  const folder = dirname(path);
  const log = `${path}-wal`;
  const ledgerNode = readInode(wanted);
  const logNode = readInode(log);
  const ledger = trackChanges();
  const place = trackChanges();
  // Before the count is read, so that the first write need not read it again.
  ledger.isNew(statSync(wanted).ctimeMs);
  let written = ownWrites();

  return (writes = written) => {
    const found = statSync(wanted, { throwIfNoEntry: false });
    if (found === undefined || formatInode(found) !== ledgerNode) return false;
    if (ledger.isNew(found.ctimeMs) && !isOurs(writes)) return false;
    const holder = statSync(folder, { throwIfNoEntry: false });
    if (holder === undefined) return false;
    return !place.isNew(holder.ctimeMs) || (readInode(log) === logNode && readInode(path) === ledgerNode);
  };

  /** A checkpoint only adds to the ledger's own file. A lower count means that the file was replaced. */
  function isOurs(writes: number): boolean {
    let known = 0;
    const look = () => {
      // Usually this process did the checkpoint, after its last write.
      known = ownWrites(writes, written);
      return known;
    };
    if (!reachesCount(written, look)) return false;
    written = known;
    return true;
  }
}

interface ChangeTracker {
  /** True for a new change, and once more after its tick, which may have hidden a second one. */
  isNew(changedAt: number): boolean;
}

function trackChanges(): ChangeTracker {
  let seen: number | undefined;
  let isLast = false;
  return {
    isNew(changedAt) {
      const isOver = Math.abs(Date.now() - changedAt) > tickMs;
      if (changedAt === seen && (isLast || !isOver)) return false;
      seen = changedAt;
      isLast = isOver;
      return true;
    },
  };
}

function readInode(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && formatInode(found);
}
