// Identifies the current boot of the machine. Leases belong to a boot: after a restart they have lapsed.

import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A process does not outlive a boot. */
let known: { readonly id: string | undefined; readonly short: string } | undefined;

/** The kernel's id of this boot; undefined if it has none. */
export function bootId(): string | undefined {
  return (known ?? read()).id;
}

/** Empty if it has none. */
export function shortBootId(): string {
  return (known ?? read()).short;
}

function read(): NonNullable<typeof known> {
  const id = readBootId();
  known = { id, short: id === undefined || id === '' ? '' : shortenBootId(id) };
  return known;
}

function readBootId(): string | undefined {
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

/** Stored in every lease: short, but still unique among the boots of one machine. */
export function shortenBootId(id: string): string {
  return hash('sha256', id).slice(0, 12);
}
