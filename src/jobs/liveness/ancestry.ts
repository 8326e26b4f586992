// Whether this process is part of the run it is about to wait for: then it, or a process above it, has that run's pipe
// open. SEMEL_HELD says the same, but a command may start others without its environment.

import { fstatSync, readdirSync, readFileSync, type Stats, statSync } from 'node:fs';

export function isHeldAbove(path: string): boolean {
  const pipe = statSync(path, { throwIfNoEntry: false });
  if (pipe === undefined) return false;
  const isPipe = (found: Stats | undefined) => found?.ino === pipe.ino && found.dev === pipe.dev;
  if (process.platform !== 'linux') return ownDescriptors().some(isPipe);
  for (let pid: number | undefined = process.pid; pid !== undefined; pid = parentOf(pid))
    if (descriptorsOf(pid).some(isPipe)) return true;
  return false;
}

/** Empty if the process is another user's, or gone. */
function descriptorsOf(pid: number): readonly (Stats | undefined)[] {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).map((name) => statSync(`${folder}/${name}`, { throwIfNoEntry: false }));
  } catch {
    return [];
  }
}

function parentOf(pid: number): number | undefined {
  try {
    // After the process name, which may contain anything.
    const [, parent] = /^.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return Number(parent) > 0 ? Number(parent) : undefined;
  } catch {
    return undefined;
  }
}

const maxDescriptors = 1_024;

function ownDescriptors(): readonly (Stats | undefined)[] {
  return Array.from({ length: maxDescriptors }, (_, descriptor) => {
    try {
      return fstatSync(descriptor);
    } catch {
      return undefined;
    }
  });
}
