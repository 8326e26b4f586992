// Refuses a ledger that lost writes. SQLite cannot notice: if its log is damaged, cut off, older or gone, it takes what is
// left for everything. So the ledger counts its writes, and the id file remembers the count.

import { statSync } from 'node:fs';
import { shellWord } from '../../../core/visible.ts';
import { inSnapshot, query, type SqliteLike, single } from '../client.ts';
import { storeError } from '../failure.ts';
import { idPath, type Remembered, readId } from './identity.ts';
import { readLog } from './log.ts';
import { reachesCount } from './meta-page.ts';

interface CompletenessOptions {
  readonly path: string;
  /** The write count in the ledger's own file, without its log. */
  readonly ownWrites: () => number;
}

/** Works on a read-only connection, so that a refused ledger keeps what its log still holds. */
export function refuseIncomplete(database: SqliteLike, options: CompletenessOptions): void {
  // Read the id first: if others write meanwhile, the ledger's count can only be higher.
  const remembered = readId(options.path);
  inSnapshot(database, () => refuseLacking(database, remembered, options));
}

function refuseLacking(
  database: SqliteLike,
  remembered: Remembered | undefined,
  { path, ownWrites }: CompletenessOptions,
): void {
  const [writes, incarnation] = (query(database, 'SELECT writes, incarnation FROM meta').get() ?? []) as [
    number?,
    string?,
  ];
  // A missing row in `meta` is refused elsewhere.
  if (writes === undefined || incarnation === undefined) return;
  if (remembered === undefined) {
    // No writes: its process ended while creating it. If another process has just created it, it has an id by now.
    if (writes === 0) return;
    if (readId(path) === undefined) throw unknownCopyError(path, writes);
    return;
  }
  if (remembered.incarnation !== incarnation) throw anotherLedgerError(path, remembered, incarnation);
  if (writes < remembered.writes) throw lacksWritesError(path, writes, remembered.writes);
  const started = readLog(path, (log) => log.firstWrites());
  // SQLite restarts a log only after everything before it is in the ledger's own file.
  if (started === undefined || reachesCount(started - 1, ownWrites)) return;
  throw lacksWritesError(path, ownWrites(), started - 1);
}

/** SQLite notices a truncated file only when it reads the missing page. Checks that each page is in the file or its log. */
export function refuseTruncated(database: SqliteLike, path: string): void {
  inSnapshot(database, () => refuseShort(database, path));
}

function refuseShort(database: SqliteLike, path: string): void {
  const pages = single(database, 'PRAGMA page_count') as number;
  const pageSize = single(database, 'PRAGMA page_size') as number;
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const own = Math.floor(size / pageSize);
  if (own >= pages) return;
  const logged = readLog(path, (log) => log.pages());
  for (let page = own + 1; page <= pages; page += 1) {
    if (logged?.has(page)) continue;
    throw storeError('STORE_UNSAFE', `The ledger ${path} is cut off: ${size} bytes of ${pages * pageSize}.`, {
      next: 'Nothing was deleted. Stop all programs that use it, keep a copy, and restore a backup.',
      evidence: { path, size, expected: pages * pageSize },
    });
  }
}

function lacksWritesError(path: string, found: number, remembered: number): Error {
  const missing = remembered - found;
  return storeError(
    'STORE_UNSAFE',
    `The ledger ${path} lacks its last ${missing === 1 ? 'write' : `${missing} writes`}: its log is damaged, cut off or gone, or an older copy was put here.`,
    {
      next: `The effects that they recorded would be repeated. Put the right files back. To continue without them: ${acceptCommand(path)}`,
      evidence: { path, writes: found, remembered },
    },
  );
}

function unknownCopyError(path: string, writes: number): Error {
  return storeError(
    'STORE_UNSAFE',
    `The ledger ${path} is here without ${idPath(path)}, so it may be incomplete. A copy of the file alone lacks what was in its log, and an older copy lacks what was done since.`,
    {
      next: `Put the missing file back, or use \`semel store backup\` and \`semel store restore\`. To continue with what is here, which may repeat effects: ${acceptCommand(path)}`,
      evidence: { path, writes },
    },
  );
}

function anotherLedgerError(path: string, { incarnation }: Remembered, found: string): Error {
  return storeError('STORE_UNSAFE', `${path} is not the ledger that was here before.`, {
    next: `Put the right one back. To continue with this one, which does not know what was done meanwhile: ${acceptCommand(path)}`,
    evidence: { path, remembered: incarnation, found },
  });
}

function acceptCommand(path: string): string {
  return `semel store accept-loss --store ${shellWord(`sqlite:${path}`)}`;
}
