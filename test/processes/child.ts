// What every child process of the tests does the same way: takes its job, prints lines of JSON, and dies on purpose.

import { writeSync } from 'node:fs';

export function jobOf<Job>(): Job {
  return JSON.parse(process.argv[2] ?? 'null') as Job;
}

/** Synchronous, so that it is out before whatever comes next. */
export function print(line: unknown): void {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

/** As if the power of this process were cut: nothing after this line runs. */
export function dieHere(): never {
  process.kill(process.pid, 'SIGKILL');
  for (;;);
}

/** Stands still, event loop and all, until somebody sends SIGCONT. */
export function stopHere(): void {
  process.kill(process.pid, 'SIGSTOP');
}

/** The parent is gone, or wants this process to end. Waiting for it keeps no process alive that is done otherwise. */
export function onFinish(run: () => void): void {
  process.stdin.on('end', run).on('error', run).resume();
  // A pipe is a socket to Node, and has this; a file or a terminal has not.
  (process.stdin as { unref?: () => void }).unref?.();
}
