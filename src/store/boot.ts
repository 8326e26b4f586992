// Names the time since the machine was last started. Leases are counted in it: after another start they have lapsed.

import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** The kernel's own name for this boot; undefined where it has none. */
export function bootId(): string | undefined {
  try {
    if (process.platform === 'linux') return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    if (process.platform === 'darwin') {
      return execFileSync('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' }).trim();
    }
  } catch {
    // A sandbox may hide it.
  }
  return undefined;
}

/** As it is written into each lease: short, and still never the same for two boots of one machine. */
export function shortenBootId(id: string): string {
  return hash('sha256', id).slice(0, 12);
}
