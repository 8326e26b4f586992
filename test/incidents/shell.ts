// A stage for shell scripts: `semel`, `post` and `look` are commands there, and a scheduler starts a script.

import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Stage } from './incident.ts';
import { namespace } from './stage.ts';

export interface Shell {
  /** Starts a command line; answers its exit code. */
  run(line: string): Promise<number | null>;
  /** Files whose names start so. */
  marks(prefix: string): readonly string[];
  mark(name: string): void;
  until(condition: () => boolean): Promise<void>;
}

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** `post <intent> [text]` makes the effect, and exits with 22 where the target does not say 2xx; `look <intent>` looks. */
const commands = {
  semel: [file('../../src/cli/main.ts')],
  post: [file('./shell-tool.ts'), 'post'],
  look: [file('./shell-tool.ts'), 'look'],
};

export function shellOn({ server, folder }: Stage, script: string): Shell {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  for (const [name, args] of Object.entries(commands)) {
    const words = [process.execPath, ...args].map((word) => `'${word}'`).join(' ');
    writeFileSync(join(bin, name), `#!/bin/sh\nexec ${words} "$@"\n`);
    chmodSync(join(bin, name), 0o755);
  }
  writeFileSync(join(folder, 'job.sh'), script);
  const env = {
    ...process.env,
    PATH: `${bin}:${process.env.PATH}`,
    TARGET_URL: server.url,
    SEMEL_STORE: `sqlite:${join(folder, 'state/semel/ledger.db')}`,
    SEMEL_NAMESPACE: namespace,
    TZ: 'UTC',
  };
  const running = new Set<ChildProcess>();
  process.once('exit', () => {
    for (const child of running) child.kill('SIGKILL');
  });

  return {
    run: (line) =>
      new Promise((resolve) => {
        const child = spawn('sh', ['-c', line], { cwd: folder, env, stdio: 'ignore' });
        running.add(child);
        child.once('close', (code) => {
          running.delete(child);
          resolve(code);
        });
      }),
    marks: (prefix) => readdirSync(folder).filter((name) => name.startsWith(prefix)),
    mark: (name) => writeFileSync(join(folder, name), ''),
    async until(condition) {
      while (!condition()) await delay(10);
      if (!existsSync(folder)) throw new Error('the stage is gone');
    },
  };
}
