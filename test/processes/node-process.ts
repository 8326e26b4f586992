// Real child processes that run a TypeScript file of the tests. Whatever happens to the test, none outlives it: they
// are killed when it exits, and end by themselves when their standard input does.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface NodeProcess<Line> {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  /** The lines of JSON that it printed. */
  readonly lines: readonly Line[];
  readonly errors: () => string;
  /** The first line for which this is so, printed before or to be printed; throws if it ends without. */
  line(isWanted: (line: Line) => boolean): Promise<Line>;
  signal(name: NodeJS.Signals): void;
  /** Ends its standard input, which asks it to finish what it does. */
  finish(): Promise<Ended>;
  kill(): Promise<Ended>;
}

export interface NodeProcessOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

const alive = new Set<ChildProcess>();

process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

/** `file` gets the job as its only argument, as JSON. */
export function startNode<Line>(
  file: URL,
  job: unknown,
  options: NodeProcessOptions = {},
): NodeProcess<Line> {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', fileURLToPath(file), JSON.stringify(job)],
    {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NODE_COMPILE_CACHE: compileCache(), ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    },
  );
  alive.add(child);
  const lines: Line[] = [];
  let errors = '';
  let onLine: () => void = () => undefined;
  createInterface({ input: child.stdout }).on('line', (text) => {
    lines.push(JSON.parse(text) as Line);
    onLine();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  // Whoever was killed no longer reads.
  child.stdin.on('error', () => undefined);
  const ended = once(child, 'close').then(([code, signal]): Ended => {
    alive.delete(child);
    onLine();
    return { code, signal };
  });

  return {
    pid: child.pid as number,
    ended,
    lines,
    errors: () => errors,
    async line(isWanted) {
      for (;;) {
        const found = lines.find(isWanted);
        if (found !== undefined) return found;
        if (!alive.has(child)) throw new Error(`It ended without the line that was waited for.\n${errors}`);
        await new Promise<void>((resolve) => {
          onLine = resolve;
        });
      }
    },
    signal: (name) => void child.kill(name),
    finish() {
      child.stdin.end();
      return ended;
    },
    kill() {
      child.kill('SIGKILL');
      return ended;
    },
  };
}

/** Starts three times as fast; one folder per user and Node version, never inside the repository. */
export function compileCache(): string {
  const folder = join(tmpdir(), `semel-compile-cache-${userInfo().uid}-${process.version}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}
