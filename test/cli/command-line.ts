// The real command, as a process, in a folder of its own.

import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const main = process.env.SEMEL_BUILT_COMMAND as string;

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandLine {
  readonly folder: string;
  /** The URL of a ledger in the folder. */
  store(name?: string): string;
  /** Its path. */
  file(name: string, text: string): string;
  semel(args: readonly string[], input?: string): Promise<Ran>;
  json(args: readonly string[]): Promise<unknown>;
  /** One that goes on until it is interrupted. */
  start(args: readonly string[]): ReturnType<typeof spawn>;
}

export function commandLine(): CommandLine {
  const folder = mkdtempSync(join(tmpdir(), 'semel-cli-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const { SEMEL_STORE: _store, SEMEL_NAMESPACE: _namespace, FORCE_COLOR: _colour, ...rest } = process.env;
  const env = { ...rest, XDG_STATE_HOME: folder, HOME: folder };
  const line: CommandLine = {
    folder,
    store: (name = 'ledger.db') => `sqlite:${join(folder, name)}`,
    file(name, text) {
      const path = join(folder, name);
      writeFileSync(path, text);
      return path;
    },
    semel: (args, input) =>
      new Promise((resolve) => {
        const child = execFile(
          process.execPath,
          [main, ...args],
          { cwd: folder, env, maxBuffer: 50_000_000 },
          (error, stdout, stderr) => resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
        );
        child.stdin?.end(input ?? '');
      }),
    async json(args) {
      const { stdout, stderr } = await line.semel([...args, '--json']);
      if (stdout === '') throw new Error(stderr);
      return JSON.parse(stdout);
    },
    start: (args) => spawn(process.execPath, [main, ...args], { cwd: folder, env }),
  };
  return line;
}
