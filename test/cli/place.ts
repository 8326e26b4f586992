// Real processes of the command, in a folder and on a ledger of their own: what every test of the command starts from.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished } from 'vitest';
import { bootId, shortenBootId } from '../../src/store/boot.ts';

/** As it was built for this run of the tests (build.ts). */
export const main = process.env.SEMEL_BUILT_COMMAND as string;

export interface Said {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** What it printed, parsed. */
  json<T = Record<string, unknown>[]>(): T;
}

export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Said>;
  /** What it has printed so far. */
  stdoutBytes(): Buffer;
  stderrBytes(): Buffer;
}

/** Where the guards of this machine keep their pipes, below `<ledger>-live`. */
export const kernel = shortenBootId(bootId() ?? '');

/** For bash: lets go of the inherited descriptors that lead there. */
export function closing(pattern: string): string {
  return `for fd in /proc/$$/fd/*; do case $(readlink $fd) in ${pattern}) n=\${fd##*/}; [ $n -gt 2 ] && eval "exec $n<&-";; esac; done`;
}

const hoursToNoon = 12 - new Date().getUTCHours();
/** Where it is about noon: around midnight, a start says that it could be one of another day. */
const noonZone = `Etc/GMT${hoursToNoon < 0 ? '+' : '-'}${Math.abs(hoursToNoon)}`;

/** A job that is done once a day. */
export const daily = ['--per', 'day', '--tz', noonZone] as const;

/** Words of a command line, or lists of them. */
type Words = readonly (string | readonly string[])[];

interface Changes {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string | Buffer;
}

interface Runner {
  /** Runs `semel …` to its end. */
  semel(...args: Words): Promise<Said>;
  start(...args: Words): Started;
}

export interface Place extends Runner {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** The ledger that is meant where nothing else is said. */
  readonly store: string;
  /** The URL of another one in the folder. */
  storeAt(name: string): string;
  path(name: string): string;
  /** Written; its path. */
  file(name: string, text: string | Buffer): string;
  /** The lines of a file that effects append to. */
  lines(name: string): readonly string[];
  /** The same with a changed environment, working folder or input. */
  with(changes: Changes): Runner;
  /** What it prints with --json, parsed. */
  json(...args: Words): Promise<unknown>;
  /** A shell word that calls `semel`, for scripts. */
  readonly word: string;
}

/** At the end of the test that asks for it; outside of one, when the tests of the file have ended. */
export function atTheEnd(work: () => void): void {
  try {
    onTestFinished(work);
  } catch {
    leftovers.push(work);
  }
}

// A hook cannot register another one, so this one is there from the start.
const leftovers: (() => void)[] = [];
if (process.env.VITEST !== undefined)
  afterAll(() => {
    for (const work of leftovers.splice(0)) work();
  });

/** Removed at the end. */
export function place(more: Readonly<Record<string, string>> = {}): Place {
  const folder = mkdtempSync(join(tmpdir(), 'semel-cli-'));
  atTheEnd(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const path = (name: string) => join(folder, name);
  const storeAt = (name: string) => `sqlite:${path(name)}`;
  const store = storeAt('ledger.db');
  // A test that is run by a guarded command is not part of its run, and one that an agent runs is still an operator's.
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(SEMEL_|CLAUDE|CODEX_|FORCE_COLOR$)|AGENT|CLINE|GEMINI|GOOSE|OPENCODE|QWEN/.test(name),
  );
  const env: Record<string, string> = {
    ...(Object.fromEntries(inherited) as Record<string, string>),
    HOME: folder,
    XDG_STATE_HOME: path('state'),
    // What is kept compiled is shared by all tests, and goes with the build.
    XDG_CACHE_HOME: join(main, '../cache'),
    NO_COLOR: '1',
    TZ: 'UTC',
    SEMEL_STORE: store,
    ...more,
  };
  const runner = (changes: Changes): Runner => {
    const start = (...args: Words) =>
      startCommand(args.flat(), { cwd: folder, ...changes, env: { ...env, ...changes.env } });
    return { start, semel: (...args) => start(...args).ended };
  };
  const { semel, start } = runner({});

  return {
    folder,
    env,
    store,
    storeAt,
    path,
    file(name, text) {
      writeFileSync(path(name), text);
      return path(name);
    },
    lines: (name) =>
      existsSync(path(name))
        ? readFileSync(path(name), 'utf8')
            .split('\n')
            .filter((line) => line !== '')
        : [],
    semel,
    start,
    with: runner,
    async json(...args) {
      const { stdout, stderr } = await semel(...args, '--json');
      if (stdout === '') throw new Error(stderr);
      return JSON.parse(stdout);
    },
    word: `'${process.execPath}' '${main}'`,
  };
}

function startCommand(args: readonly string[], { cwd, env, input = '' }: Changes): Started {
  const child = spawn(process.execPath, [main, ...args], { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
  const ended = new Promise<Said>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      const stdout = Buffer.concat(out).toString();
      const stderr = Buffer.concat(err).toString();
      resolve({ code, signal, stdout, stderr, json: () => JSON.parse(stdout) });
    });
  });
  return { child, ended, stdoutBytes: () => Buffer.concat(out), stderrBytes: () => Buffer.concat(err) };
}

/** For a shell script: it waits for a file, and no longer than its folder is there: a test that failed leaves nobody behind. */
export function until(name: string): string {
  return `until [ -e ${name} ] || [ ! -d $PWD ]; do sleep 0.05; done`;
}

type Looked<T> = T | undefined | false;

/** Until a condition holds, or for a minute. */
export async function eventually<T>(look: () => Looked<T> | Promise<Looked<T>>, what = 'it'): Promise<T> {
  for (const until = Date.now() + 60_000; Date.now() < until; ) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`${what} did not happen within 60 s`);
}
