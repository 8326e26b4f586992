// One guarded command: started with its three streams passed through, watched until it ends, and ended when its time is
// over. Keeps a tail of what it printed, or all of its stdout. Decides nothing about the ledger.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import { systemClock } from '../../core/clock.ts';
import { firstBytes, lastBytes, type Passing, passOn } from '../passing.ts';
import type { Descendants, Life } from './liveness.ts';
import { forwarded, isEnding } from './signals.ts';

interface ChildOptions {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly life: Life;
  /** `all`: stdout is what the command is for, and is kept whole up to `mostBytes`. */
  readonly keep: 'tail' | 'all';
  /** False: stdout is kept, and not passed on. */
  readonly passOn?: boolean;
  readonly timeoutMs: number;
  /** From TERM to KILL. */
  readonly graceMs: number;
  /** The command may not go on once one of them aborts. */
  readonly signals: readonly AbortSignal[];
  readonly say: (message: string) => void;
}

export interface ChildEnding {
  /** As a shell would tell it: its code, 128 and the signal, 126 or 127. Never 0 where it was ended by us. */
  readonly exit: number;
  readonly signal: NodeJS.Signals | undefined;
  /** It was never executed. (A script that ends with 127 did run: a command inside it was not found.) */
  readonly neverStarted: boolean;
  /** Why it was not executed, in the system's word: EACCES, EMFILE. */
  readonly failure: string | undefined;
  readonly timedOut: boolean;
  /** Somebody wanted this process to end, and the command was told. */
  readonly interruptedBy: NodeJS.Signals | undefined;
  /** It was told to end, by us or by its terminal: the code that it ended with says nothing of what it did. */
  readonly wasToldToEnd: boolean;
  readonly tookMs: number;
  /** Both streams as they came, the end of them. */
  readonly tail: Buffer;
  /** All of stdout; undefined where it was not kept or was too long. */
  readonly stdout: Buffer | undefined;
  readonly stdoutBytes: number;
  /** What it printed could not be passed on: a full disk, a reader that is gone. */
  readonly lostOutput: boolean;
  /** What it started and left behind. */
  readonly descendants: Descendants;
  /**
   * The ledger knows. Until then no signal ends this guard: what the command did would be lost. Passes on what is left
   * of the output.
   */
  recorded(): Promise<void>;
}

const tailBytes = 65_536;
export const mostBytes = 16 * 1024 * 1024;

/** How often a guard looks whether its command still holds its life. */
const holdMs = 500;

/** As GNU timeout says it. */
const timeoutExit = 124;

