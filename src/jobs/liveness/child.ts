// One guarded command: starts it with its three streams passed through, watches it until it exits, and stops it on
// timeout. Keeps a tail of its output, or all of its stdout. Knows nothing of the ledger.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import { systemClock } from '../../core/clock.ts';
import { firstBytes, lastBytes, type Passing, passOn } from '../output.ts';
import type { Descendants, Liveness } from './liveness.ts';

/** Passed on to the command. SIGUSR1 too: otherwise Node.js would open its debugger. */
const forwarded: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];

export interface ChildOptions {
  /** The command may run from now on. */
  readonly onStart?: () => void;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly liveness: Liveness;
  /** `all`: stdout is the result, and is kept whole up to `maxOutputBytes`. */
  readonly keep: 'tail' | 'all';
  /** False: stdout is only kept. */
  readonly passOn?: boolean;
  readonly timeoutMs: number;
  /** From TERM to KILL. */
  readonly graceMs: number;
  /** Any of them stops the command. */
  readonly signals: readonly AbortSignal[];
  readonly say: (message: string) => void;
}

export interface ChildEnding {
  /** As a shell reports it: its code, 128 plus the signal, 126 or 127. Never 0 if we stopped it. */
  readonly exit: number;
  readonly signal: NodeJS.Signals | undefined;
  /** It was never executed. (A script that exits with 127 did run: a command inside it was not found.) */
  readonly neverStarted: boolean;
  /** The system's code for why it was not executed: EACCES, EMFILE. */
  readonly failure: string | undefined;
  readonly timedOut: boolean;
  /** The signal that this guard got and passed on. */
  readonly interruptedBy: NodeJS.Signals | undefined;
  /** It got a signal from us or from its terminal, so its exit code says nothing about the effect. */
  readonly wasToldToEnd: boolean;
  readonly tookMs: number;
  /** The end of both streams, in the order they came. */
  readonly tail: Buffer;
  /** All of stdout; undefined if it was not kept or was too long. */
  readonly stdout: Buffer | undefined;
  readonly stdoutBytes: number;
  /** Its output could not be passed on: a full disk, a reader that has gone. */
  readonly lostOutput: boolean;
  readonly descendants: Descendants;
  /**
   * Call once the ledger has the ending. Until then signals do not end this guard, or the ending would be lost. Passes on
   * the rest of the output.
   */
  recorded(): Promise<void>;
}

const tailBytes = 65_536;
export const maxOutputBytes = 16 * 1024 * 1024;

/** How often a guard checks that its command still holds the pipe. */
const holdCheckMs = 500;

/** As GNU timeout exits. */
const timeoutExit = 124;

