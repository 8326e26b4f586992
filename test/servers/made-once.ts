// Folders that take long to make and are the same every time: kept under the folder for temporary files, for a few
// days and for all runs of one user.

import { chmodSync, globSync, lstatSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Less than the ten days after which systems begin to remove single files from there. */
const keptForMs = 4 * 24 * 60 * 60 * 1000;

export async function madeOnce(name: string, make: (folder: string) => Promise<void>): Promise<string> {
  const period = Math.floor(Date.now() / keptForMs);
  const user = process.getuid?.() ?? 0;
  const base = join(tmpdir(), `semel-made-${user}-${name}`);
  const place = `${base}-${period}`;
  if (isOurs(place)) return place;

  const folder = mkdtempSync(`${base}-new-`);
  try {
    // Servers of root run as somebody else, who must be able to read this.
    if (user === 0) chmodSync(folder, 0o755);
    await make(folder);
    renameSync(folder, place);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    // Another process was faster.
    if (!isOurs(place)) throw error;
  }
  for (const old of globSync(`${base}-*`)) {
    // The one before this may still be in use.
    if (Number(old.slice(base.length + 1)) < period - 1) rmSync(old, { recursive: true, force: true });
  }
  return place;
}

function isOurs(place: string): boolean {
  const found = lstatSync(place, { throwIfNoEntry: false });
  if (found === undefined) return false;
  // Everybody may write there: a folder of this name could be a trap with programs in it.
  if (!found.isDirectory() || found.uid !== (process.getuid?.() ?? found.uid)) {
    throw new Error(`${place} belongs to somebody else. Remove it, or set TMPDIR to a folder of your own.`);
  }
  return true;
}
