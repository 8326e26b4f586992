// Real processes of the command, on a ledger in a folder of their own.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** As it was built for this run of the tests (build.ts). */
export const main = process.env.SEMEL_BUILT_COMMAND as string;

export interface Said {
  readonly exit: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Place {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  path(name: string): string;
  /** Runs `semel …` to its end. */
  semel(...args: readonly string[]): Promise<Said>;
  /** The same with a changed environment, working folder or input. */
  with(more: {
    env?: Record<string, string>;
    cwd?: string;
    input?: string | Buffer;
  }): Pick<Place, 'semel' | 'start'>;
  start(...args: readonly string[]): Started;
  /** A shell word that calls `semel`, for scripts. */
  readonly word: string;
  /** The lines of a file that effects append to. */
  lines(name: string): readonly string[];
}

export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Said>;
  stdoutBytes(): Buffer;
}

/** Removed when the tests of the file have ended. */
export function place(): Place {
  const folder = mkdtempSync(join(tmpdir(), 'semel-cli-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  // A test that is run by a guarded command is not part of its run.
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('SEMEL_')),
  );
  const env = { ...clean, SEMEL_STORE: `sqlite:${join(folder, 'ledger.db')}`, TZ: 'UTC' } as Record<
    string,
    string
  >;
  const path = (name: string) => join(folder, name);

  function starter(more: { env?: Record<string, string>; cwd?: string; input?: string | Buffer }) {
    const start = (...args: readonly string[]): Started => {
      const child = spawn(process.execPath, [main, ...args], {
        cwd: more.cwd ?? folder,
        env: { ...env, ...more.env },
        stdio: ['pipe', 'pipe', 'pipe'],
      });
      child.stdin?.on('error', () => undefined);
      child.stdin?.end(more.input ?? '');
      const out: Buffer[] = [];
      const err: Buffer[] = [];
      child.stdout?.on('data', (chunk: Buffer) => out.push(chunk));
      child.stderr?.on('data', (chunk: Buffer) => err.push(chunk));
      const ended = new Promise<Said>((resolve) =>
        child.once('close', (exit, signal) =>
          resolve({
            exit,
            signal,
            stdout: Buffer.concat(out).toString(),
            stderr: Buffer.concat(err).toString(),
          }),
        ),
      );
      return { child, ended, stdoutBytes: () => Buffer.concat(out) };
    };
    return { start, semel: (...args: readonly string[]) => start(...args).ended };
  }

  return {
    folder,
    env,
    path,
    ...starter({}),
    with: starter,
    word: `'${process.execPath}' '${main}'`,
    lines: (name) =>
      existsSync(path(name))
        ? readFileSync(path(name), 'utf8')
            .split('\n')
            .filter((line) => line !== '')
        : [],
  };
}

/** Until a condition holds, or for ten seconds. */
export async function eventually<T>(look: () => T | undefined | false, what = 'it'): Promise<T> {
  for (const until = Date.now() + 10_000; Date.now() < until; ) {
    const found = look();
    if (found !== undefined && found !== false) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`${what} did not happen within 10 s`);
}
