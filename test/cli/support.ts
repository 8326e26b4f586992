// Runs the command as a user would: a process of its own, in a home of its own.

import { spawn } from 'node:child_process';
import { join } from 'node:path';

/** As it was built for this run of the tests (build.ts). */
export const main = process.env.SEMEL_BUILT_COMMAND as string;

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function semelIn(home: string) {
  return (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> =>
    new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [main, ...args], {
        cwd: home,
        env: {
          PATH: process.env.PATH ?? '',
          HOME: home,
          XDG_STATE_HOME: join(home, 'state'),
          // What is kept compiled is shared by all tests, and goes with the build.
          XDG_CACHE_HOME: join(main, '../cache'),
          TMPDIR: home,
          ...env,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let stdout = '';
      let stderr = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        stdout += text;
      });
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        stderr += text;
      });
      child.once('error', reject);
      child.once('close', (code) => resolve({ code, stdout, stderr }));
    });
}
