// Whether the processes of a run live, told by the kernel. Each guard makes a named pipe beside the ledger and keeps it
// open for reading; its command inherits the descriptor. Whoever can open the pipe for writing knows that one of them
// still lives; ENXIO says that all are gone, for good. No process id, start time or host name is trusted.

import { spawn } from 'node:child_process';
import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { SemelError } from '../core/errors.ts';
import { defaultPath } from '../stores/sqlite/index.ts';

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants;

/**
 * High enough that a shell script, which can name only single digits portably, does not touch it. A guard inside a guard
 * takes the next ones that are free, so that what it starts holds the lives of both.
 */
const firstDescriptor = 33;

export interface Pipe {
  readonly reading: number;
  readonly writing: number;
}

export interface Pipes {
  readonly out: Pipe;
  readonly err: Pipe;
  readonly kin: Kin;
}

/** The command and all that it started, without its guard. */
export interface Kin {
  /** To be inherited by the command only. */
  readonly descriptor: number;
  /** The command has it: the guard lets go. */
  started(): void;
  /** Something of it lives. */
  lives(): boolean;
}

export interface Life {
  /** To be inherited by the command, at `at`. */
  readonly descriptor: number;
  readonly at: number;
  /** For the output of one command. True pipes: a script may open /dev/stdout. */
  pipes(): Promise<Pipes>;
  /** The record says how it ended: nobody needs to ask any more. */
  end(): void;
}

/** Beside the ledger's file; for a ledger that is elsewhere, in the state of this user. */
export function lifeFolder(kind: string, location: string): string {
  return kind === 'sqlite' ? `${location}-live` : join(dirname(defaultPath()), 'live');
}

/** Who holds the claims, with the name of the pipe: `web1:4242#9f3a…`. */
export function ownerOf(mark: string): string {
  return `${hostname()}:${process.pid}#${mark}`;
}

/** Of whoever holds a claim: the pipe's name, where it has one. */
function markOf(owner: string): string | undefined {
  return /#([0-9a-f]{20})$/.exec(owner)?.[1];
}

/** For people, without the name of the pipe. */
export function shownOwner(owner: string): string {
  return owner.replace(/#[0-9a-f]{20}$/, '');
}

export async function beginLife(folder: string, mark: string): Promise<Life> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, mark);
  const named = [`${path}.out`, `${path}.err`, `${path}.kin`] as const;
  // All at once: most guards run one command.
  await makePipes([path, ...named]);
  sweepDead(folder);
  const descriptor = openSync(path, O_RDONLY | O_NONBLOCK);
  let made: Pipes | undefined = pipesOf(named);
  return {
    descriptor,
    at: freeDescriptor(),
    async pipes() {
      const pipes = made;
      made = undefined;
      if (pipes !== undefined) return pipes;
      await makePipes(named);
      return pipesOf(named);
    },
    end() {
      closeSync(descriptor);
      remove(path);
    },
  };
}

/** True: one of its processes lives. False: all are gone. Undefined: it cannot be told from here. */
export function isAlive(folder: string, owner: string): boolean | undefined {
  const mark = markOf(owner);
  return mark === undefined ? undefined : lives(join(folder, mark));
}

function lives(path: string): boolean | undefined {
  try {
    closeSync(openSync(path, O_WRONLY | O_NONBLOCK));
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENXIO' ? false : undefined;
  }
}

/** Long after every lease, a name of nothing tells nobody anything. */
const keptMs = 30 * 86_400_000;

function sweepDead(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
    if (Date.now() - mtimeMs > keptMs && lives(path) === false) remove(path);
  }
}

function pipesOf([out, err, kin]: readonly [string, string, string]): Pipes {
  return { out: unnamed(out), err: unnamed(err), kin: kinOf(kin) };
}

function kinOf(path: string): Kin {
  const descriptor = openSync(path, O_RDONLY | O_NONBLOCK);
  // Kept open for writing too, so that it can be asked when it has no name any more.
  const asking = openSync(path, O_WRONLY | O_NONBLOCK);
  remove(path);
  return {
    descriptor,
    started: () => closeSync(descriptor),
    lives() {
      try {
        // Nobody reads it. Where nobody could, there is nobody.
        writeSync(asking, '.');
        return true;
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'EAGAIN';
      }
    },
  };
}

function freeDescriptor(): number {
  for (let at = firstDescriptor; ; at += 2) {
    try {
      fstatSync(at);
    } catch {
      return at;
    }
  }
}

/** Both ends are open, so it needs no name any more. */
function unnamed(path: string): Pipe {
  const reading = openSync(path, O_RDONLY | O_NONBLOCK);
  const writing = openSync(path, O_WRONLY);
  remove(path);
  return { reading, writing };
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It stays as a name of nothing.
  }
}

/** Node.js has no call for it. */
function makePipes(paths: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (why: string) =>
      reject(
        new SemelError('STORE_UNAVAILABLE', `No pipe could be made in ${dirname(paths[0] ?? '')} (${why}).`, {
          next: 'Nothing was run. Let this user write there, on a disk that has pipes.',
        }),
      );
    const child = spawn('mkfifo', ['-m', '600', '--', ...paths], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    child.on('error', (error) => failed(error.message));
    child.on('close', (code) => (code === 0 ? resolve() : failed(said.trim() || `mkfifo: exit ${code}`)));
  });
}
