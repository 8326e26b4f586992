// Does the ledger still have all that it was told? SQLite cannot say: where its log is damaged, cut off, older or gone, it
// takes what is left for everything. The ledger counts its writes, and its id remembers how far the count had come.

import { statSync } from 'node:fs';
import { shellWord } from '../../../core/visible.ts';
import { inSnapshot, query, type SqliteLike, single } from '../client.ts';
import { storeError } from '../failure.ts';
import { idPath, type Remembered, rememberedId } from './identity.ts';
import { readLog } from './log.ts';
import { isReached } from './meta-page.ts';

export interface CompletenessOptions {
  readonly path: string;
  /** What the ledger's own file says, without its log. */
  readonly ownWrites: () => number;
}

/** The reader may be one that only looks: what is refused stays as it is, with whatever its log still holds. */
export function refuseIncomplete(database: SqliteLike, options: CompletenessOptions): void {
  // First what is remembered: others may write meanwhile, and the ledger has at least so much at any later time.
  const remembered = rememberedId(options.path);
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
  // A ledger that has lost its description is refused as such.
  if (writes === undefined || incarnation === undefined) return;
  if (remembered === undefined) {
    // A ledger that was being made when its process ended has no records yet. One that has been made meanwhile has an id.
    if (writes === 0) return;
    if (rememberedId(path) === undefined) throw unknownCopy(path, writes);
    return;
  }
  if (remembered.incarnation !== incarnation) throw anotherLedger(path, remembered, incarnation);
  if (writes < remembered.writes) throw lacksWrites(path, writes, remembered.writes);
  const started = readLog(path, (log) => log.firstWrites());
  // A log is begun anew only once everything before it is in the ledger's own file.
  if (started === undefined || isReached(started - 1, ownWrites)) return;
  throw lacksWrites(path, ownWrites(), started - 1);
}

/** SQLite notices a file that is too short only when it comes to the end. A page that is in neither file nor log is gone. */
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
      next: 'Stop all programs that use it, keep a copy, and restore a backup. Nothing was deleted.',
      evidence: { path, size, expected: pages * pageSize },
    });
  }
}

function lacksWrites(path: string, found: number, remembered: number): Error {
  const missing = remembered - found;
  return storeError(
    'STORE_UNSAFE',
    `The ledger ${path} lacks the last ${missing === 1 ? 'write' : `${missing} writes`} that it had: its log is damaged, cut off or gone, or an older copy was put here.`,
    {
      next: `Effects that they recorded would be repeated. Put the right files back. To go on without them: ${acceptCommand(path)}`,
      evidence: { path, writes: found, remembered },
    },
  );
}

function unknownCopy(path: string, writes: number): Error {
  return storeError(
    'STORE_UNSAFE',
    `The ledger ${path} came here without ${idPath(path)}: nobody knows whether it is complete. A copy of the file alone lacks what was in its log, and an older copy what was done since.`,
    {
      next: `Put the missing file back, or use \`semel store backup\` and \`semel store restore\`. To go on with what is here, which may repeat effects: ${acceptCommand(path)}`,
      evidence: { path, writes },
    },
  );
}

function anotherLedger(path: string, { incarnation }: Remembered, found: string): Error {
  return storeError('STORE_UNSAFE', `${path} is another ledger than the one that was here.`, {
    next: `Put the right one back. To go on with this one, which does not know what was done meanwhile: ${acceptCommand(path)}`,
    evidence: { path, remembered: incarnation, found },
  });
}

export function acceptCommand(path: string): string {
  return `semel store accept-loss --store ${shellWord(`sqlite:${path}`)}`;
}
