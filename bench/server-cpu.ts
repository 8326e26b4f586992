// How much CPU a Postgres server took. On a machine that others use too, it says more than a rate does.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** /proc counts in hundredths of a second. */
const tickMicros = 10_000;

/** So far, in microseconds: its processes, and those that have ended. NaN where there is no /proc. */
export function readServerCpu(dataFolder: string): number {
  try {
    const server = Number(readFileSync(join(dataFolder, 'postmaster.pid'), 'utf8').split('\n')[0]);
    const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return processes.reduce((sum, pid) => sum + readTicks(Number(pid), server), 0) * tickMicros;
  } catch {
    return Number.NaN;
  }
}

function readTicks(pid: number, server: number): number {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    // It has ended since it was listed; its parent counts it.
    return 0;
  }
  // After the name, which may hold spaces and brackets.
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const [, parent] = fields;
  const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15);
  if (pid === server) return user + system + childUser + childSystem;
  return parent === server ? user + system : 0;
}
