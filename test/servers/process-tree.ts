// A process with everything it started: Postgres gives each of its processes a session of its own, so that a signal
// to the group would reach only the first.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** The process itself comes first. */
export function treeOf(pid: number): number[] {
  const parents = existsSync('/proc/self/stat') ? parentsByProc() : parentsByPs();
  const tree = [pid];
  for (const parent of tree) {
    for (const [child, itsParent] of parents) if (itsParent === parent) tree.push(child);
  }
  return tree;
}

/** Says whom it reached. */
export function signalTree(pid: number, signal: NodeJS.Signals): number[] {
  // Twice: what was forked while the list was read is on the second one. Who stands still forks no more.
  const reached = new Set<number>();
  for (const _ of [1, 2]) {
    for (const each of treeOf(pid)) {
      if (!reached.has(each)) signalOne(each, signal);
      reached.add(each);
    }
  }
  return [...reached];
}

/** That nobody is there is no error: a process may end at any time. */
export function signalOne(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** SIGSTOP and SIGKILL take effect when a process is scheduled next, which is later than kill() returns. */
export async function takenEffect(signal: 'SIGSTOP' | 'SIGKILL', pids: readonly number[]): Promise<void> {
  if (!existsSync('/proc/self/stat')) return;
  const states = signal === 'SIGSTOP' ? 'TtZX' : 'ZX';
  while (pids.some((pid) => !states.includes(statOf(pid)?.state ?? 'X'))) await sleep(1);
}

function parentsByProc(): [number, number][] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name): [number, number][] => {
      const stat = statOf(Number(name));
      return stat === undefined ? [] : [[Number(name), stat.parent]];
    });
}

function statOf(pid: number): { readonly state: string; readonly parent: number } | undefined {
  try {
    // The name in brackets may hold spaces and brackets itself.
    const [state = '', parent] = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)!.split(' ');
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

function parentsByPs(): [number, number][] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  return lines.map((line) => line.trim().split(/\s+/).map(Number) as [number, number]);
}
