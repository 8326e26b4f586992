// Which descriptors a guard passes to its command. The numbers are high, so that no script uses them itself: scripts
// count from 3 or pick 9, 99, 100 or 200, shells keep theirs at 10 and at 255.

import { fstatSync, readFileSync } from 'node:fs';
import { SemelError } from '../../core/errors.ts';

/** Not higher than needed: spawning visits every number below. */
const highest = 448;
/** Spawning moves passed descriptors above the highest one first, and needs room for that. */
const roomAbove = 16;
const farFromTheTop = 64;
/**
 * Spawning opens a pipe on the lowest free descriptors, which reports that the command could not be executed. If ours
 * took its place, that would look like a command that ran and exited with 127.
 */
const enoughBelow = 24;

/** The lower of two free numbers. A guard inside a guard takes others, so that its command holds both guards' pipes. */
export function freeDescriptors(limit = openFiles()): number {
  const top = Math.min(limit, highest);
  const first = top - (top > 4 * farFromTheTop ? farFromTheTop : roomAbove);
  for (let at = first; at > 2; at -= 2) {
    if (isOpen(at) || isOpen(at + 1)) continue;
    if (hasEnoughBelow(at)) return at;
    break;
  }
  throw new SemelError(
    'STORE_UNAVAILABLE',
    `The limit of ${limit} open files is too low for a guarded command.`,
    {
      next: 'Nothing was run. Raise the limit: ulimit -n 256.',
    },
  );
}

function hasEnoughBelow(at: number): boolean {
  let free = 0;
  for (let below = 0; below < at && free < enoughBelow; below += 1) if (!isOpen(below)) free += 1;
  return free >= enoughBelow;
}

/** The limit of this process; 256, which every system grants, if it is unknown. */
function openFiles(): number {
  try {
    const [, soft] =
      /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === 'unlimited' ? highest : Number(soft ?? 256);
  } catch {
    return 256;
  }
}

function isOpen(descriptor: number): boolean {
  try {
    fstatSync(descriptor);
    return true;
  } catch {
    return false;
  }
}
