// The system user of this process, recorded in the history beside the name that a person gives for a decision.

import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';

export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // Not every container knows its user by name.
    return process.geteuid === undefined ? 'unknown' : `uid ${process.geteuid()}`;
  }
}

/** `ada`, or `root, logged in as ada`. */
export function loginName(): string {
  const user = userName();
  const login = loginAtKernel() ?? (process.geteuid?.() === 0 ? process.env.SUDO_USER : undefined);
  return login === undefined || login === '' || login === user ? user : `${user}, logged in as ${login}`;
}

/** The kernel remembers who logged in, whatever has become of the process since; not every system sets it. */
function loginAtKernel(): string | undefined {
  try {
    const uid = readFileSync('/proc/self/loginuid', 'utf8').trim();
    if (uid === '4294967295' || uid === String(process.geteuid?.())) return undefined;
    const entry = readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find((line) => line.split(':')[2] === uid);
    return entry?.split(':', 1)[0] ?? `uid ${uid}`;
  } catch {
    return undefined;
  }
}