export async function runChild(options: ChildOptions): Promise<ChildEnding> {
  const { command, env, liveness, keep, timeoutMs, graceMs, signals } = options;
  const [file = '', ...args] = command;
  // An interactive command keeps its terminal, and then there is no tail.
  const isInteractive = keep === 'tail' && isatty(1) && isatty(2);
  // Without a terminal it leads its own process group, so that it is stopped with everything it started.
  const isGroup = !isatty(0);
  const tail = lastBytes(tailBytes);
  const kept = firstBytes(maxOutputBytes);
  const { out, err, descendants } = await liveness.pipes();
  const startedAt = systemClock.mono();
  let timedOut = false;
  let interruptedBy: NodeJS.Signals | undefined;
  let isInterruptedByTerminal = false;
  let killer: NodeJS.Timeout | undefined;
  let child: ChildProcess | undefined;
  let streams: readonly Passing[] = [];

  // Before the command starts, or a signal in between would end this guard instead.
  for (const name of forwarded) process.on(name, onSignal);

  const { failure, code, by } = await runToEnd();
  clearTimeout(killer);
  const tookMs = systemClock.mono() - startedAt;
  const wasStopped = timedOut || interruptedBy !== undefined || isAborted();
  if (wasStopped) send('SIGKILL');
  const own = failure === undefined ? exitCode(code, by) : failure.code === 'ENOENT' ? 127 : 126;
  // A command may exit with 0 after a signal. That is not a success.
  const exit =
    own === 0 && wasStopped ? (timedOut ? timeoutExit : exitCode(null, interruptedBy ?? 'SIGTERM')) : own;
  await Promise.all(streams.map((stream) => stream.settled(keep === 'all' && exit === 0)));
  return {
    exit,
    signal: by ?? undefined,
    neverStarted: failure !== undefined,
    failure: failure?.code,
    timedOut,
    interruptedBy,
    wasToldToEnd: wasStopped || isInterruptedByTerminal,
    tookMs,
    tail: tail.bytes(),
    stdout: keep === 'all' ? kept.bytes() : undefined,
    stdoutBytes: kept.count(),
    get lostOutput() {
      return streams.some((stream) => stream.hasFailed());
    },
    descendants,
    async recorded() {
      for (const name of forwarded) process.off(name, onSignal);
      await Promise.all(streams.map((stream) => stream.drained()));
    },
  };

  async function runToEnd(): Promise<Exit> {
    try {
      const stdio: (number | 'inherit' | 'ignore')[] = Array.from(
        { length: liveness.at + 2 },
        () => 'ignore',
      );
      stdio[0] = 'inherit';
      stdio[1] = isInteractive ? 'inherit' : out.writing;
      stdio[2] = isInteractive ? 'inherit' : err.writing;
      stdio[liveness.at] = liveness.descriptor;
      stdio[liveness.at + 1] = descendants.descriptor;
      child = spawn(file, args, { stdio, env: { ...process.env, ...env }, detached: isGroup });
      options.onStart?.();
    } catch (error) {
      // Not even tried: an argument with a NUL in it, a list that is too long.
      for (const each of [out.reading, err.reading, out.writing, err.writing]) closeSync(each);
      descendants.release();
      return { failure: error as NodeJS.ErrnoException, code: null, by: null };
    }
    const toStdout = options.passOn === false ? undefined : () => process.stdout;
    streams = [
      passOn(
        out,
        isInteractive ? 'unused' : toStdout,
        (chunk) => {
          tail.add(chunk);
          if (keep === 'all') kept.add(chunk);
        },
        () => keep === 'all' && kept.count() <= maxOutputBytes,
      ),
      passOn(err, isInteractive ? 'unused' : () => process.stderr, tail.add),
    ];
    descendants.release();
    const watching = watchPipe();
    const timer = Number.isFinite(timeoutMs) ? setTimeout(onTimeout, timeoutMs) : undefined;
    const onAbort = () => stop('SIGTERM');
    for (const signal of signals) signal.addEventListener('abort', onAbort);
    if (isAborted()) onAbort();
    const ended = await exitOf(child);
    clearTimeout(timer);
    clearInterval(watching);
    for (const signal of signals) signal.removeEventListener('abort', onAbort);
    return ended;
  }

  function isAborted(): boolean {
    return signals.some(({ aborted }) => aborted);
  }

  /** Two misses in a row: a command that has just exited holds nothing either. */
  function watchPipe(): NodeJS.Timeout {
    let missed = 0;
    const watching = setInterval(() => {
      missed = descendants.areAlive() ? 0 : missed + 1;
      if (missed < 2) return;
      clearInterval(watching);
      liveness.hide();
      options.say(
        `${file} closed descriptor ${liveness.at + 1}, which shows semel that it is alive: if semel is killed, only the lease keeps other runs away`,
      );
    }, holdCheckMs);
    return watching.unref();
  }

  function onTimeout(): void {
    timedOut = true;
    stop('SIGTERM');
  }

  function onSignal(name: NodeJS.Signals): void {
    // The terminal has signalled the command already; how it reacts is up to the command.
    if (!isGroup && (name === 'SIGINT' || name === 'SIGQUIT')) {
      isInterruptedByTerminal = true;
      return;
    }
    if (name === 'SIGUSR1' || name === 'SIGUSR2') {
      send(name);
      return;
    }
    interruptedBy ??= name;
    stop(name);
  }

  function stop(name: NodeJS.Signals): void {
    send(name);
    killer ??= setTimeout(() => send('SIGKILL'), graceMs);
  }

  function send(name: NodeJS.Signals): void {
    if (child?.pid === undefined) return;
    try {
      process.kill(isGroup ? -child.pid : child.pid, name);
    } catch {
      // No process is left.
    }
  }
}

interface Exit {
  readonly failure: NodeJS.ErrnoException | undefined;
  readonly code: number | null;
  readonly by: NodeJS.Signals | null;
}

function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    child.once('exit', (code, by) => resolve({ failure: undefined, code, by }));
    child.once('error', (failure: NodeJS.ErrnoException) => {
      if (child.pid === undefined) resolve({ failure, code: null, by: null });
    });
  });
}

function exitCode(code: number | null, by: NodeJS.Signals | null): number {
  return code ?? 128 + (by === null ? 0 : constants.signals[by]);
}
