// Whether the processes of a run are alive, as the kernel knows. Each guard makes a named pipe next to the ledger and
// keeps it open for reading; its command inherits the descriptor. If the pipe can be opened for writing, one of them is
// alive; ENXIO means that all are gone, for good. No process id, start time or host name is trusted. A pipe belongs to one
// kernel, while other machines may see its name (a shared disk): each boot of a machine has its own folder.

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
import { shortBootId } from '../../store/boot.ts';
import { folderProblem, makeFolder, nearestExisting } from '../../store/files.ts';
import { withoutMark } from '../../store/process-life.ts';
import { defaultPath } from '../../stores/sqlite/index.ts';
import { isHeldAbove } from './ancestry.ts';
import { freeDescriptors } from './descriptors.ts';
import {
  hasReader,
  isAbandoned,
  leavePipes,
  type PipeSet,
  renewPipes,
  sweepPipes,
  takePipes,
} from './pipes.ts';

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
  /** Inherited by the command only. */
  readonly descriptor: number;
  /** Closes the guard's own end, once the command has it. */
  release(): void;
  areAlive(): boolean;
}

export interface Liveness {
  /** Inherited by the command, as number `at`. */
  readonly descriptor: number;
  readonly at: number;
  /** For the output of one command. Named pipes, since a script may open /dev/stdout. */
  pipes(): Promise<Pipes>;
  /** The command closed its descriptor, so the pipe shows nothing any more: removes it. */
  hide(): void;
  /** The record says how the command ended: the pipe is not needed any more. */
  end(): void;
}

/** Next to the ledger's file; for a ledger on a server, in the user's state folder. */
export function livenessFolder(kind: string, location: string): string {
  return kind === 'sqlite' ? `${location}-live` : join(dirname(defaultPath()), 'live');
}

/** The owner of this guard's claims, with the name of its pipe: `web1:4242#9f3a…`. */
export function ownerWithPipe(pipeName: string): string {
  return `${hostname()}:${process.pid}#${pipeName}`;
}

function pipeOf(owner: string): string | undefined {
  return /#([0-9a-f]{20})$/.exec(owner)?.[1];
}

/** The owner as shown to people: without the pipe's name and the process's mark. */
export function shownOwner(owner: string): string {
  return withoutMark(owner).replace(/#[0-9a-f]{20}$/, '');
}

export async function beginLiveness(folder: string, pipeName: string): Promise<Liveness> {
  refuseOtherUsersHome(folder);
  makeFolder(folder);
  const here = join(folder, kernel());
  makeFolder(here);
  for (const each of [folder, here]) {
    const problem = folderProblem(each);
    if (problem !== undefined) throw notOurs(each, problem);
  }
  const at = freeDescriptors();
  const path = join(here, pipeName);
  const set = await takePipes(here, pipeName);
  sweepPipes(here, keptMs);
  sweepKernels(folder);
  const descriptor = openSync(set.life, O_RDONLY | O_NONBLOCK);
  // Opened before it gets its name: no process can see the name while the pipe looks dead.
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
        // The pipe was removed; an incomplete set is not reused.
      }
      leavePipes(set);
    },
  };
}

/** `sudo` may keep HOME: files that root makes there lock its owner out. */
function refuseOtherUsersHome(folder: string): void {
  if (dirname(folder) !== dirname(defaultPath())) return;
  const home = nearestExisting(dirname(dirname(folder)));
  const { uid } = statSync(home);
  if (uid !== 0 && uid !== process.geteuid?.()) throw notOurs(home, `belongs to another user (${uid})`);
}

/** True: one of its processes is alive. False: all are gone. Undefined: unknown from here. */
export function isOwnerAlive(folder: string, owner: string): boolean | undefined {
  const pipeName = pipeOf(owner);
  // In another user's folder "all are gone" could be forged, and would start a second run.
  const here = join(folder, kernel());
  if (pipeName === undefined || (livenessProblem(folder) ?? livenessProblem(here)) !== undefined)
    return undefined;
  const path = join(here, pipeName);
  if (hasReader(path) === true) return true;
  return kernel() !== unknownKernel && isAbandoned(path) ? false : undefined;
}

/** The guard itself is gone, whatever it started may not be: for messages only, since a process id may be reused. */
export function isGuardGone(owner: string): boolean {
  const [, host, pid] = /^(.*):(\d+)#[0-9a-f]{20}$/.exec(owner) ?? [];
  if (host !== hostname()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/** Whether the owner started this process, which would then wait for itself. */
export function isPartOf(folder: string, owner: string): boolean {
  const pipeName = pipeOf(owner);
  return pipeName !== undefined && isHeldAbove(join(folder, kernel(), pipeName));
}

/** Without a boot id, another machine may use the same folder. */
const unknownKernel = 'unknown';

/** This boot of this machine: only its kernel knows its pipes. */
function kernel(): string {
  return shortBootId() || unknownKernel;
}

/** Why a folder of pipes cannot be trusted; undefined also if there is none yet. */
export function livenessProblem(folder: string): string | undefined {
  return existsSync(folder) ? folderProblem(folder) : undefined;
}

function notOurs(folder: string, problem: string): SemelError {
  return new SemelError('STORE_UNSAFE', `${folder} ${problem}.`, {
    next: 'Nothing was run: pipes in this folder show which runs are alive, so only this user may write to it. Name another ledger with --store, or set HOME or XDG_STATE_HOME.',
    evidence: { path: folder },
  });
}

/** Far longer than any lease. */
const keptMs = 30 * 86_400_000;

function pipesOf({ out, err, descendants }: PipeSet): Pipes {
  return { out: bothEnds(out), err: bothEnds(err), descendants: descendantsOf(descendants) };
}

function descendantsOf(path: string): Descendants {
  const descriptor = openSync(path, O_RDONLY | O_NONBLOCK);
  const probe = openSync(path, O_WRONLY | O_NONBLOCK);
  return {
    descriptor,
    release: () => closeSync(descriptor),
    areAlive() {
      try {
        // Fails if no process has the pipe open for reading.
        writeSync(probe, '.');
        return true;
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'EAGAIN';
      }
    },
  };
}

/** Removes folders of other boots. One may belong to another machine, so only after a long time without a change. */
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
