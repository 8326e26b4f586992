// While a process uses a ledger, are the files under its name still the ones that it opened? After `rm`, `mv`, a restored
// copy, a link that points elsewhere, or a log that was taken away, claims would go where no other process sees them.

import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { isReached } from './meta-page.ts';
import type { OwnWrites } from './own-file.ts';

export interface WatchOptions {
  /** As it was named: a link on the way may be pointed elsewhere. */
  readonly wanted: string;
  readonly path: string;
  /** What the ledger's own file says, without its log. */
  readonly ownWrites: OwnWrites;
}

/** Two changes within this time may carry the same timestamp. */
const tickMs = 20;

/**
 * As long as nothing came or went in the folder, it does not look at the log. It had better not: a log whose times were
 * looked at gets new ones with every write, and every commit would have to write them to the disk too.
 *
 * Times of change, not of modification: those are what `cp -a` and `rsync -a` set back. While files are open, no other
 * file gets their numbers.
 */
export function watch({ wanted, path, ownWrites }: WatchOptions): (writes?: number) => boolean {
  const folder = dirname(path);
  const log = `${path}-wal`;
  const ledgerNode = nodeOf(wanted);
  const logNode = nodeOf(log);
  const ledger = sightings();
  const place = sightings();
  // Before it is read: what was changed earlier needs no second look at the first write.
  ledger.isNew(statSync(wanted).ctimeMs);
  let written = ownWrites();

  return (writes = written) => {
    const found = statSync(wanted, { throwIfNoEntry: false });
    if (found === undefined || nameOf(found) !== ledgerNode) return false;
    if (ledger.isNew(found.ctimeMs) && !isOurs(writes)) return false;
    const holder = statSync(folder, { throwIfNoEntry: false });
    if (holder === undefined) return false;
    return !place.isNew(holder.ctimeMs) || (nodeOf(log) === logNode && nodeOf(path) === ledgerNode);
  };

  /** A checkpoint only ever adds to the ledger's own file. If it knows less than before, somebody put another one there. */
  function isOurs(writes: number): boolean {
    let known = 0;
    const look = () => {
      // Usually it was this process that folded in its log, with its last write.
      known = ownWrites(writes, written);
      return known;
    };
    if (!isReached(written, look)) return false;
    written = known;
    return true;
  }
}

interface Sightings {
  /** True for a change that has not been looked at, and once more when its moment is over. */
  isNew(changedAt: number): boolean;
}

function sightings(): Sightings {
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

function nodeOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && nameOf(found);
}

function nameOf({ dev, ino }: { dev: number; ino: number }): string {
  return `${dev}:${ino}`;
}
