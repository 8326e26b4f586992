// One guarded command: started with its three streams passed through, watched until it ends, and ended when its time is
// over. Keeps a tail of what it printed, or all of its stdout. Decides nothing about the ledger.

import { spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import { constants } from 'node:os';
import { type Life, lifeDescriptor, type Pipe } from './life.ts';

export interface ChildOptions {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly life: Life;
  /** `all`: stdout is what the command is for, and is kept whole up to `mostBytes`. */
  readonly keep: 'tail' | 'all';
  /** Where stdout goes; false: it is kept, and not passed on. */
  readonly passOn?: boolean;
  readonly timeoutMs: number;
  /** From TERM to KILL. */
  readonly graceMs: number;
  /** Aborts when the command may not go on. */
  readonly signal: AbortSignal;
}

export interface ChildEnding {
  /** As a shell would tell it: its code, 128 and the signal, 126 or 127. */
  readonly exit: number;
  readonly signal: NodeJS.Signals | undefined;
  /** It was never executed. (A script that ends with 127 did run: a command inside it was not found.) */
  readonly neverStarted: boolean;
  readonly timedOut: boolean;
  /** Somebody wanted this process to end, and the command was told. */
  readonly interruptedBy: NodeJS.Signals | undefined;
  readonly tookMs: number;
  /** Both streams as they came, the end of them. */
  readonly tail: Buffer;
  /** All of stdout; undefined where it was not kept or was too long. */
  readonly stdout: Buffer | undefined;
  readonly stdoutBytes: number;
  /** The ledger knows. Until then no signal ends this guard: what the command did would be lost. */
  recorded(): void;
}

export const tailBytes = 65_536;
export const mostBytes = 16 * 1024 * 1024;

/** What is printed after the command's end, by what it left behind, is waited for this long. */
const lingerMs = 200;
const forwarded: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];
const ending: ReadonlySet<NodeJS.Signals> = new Set(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT']);

export async function runChild(options: ChildOptions): Promise<ChildEnding> {
  const { command, env, life, keep, passOn = true, timeoutMs, graceMs, signal } = options;
  const [file = '', ...args] = command;
  // A command that talks to a person keeps its terminal; then there is no tail.
  const isTalk = keep === 'tail' && process.stdout.isTTY && process.stderr.isTTY;
  const tail = lastBytes(tailBytes);
  const kept = firstBytes(mostBytes);
  const { out, err } = await life.pipes();
  const startedAt = performance.now();

  return new Promise((resolve) => {
    const stdio: (number | 'inherit' | 'ignore')[] = Array.from({ length: lifeDescriptor }, () => 'ignore');
    stdio[0] = 'inherit';
    stdio[1] = isTalk ? 'inherit' : out.writing;
    stdio[2] = isTalk ? 'inherit' : err.writing;
    stdio[lifeDescriptor] = life.descriptor;
    // Before the command starts: a signal that comes as it does is for it, and would end this guard otherwise.
    for (const name of forwarded) process.on(name, onSignal);
    const child = spawn(file, args, { stdio, env: { ...process.env, ...env } });
    const drained = [
      passed(out, isTalk, passOn ? process.stdout : undefined, (chunk) => {
        tail.add(chunk);
        if (keep === 'all') kept.add(chunk);
      }),
      passed(err, isTalk, process.stderr, tail.add),
    ];

    let timedOut = false;
    let interruptedBy: NodeJS.Signals | undefined;
    let killer: NodeJS.Timeout | undefined;
    const stop = (by: NodeJS.Signals) => {
      child.kill(by);
      killer ??= setTimeout(() => child.kill('SIGKILL'), graceMs);
    };
    const onAbort = () => stop('SIGTERM');
    const timer = Number.isFinite(timeoutMs)
      ? setTimeout(() => {
          timedOut = true;
          stop('SIGTERM');
        }, timeoutMs)
      : undefined;
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();

    const end = async (code: number | null, by: NodeJS.Signals | null, failure?: NodeJS.ErrnoException) => {
      const tookMs = performance.now() - startedAt;
      clearTimeout(timer);
      clearTimeout(killer);
      await Promise.all(drained.map((drain) => drain(failure === undefined ? lingerMs : 0)));
      signal.removeEventListener('abort', onAbort);
      const exit = failure === undefined ? exitOf(code, by) : failure.code === 'ENOENT' ? 127 : 126;
      resolve({
        exit,
        signal: by ?? undefined,
        neverStarted: failure !== undefined,
        timedOut,
        interruptedBy,
        tookMs,
        tail: tail.bytes(),
        stdout: keep === 'all' ? kept.bytes() : undefined,
        stdoutBytes: kept.count(),
        recorded() {
          for (const name of forwarded) process.off(name, onSignal);
        },
      });
    };
    child.once('exit', (code, by) => void end(code, by));
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (child.pid === undefined) void end(null, null, error);
    });

    function onSignal(by: NodeJS.Signals): void {
      // A terminal has told the command already.
      if (!(process.stdin.isTTY && (by === 'SIGINT' || by === 'SIGQUIT'))) child.kill(by);
      if (!ending.has(by)) return;
      interruptedBy ??= by;
      killer ??= setTimeout(() => child.kill('SIGKILL'), graceMs);
    }
  });
}

export function exitOf(code: number | null, by: NodeJS.Signals | null): number {
  return code ?? 128 + (by === null ? 0 : constants.signals[by]);
}

/** Passes what the command prints on as it comes; answers a function that waits for the rest. */
function passed(
  { reading, writing }: Pipe,
  isUnused: boolean,
  to: NodeJS.WriteStream | undefined,
  seen: (chunk: Buffer) => void,
): (lingerMs: number) => Promise<void> {
  closeSync(writing);
  if (isUnused) {
    closeSync(reading);
    return async () => undefined;
  }
  const from = new Socket({ fd: reading, readable: true, writable: false });
  const ended = new Promise<void>((resolve) => from.once('close', () => resolve()));
  from.on('error', () => from.destroy());
  from.on('data', seen);
  if (to !== undefined) {
    // Whoever reads may stop reading: then the command hears of it, as if it were not guarded.
    to.removeAllListeners('error');
    to.on('error', () => from.destroy());
    from.pipe(to, { end: false });
  }
  return async (lingerMs) => {
    const idle = async () => {
      const isMoving = (last: number) => last !== from.bytesRead || to?.writableNeedDrain === true;
      for (let last = -1; isMoving(last) && !from.destroyed; ) {
        last = from.bytesRead;
        await new Promise((resolve) => setTimeout(resolve, lingerMs));
      }
    };
    await Promise.race([ended, idle()]);
    from.destroy();
  };
}

function lastBytes(most: number) {
  let chunks: Buffer[] = [];
  let size = 0;
  return {
    add(chunk: Buffer) {
      chunks.push(chunk);
      size += chunk.length;
      // Joined now and then, not at every chunk.
      if (size > 4 * most) {
        chunks = [Buffer.concat(chunks).subarray(-most)];
        size = most;
      }
    },
    bytes: () => Buffer.from(Buffer.concat(chunks).subarray(-most)),
  };
}

function firstBytes(most: number) {
  let chunks: Buffer[] = [];
  let size = 0;
  return {
    add(chunk: Buffer) {
      size += chunk.length;
      if (size <= most) chunks.push(chunk);
      else chunks = [];
    },
    count: () => size,
    /** Undefined where there was more than is kept. */
    bytes: () => (size <= most ? Buffer.concat(chunks) : undefined),
  };
}
