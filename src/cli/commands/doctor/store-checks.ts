// What can be wrong with the ledger itself: whether writes are durable, and who else can access it.

import { toleranceMs } from '../../../store/clock-check.ts';
import { type Check, count, examples } from './finding.ts';
import type { Refused, Seen } from './seen.ts';

const mebibyte = 1024 * 1024;
/** A full disk refuses claims, and nothing that is remembered runs. */
const littleSpace = 100 * mebibyte;
/** Four times the size that it is cut back to when it can be. */
const muchLog = 256 * mebibyte;

/** The store cannot be used by this version; everything else that is refused is about the place. */
function isOfVersion({ evidence }: Refused): boolean {
  return 'schema' in evidence || 'version' in evidence;
}

export function refusedFor(
  seen: Seen,
  reason: 'version' | 'place',
): readonly { found: string; next: string }[] {
  const { refused } = seen;
  if (refused === undefined || isOfVersion(refused) !== (reason === 'version')) return [];
  return [{ found: `${refused.happened} Nothing else could be looked at.`, next: refused.next }];
}

export const ledgerRefused: Check<'LEDGER_REFUSED'> = {
  id: 'LEDGER_REFUSED',
  finds: (seen) => refusedFor(seen, 'place'),
};

export const damaged: Check<'DAMAGED'> = {
  id: 'DAMAGED',
  finds({ damage }) {
    return damage.map((problem) => ({
      found: problem,
      next: 'Keep a copy of the ledger, then restore a backup (`semel store restore`). Look at the disk and the kernel log for the cause.',
    }));
  },
};

export const durability: Check<'DURABILITY'> = {
  id: 'DURABILITY',
  finds({ facts, files }) {
    const found = [];
    if (facts?.forgets !== undefined)
      found.push({
        found: facts.forgets,
        next:
          files === undefined && facts.location !== 'memory'
            ? 'Make the server durable: change the setting that is named there.'
            : 'Keep the ledger on a disk that survives a reboot: SEMEL_STORE=sqlite:<path>.',
      });
    // A ledger that was refused has not been set right, and its refusal says what to do.
    if (facts !== undefined && files?.journal === 'rollback')
      found.push({
        found: `${files.path} was not in WAL mode when it was looked at: it was just restored from a backup, or another program has changed how it is written.`,
        next: 'Nothing, if it was restored: semel has already corrected it. Otherwise find out which program opened it, and let only semel write it.',
      });
    return found;
  },
};

export const clock: Check<'CLOCK'> = {
  id: 'CLOCK',
  finds({ facts, records, now }) {
    const found = [];
    if (facts?.clockProblem !== undefined)
      found.push({
        found: facts.clockProblem,
        next: 'Let the machine keep its time (NTP), then look again.',
      });
    const future = records.filter(({ createdAt }) => createdAt.getTime() > now + toleranceMs);
    if (future.length > 0)
      found.push({
        found: `${count(future.length, 'record was', 'records were')} written by a clock that is ahead of this one.`,
        next: 'Compare this machine’s clock with a correct one. Records written in the future expire too late.',
        records: examples(future),
      });
    return found;
  },
};

export const permissions: Check<'PERMISSIONS'> = {
  id: 'PERMISSIONS',
  finds({ facts, livenessProblem }) {
    const found = [];
    if (facts?.warning !== undefined)
      found.push({
        found: facts.warning,
        next: 'Records hold args and results: let only their user read them.',
      });
    if (livenessProblem !== undefined)
      found.push({
        found: livenessProblem,
        next: 'Its pipes say which runs are alive: remove it, and keep the ledger in a folder that only its user can write.',
      });
    return found;
  },
};

export const diskSpace: Check<'DISK_SPACE'> = {
  id: 'DISK_SPACE',
  finds({ files }) {
    if (files?.freeBytes === undefined || files.freeBytes >= littleSpace) return [];
    return [
      {
        found: `${megabytes(files.freeBytes)} are free on the disk of the ledger ${files.path}.`,
        next: "Free space or move the ledger: on a full disk, guarded calls don't run. `semel prune` removes what has expired.",
      },
    ];
  },
};

export const logSize: Check<'LOG_SIZE'> = {
  id: 'LOG_SIZE',
  finds({ files }) {
    if (files === undefined || files.logBytes <= muchLog) return [];
    return [
      {
        found: `The log ${files.path}-wal has grown to ${megabytes(files.logBytes)}: it could not be merged into the ledger for a long time.`,
        next: 'Find the program that keeps a read transaction open on it (a shell, a backup, a viewer), and close it.',
      },
    ];
  },
};

function megabytes(bytes: number): string {
  return `${Math.floor(bytes / mebibyte)} MiB`;
}
