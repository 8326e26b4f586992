// The named pipes of a guard. Making them needs a process and takes longer than starting the command, so a guard that is
// done leaves its set to the next one. A set is taken by renaming its folder, so by one guard only, and reused only if
// the kernel says that no process has either end of any pipe open: then it is as good as new.

import { spawn } from 'node:child_process';
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { SemelError } from '../../core/errors.ts';
import { folderProblem, isOwnedByUser, makeFolder } from '../../store/files.ts';

const { O_RDONLY, O_WRONLY, O_NONBLOCK, O_NOFOLLOW } = constants;

const names = ['life', 'out', 'err', 'descendants'] as const;

/** Paths. */
export type PipeSet = Readonly<Record<(typeof names)[number] | 'folder', string>>;

const maxSpareSets = 16;

export async function takePipes(folder: string, pipeName: string): Promise<PipeSet> {
  const set = pipesIn(setFolder(join(folder, pipeName)));
  for (const name of trustedNames(spareFolder(folder))) {
    if (!tryRename(join(spareFolder(folder), name), set.folder)) continue;
    if (isOurs(set) && names.every((each) => isUnused(set[each]))) return set;
    discard(set.folder);
  }
  await reportFailure(set, async () => {
    mkdirSync(set.folder, { mode: 0o700 });
    await mkfifo(names.map((name) => set[name]));
    symlinkSync(inodeOf(set.life), inodeLink(set.folder));
  });
  return set;
}

/** New pipes for the next command of the same guard. */
export async function renewPipes(set: PipeSet): Promise<void> {
  const used = [set.out, set.err, set.descendants];
  for (const path of used) rmSync(path, { force: true });
  await reportFailure(set, () => mkfifo(used));
}

/** Safe while this process is alive: the next guard checks whether the set is in use. */
export function leavePipes({ folder }: PipeSet): void {
  try {
    const spare = spareFolder(dirname(folder));
    makeFolder(spare);
    if (trustedNames(spare).length < maxSpareSets) renameSync(folder, join(spare, basename(folder)));
    else rmSync(folder, { recursive: true });
  } catch {
    // sweepPipes removes them later.
  }
}

/** True: a process has it open for reading. False: none has. Undefined: unknown, or not to be trusted. */
export function hasReader(path: string, user?: number): boolean | undefined {
  try {
    if (!isOurPipe(path, user)) return undefined;
    closeSync(openSync(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW));
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENXIO' ? false : undefined;
  }
}

/**
 * Whether no process has it open for reading, for good. A copy of the folder (a backup, a forked sandbox) has pipes of the same
 * names that nobody ever opened: its set knows the inode of the pipe that it was made with.
 */
export function isAbandoned(path: string): boolean {
  return hasReader(path) === false && isOriginal(path, setFolder(path));
}

function isOriginal(path: string, folder: string): boolean {
  try {
    return readlinkSync(inodeLink(folder)) === inodeOf(path);
  } catch {
    return false;
  }
}

/** Unique among all pipes of this kernel, while one of them is open. */
function inodeOf(path: string): string {
  const { dev, ino } = lstatSync(path, { bigint: true });
  return `${dev}-${ino}`;
}

function inodeLink(folder: string): string {
  return join(folder, 'inode');
}

/** The folder of a guard's pipes, by the path of the pipe that shows whether it is alive. */
function setFolder(path: string): string {
  return `${path}.pipes`;
}

/** Removes the pipes of guards that were killed. */
export function sweepPipes(folder: string, keptMs: number): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined || Date.now() - found.mtimeMs <= keptMs || path === spareFolder(folder)) continue;
    if (found.isDirectory() || hasReader(path) === false) discard(path);
  }
}

function pipesIn(folder: string): PipeSet {
  const [life, out, err, descendants] = names.map((name) => join(folder, name)) as [
    string,
    string,
    string,
    string,
  ];
  return { folder, life, out, err, descendants };
}

function spareFolder(folder: string): string {
  return join(folder, 'spare');
}

/** Empty if other users can write to the folder: their pipes could report anything. */
function trustedNames(folder: string): readonly string[] {
  try {
    if (folderProblem(folder) !== undefined) return [];
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isOurs(set: PipeSet): boolean {
  const isTrusted = folderProblem(set.folder) === undefined && names.every((name) => isOurPipe(set[name]));
  return isTrusted && isOriginal(set.life, set.folder);
}

function isOurPipe(path: string, user?: number): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isFIFO() === true && isOwnedByUser(found, user);
}

function discard(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch {
    // Another user's. Under another name it does no harm.
    tryRename(folder, `${folder}.strange`);
  }
}

function tryRename(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch {
    // Another guard was faster.
    return false;
  }
}

function isUnused(path: string): boolean {
  if (hasReader(path) !== false) return false;
  const reading = openSync(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  try {
    // End of file rather than "nothing yet": it is empty, and no process has it open for writing.
    return readSync(reading, Buffer.alloc(1)) === 0;
  } catch {
    return false;
  } finally {
    closeSync(reading);
  }
}

async function reportFailure({ folder }: PipeSet, make: () => Promise<void>): Promise<void> {
  try {
    await make();
  } catch (error) {
    const why = (error as Error).message;
    throw new SemelError('STORE_UNAVAILABLE', `Could not make a named pipe in ${dirname(folder)} (${why}).`, {
      next: 'Nothing was run. This user must be able to write there, and the file system must support named pipes.',
    });
  }
}

/** Node.js has no function for it. */
function mkfifo(paths: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('mkfifo', ['-m', '600', '--', ...paths], { stdio: ['ignore', 'ignore', 'pipe'] });
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => {
      errors += chunk.toString();
    });
    child.on('error', reject);
    child.on('close', (code) =>
      code === 0 ? resolve() : reject(new Error(errors.trim() || `mkfifo: exit ${code}`)),
    );
  });
}