export async function runChild(options: ChildOptions): Promise<ChildEnding> {
  const { command, env, life, keep, timeoutMs, graceMs, signals } = options;
  const [file = '', ...args] = command;
  // A command that talks to a person keeps its terminal, and then there is no tail.
  const isTalk = keep === 'tail' && isatty(1) && isatty(2);
  // Elsewhere it leads a group of its own, so that it is ended with all that it started.
  const isGroup = !isatty(0);
  const tail = lastBytes(tailBytes);
  const kept = firstBytes(mostBytes);
  const { out, err, descendants } = await life.pipes();
  const startedAt = systemClock.mono();
  let timedOut = false;
  let interruptedBy: NodeJS.Signals | undefined;
  let isToldByTerminal = false;
  let killer: NodeJS.Timeout | undefined;
  let child: ChildProcess | undefined;
  let streams: readonly Passing[] = [];

  // Before the command starts: a signal that comes as it does is for it, and would end this guard otherwise.
  for (const name of forwarded) process.on(name, onSignal);

  const { failure, code, by } = await started();
  clearTimeout(killer);
  const tookMs = systemClock.mono() - startedAt;
  const wasEnded = timedOut || interruptedBy !== undefined || isAborted();
  if (wasEnded) tell('SIGKILL');
  const own = failure === undefined ? exitOf(code, by) : failure.code === 'ENOENT' ? 127 : 126;
  // It may say 0 when it is told to end. That is no success.
  const exit =
    own === 0 && wasEnded ? (timedOut ? timeoutExit : exitOf(null, interruptedBy ?? 'SIGTERM')) : own;
  await Promise.all(streams.map((stream) => stream.settled(keep === 'all' && exit === 0)));
  return {
    exit,
    signal: by ?? undefined,
    neverStarted: failure !== undefined,
    failure: failure?.code,
    timedOut,
    interruptedBy,
    wasToldToEnd: wasEnded || isToldByTerminal,
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

  async function started(): Promise<Ended> {
    try {
      const stdio: (number | 'inherit' | 'ignore')[] = Array.from({ length: life.at + 2 }, () => 'ignore');
      stdio[0] = 'inherit';
      stdio[1] = isTalk ? 'inherit' : out.writing;
      stdio[2] = isTalk ? 'inherit' : err.writing;
      stdio[life.at] = life.descriptor;
      stdio[life.at + 1] = descendants.descriptor;
      child = spawn(file, args, { stdio, env: { ...process.env, ...env }, detached: isGroup });
    } catch (error) {
      // What cannot even be tried: an argument with a zero in it, a list that is too long.
      for (const each of [out.reading, err.reading, out.writing, err.writing]) closeSync(each);
      descendants.started();
      return { failure: error as NodeJS.ErrnoException, code: null, by: null };
    }
    const toStdout = options.passOn === false ? undefined : () => process.stdout;
    streams = [
      passOn(
        out,
        isTalk ? 'unused' : toStdout,
        (chunk) => {
          tail.add(chunk);
          if (keep === 'all') kept.add(chunk);
        },
        () => keep === 'all' && kept.count() <= mostBytes,
      ),
      passOn(err, isTalk ? 'unused' : () => process.stderr, tail.add),
    ];
    descendants.started();
    const watching = watchHold();
    const timer = Number.isFinite(timeoutMs) ? setTimeout(onTimeout, timeoutMs) : undefined;
    const onAbort = () => stop('SIGTERM');
    for (const signal of signals) signal.addEventListener('abort', onAbort);
    if (isAborted()) onAbort();
    const ended = await endOf(child);
    clearTimeout(timer);
    clearInterval(watching);
    for (const signal of signals) signal.removeEventListener('abort', onAbort);
    return ended;
  }

  function isAborted(): boolean {
    return signals.some(({ aborted }) => aborted);
  }

  /** Twice in a row: a command that has just ended holds nothing either. */
  function watchHold(): NodeJS.Timeout {
    let missed = 0;
    const watching = setInterval(() => {
      missed = descendants.lives() ? 0 : missed + 1;
      if (missed < 2) return;
      clearInterval(watching);
      life.hide();
      options.say(
        `${file} closed descriptor ${life.at + 1}, by which semel sees that it lives: if semel is killed, only the lease keeps others away`,
      );
    }, holdMs);
    return watching.unref();
  }

  function onTimeout(): void {
    timedOut = true;
    stop('SIGTERM');
  }

  function onSignal(name: NodeJS.Signals): void {
    // A terminal has told the command already, and what it makes of it is its own affair.
    if (!isGroup && (name === 'SIGINT' || name === 'SIGQUIT')) {
      isToldByTerminal = true;
      return;
    }
    if (!isEnding(name)) {
      tell(name);
      return;
    }
    interruptedBy ??= name;
    stop(name);
  }

  function stop(name: NodeJS.Signals): void {
    tell(name);
    killer ??= setTimeout(() => tell('SIGKILL'), graceMs);
  }

  function tell(name: NodeJS.Signals): void {
    if (child?.pid === undefined) return;
    try {
      process.kill(isGroup ? -child.pid : child.pid, name);
    } catch {
      // Nobody is left.
    }
  }
}

interface Ended {
  readonly failure: NodeJS.ErrnoException | undefined;
  readonly code: number | null;
  readonly by: NodeJS.Signals | null;
}

function endOf(child: ChildProcess): Promise<Ended> {
  return new Promise((resolve) => {
    child.once('exit', (code, by) => resolve({ failure: undefined, code, by }));
    child.once('error', (failure: NodeJS.ErrnoException) => {
      if (child.pid === undefined) resolve({ failure, code: null, by: null });
    });
  });
}

function exitOf(code: number | null, by: NodeJS.Signals | null): number {
  return code ?? 128 + (by === null ? 0 : constants.signals[by]);
}
