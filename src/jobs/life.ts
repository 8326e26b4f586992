// Whether the processes of a run live, told by the kernel. Each guard makes a named pipe beside the ledger and keeps it
// open for reading; its command inherits the descriptor. Whoever can open the pipe for writing knows that one of them
// still lives; ENXIO says that all are gone, for good. No process id, start time or host name is trusted.

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { SemelError } from '../core/errors.ts';
import { folderProblem, makeFolder, nearestExisting } from '../store/files.ts';
import { defaultPath } from '../stores/sqlite/index.ts';
import { hasReader, leavePipes, type PipeSet, renewPipes, sweepPipes, takePipes } from './pipes.ts';

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants;

/**
 * High enough that a shell script, which can name only single digits portably, does not touch it. A guard inside a guard
 * takes others, so that what it starts holds the lives of both.
 */
const firstDescriptor = 99;
const enoughBelow = 24;

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
  refuseForeignHome(folder);
  makeFolder(folder);
  const problem = folderProblem(folder);
  if (problem !== undefined) throw notOurs(folder, problem);
  const path = join(folder, mark);
  const set = await takePipes(folder, mark);
  sweepPipes(folder, keptMs);
  const descriptor = openSync(set.life, O_RDONLY | O_NONBLOCK);
  // Under its name from now on, and alive before anybody can know that name.
  renameSync(set.life, path);
  let isFirst = true;
  return {
    descriptor,
    at: freeDescriptor(),
    async pipes() {
      if (!isFirst) await renewPipes(set);
      isFirst = false;
      return pipesOf(set);
    },
    end() {
      closeSync(descriptor);
      try {
        renameSync(path, set.life);
      } catch {
        // Somebody removed it; then the set is not whole, and nobody will use it.
      }
      leavePipes(set);
    },
  };
}

/** `sudo` may keep HOME: what root would make there locks its owner out. */
function refuseForeignHome(folder: string): void {
  if (dirname(folder) !== dirname(defaultPath())) return;
  const home = nearestExisting(dirname(dirname(folder)));
  const { uid } = statSync(home);
  if (uid !== 0 && uid !== process.geteuid?.()) throw notOurs(home, `belongs to another user (${uid})`);
}

/** True: one of its processes lives. False: all are gone. Undefined: it cannot be told from here. */
export function isAlive(folder: string, owner: string): boolean | undefined {
  const mark = markOf(owner);
  // In a folder of somebody else, "all are gone" would be a lie that starts a second run.
  if (mark === undefined || lifeProblem(folder) !== undefined) return undefined;
  return hasReader(join(folder, mark));
}

/** Why a folder of pipes is not believed; undefined also where there is none yet. */
export function lifeProblem(folder: string): string | undefined {
  return existsSync(folder) ? folderProblem(folder) : undefined;
}

function notOurs(folder: string, problem: string): SemelError {
  return new SemelError('STORE_UNSAFE', `${folder} ${problem}.`, {
    next: 'Nothing was run: pipes there say which runs are alive. Let them lie in a folder that only this user can write: name the ledger by --store, or set HOME or XDG_STATE_HOME.',
    evidence: { path: folder },
  });
}

/** Long after every lease, a name of nothing tells nobody anything. */
const keptMs = 30 * 86_400_000;

function pipesOf({ out, err, kin }: PipeSet): Pipes {
  return { out: bothEnds(out), err: bothEnds(err), kin: kinOf(kin) };
}

function kinOf(path: string): Kin {
  const descriptor = openSync(path, O_RDONLY | O_NONBLOCK);
  const asking = openSync(path, O_WRONLY | O_NONBLOCK);
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

/**
 * With enough free ones below: a spawn makes a pipe on the lowest of them, by which it hears that the command could not be
 * executed. Were ours put in its place, that would look like a command that ran and ended with 127.
 */
function freeDescriptor(): number {
  let below = 0;
  for (let at = 0; ; at += 1) {
    if (at >= firstDescriptor && below >= enoughBelow && !isOpen(at) && !isOpen(at + 1)) return at;
    if (!isOpen(at)) below += 1;
  }
}

function isOpen(descriptor: number): boolean {
  try {
    fstatSync(descriptor);
    return true;
  } catch {
    return false;
  }
}

function bothEnds(path: string): Pipe {
  const reading = openSync(path, O_RDONLY | O_NONBLOCK);
  const writing = openSync(path, O_WRONLY);
  return { reading, writing };
}
