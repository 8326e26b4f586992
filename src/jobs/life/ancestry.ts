// Whether this process runs inside the run that it is about to wait for: then one of the processes above it, or it itself,
// holds that run's pipe open. SEMEL_HELD says the same, but a command may start others without its environment.

import { fstatSync, readdirSync, readFileSync, type Stats, statSync } from 'node:fs';

/** Of the pipe at `path`. */
export function isHeldAbove(path: string): boolean {
  const pipe = statSync(path, { throwIfNoEntry: false });
  if (pipe === undefined) return false;
  const isPipe = (found: Stats | undefined) => found?.ino === pipe.ino && found.dev === pipe.dev;
  if (process.platform !== 'linux') return ownDescriptors().some(isPipe);
  for (let pid: number | undefined = process.pid; pid !== undefined; pid = parentOf(pid))
    if (descriptorsOf(pid).some(isPipe)) return true;
  return false;
}

/** None where it is another user's, or gone. */
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
    // Behind the name, which may hold anything.
    const [, parent] = /^.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return Number(parent) > 0 ? Number(parent) : undefined;
  } catch {
    return undefined;
  }
}

const highest = 1_024;

function ownDescriptors(): readonly (Stats | undefined)[] {
  return Array.from({ length: highest }, (_, descriptor) => {
    try {
      return fstatSync(descriptor);
    } catch {
      return undefined;
    }
  });
}
