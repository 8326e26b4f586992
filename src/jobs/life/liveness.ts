// Whether the processes of a run live, told by the kernel. Each guard makes a named pipe beside the ledger and keeps it
// open for reading; its command inherits the descriptor. Whoever can open the pipe for writing knows that one of them
// still lives; ENXIO says that all are gone, for good. No process id, start time or host name is trusted. A pipe is known
// to one kernel, while its name may be seen by others (a shared disk): each boot of a machine has a folder of its own.

import {
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { SemelError } from '../../core/errors.ts';
import { bootId, shortenBootId } from '../../store/boot.ts';
import { folderProblem, makeFolder, nearestExisting } from '../../store/files.ts';
import { defaultPath } from '../../stores/sqlite/index.ts';
import { isHeldAbove } from './ancestry.ts';
import { freeDescriptors } from './descriptors.ts';
import { hasReader, leavePipes, type PipeSet, renewPipes, sweepPipes, takePipes } from './pipes.ts';

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants;

export interface Pipe {
  readonly reading: number;
  readonly writing: number;
}

export interface Pipes {
  readonly out: Pipe;
  readonly err: Pipe;
  readonly descendants: Descendants;
}

/** The command and all that it started, without its guard. */
export interface Descendants {
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
  /** The command let go of its descriptor: that nobody holds the pipe says nothing any more, so it is removed. */
  hide(): void;
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
  const here = join(folder, kernel());
  makeFolder(here);
  for (const each of [folder, here]) {
    const problem = folderProblem(each);
    if (problem !== undefined) throw notOurs(each, problem);
  }
  const at = freeDescriptors();
  const path = join(here, mark);
  const set = await takePipes(here, mark);
  sweepPipes(here, keptMs);
  sweepKernels(folder);
  const descriptor = openSync(set.life, O_RDONLY | O_NONBLOCK);
  // Under its name from now on, and alive before anybody can know that name.
  renameSync(set.life, path);
  let isFirst = true;
  return {
    descriptor,
    at,
    async pipes() {
      if (!isFirst) await renewPipes(set);
      isFirst = false;
      return pipesOf(set);
    },
    hide() {
      rmSync(path, { force: true });
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
  const here = join(folder, kernel());
  if (mark === undefined || (lifeProblem(folder) ?? lifeProblem(here)) !== undefined) return undefined;
  const isHeld = hasReader(join(here, mark));
  return isHeld === false && kernel() === unknownKernel ? undefined : isHeld;
}

/** True: this process is part of what the owner started, and would wait for itself. */
export function isPartOf(folder: string, owner: string): boolean {
  const mark = markOf(owner);
  return mark !== undefined && isHeldAbove(join(folder, kernel(), mark));
}

/** Where the system has no name for it, another machine may be at work in the same folder. */
const unknownKernel = 'unknown';
let thisKernel: string | undefined;

/** This boot of this machine: what is asked of its pipes, it alone knows. */
function kernel(): string {
  if (thisKernel === undefined) {
    const id = bootId();
    thisKernel = id === undefined || id === '' ? unknownKernel : shortenBootId(id);
  }
  return thisKernel;
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

function pipesOf({ out, err, descendants }: PipeSet): Pipes {
  return { out: bothEnds(out), err: bothEnds(err), descendants: descendantsOf(descendants) };
}

function descendantsOf(path: string): Descendants {
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

/** What other boots have left. Another machine may be at work in its own, so only what nobody has touched for long. */
function sweepKernels(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (name === kernel() || found === undefined || Date.now() - found.mtimeMs <= keptForKernelsMs) continue;
    rmSync(path, { recursive: true, force: true });
  }
}

const keptForKernelsMs = 12 * keptMs;

function bothEnds(path: string): Pipe {
  const reading = openSync(path, O_RDONLY | O_NONBLOCK);
  const writing = openSync(path, O_WRONLY);
  return { reading, writing };
}
