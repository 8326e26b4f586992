// Which descriptors a guard gives to its command. The numbers are high, so that no script uses them by its own choice:
// scripts count from 3 or pick 9, 99, 100 or 200, shells keep theirs at 10 and at 255.

import { fstatSync, readFileSync } from 'node:fs';
import { SemelError } from '../../core/errors.ts';

/** High enough, and no higher: a spawn goes through all that lie below. */
const highest = 448;
/** A spawn moves what it hands on above all that it hands on, and needs room for that. */
const roomAbove = 16;
const farFromTheTop = 64;
/**
 * A spawn makes a pipe on the lowest free descriptors, by which it hears that the command could not be executed. Were
 * ours put in its place, that would look like a command that ran and ended with 127.
 */
const enoughBelow = 24;

/** The lower one of two. A guard inside a guard takes others, so that what it starts holds the lives of both. */
export function freeDescriptors(limit = openFiles()): number {
  const top = Math.min(limit, highest);
  const first = top - (top > 4 * farFromTheTop ? farFromTheTop : roomAbove);
  for (let at = first; at > 2; at -= 2) {
    if (isOpen(at) || isOpen(at + 1)) continue;
    if (hasEnoughBelow(at)) return at;
    break;
  }
  throw new SemelError('STORE_UNAVAILABLE', `A guard needs more open files than the ${limit} it may have.`, {
    next: 'Nothing was run. Raise the limit: ulimit -n 256.',
  });
}

function hasEnoughBelow(at: number): boolean {
  let free = 0;
  for (let below = 0; below < at && free < enoughBelow; below += 1) if (!isOpen(below)) free += 1;
  return free >= enoughBelow;
}

/** How many this process may have; what every system grants where it does not tell. */
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
