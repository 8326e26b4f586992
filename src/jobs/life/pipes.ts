// The named pipes of a guard. To make them is to start a process, and takes longer than to start the command; so who has
// ended leaves them to the next one. A set is taken by the name of its folder, so by one guard only, and used only where
// the kernel says that nobody holds an end of any of them: then it is as empty as a new one.

import { spawn } from 'node:child_process';
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { SemelError } from '../../core/errors.ts';
import { folderProblem, isOwnedByUser, makeFolder } from '../../store/files.ts';

const { O_RDONLY, O_WRONLY, O_NONBLOCK, O_NOFOLLOW } = constants;

const names = ['life', 'out', 'err', 'descendants'] as const;

/** Where they are. */
export type PipeSet = Readonly<Record<(typeof names)[number] | 'folder', string>>;

/** More are not kept. */
const mostSpare = 16;

export async function takePipes(folder: string, mark: string): Promise<PipeSet> {
  const set = setIn(join(folder, `${mark}.pipes`));
  for (const name of ownNamesIn(spareFolder(folder))) {
    if (!isRenamed(join(spareFolder(folder), name), set.folder)) continue;
    if (isOurs(set) && names.every((each) => isUnused(set[each]))) return set;
    discard(set.folder);
  }
  await making(set, () => {
    mkdirSync(set.folder, { mode: 0o700 });
    return mkfifo(names.map((name) => set[name]));
  });
  return set;
}

/** For another command of the same guard. */
export async function renewPipes(set: PipeSet): Promise<void> {
  const used = [set.out, set.err, set.descendants];
  for (const path of used) rmSync(path, { force: true });
  await making(set, () => mkfifo(used));
}

/** Whoever takes them looks whether they are in use, so it does not matter that this process has not ended. */
export function leavePipes({ folder }: PipeSet): void {
  try {
    const spare = spareFolder(dirname(folder));
    makeFolder(spare);
    if (ownNamesIn(spare).length < mostSpare) renameSync(folder, join(spare, basename(folder)));
    else rmSync(folder, { recursive: true });
  } catch {
    // They are swept one day.
  }
}

/** True: somebody has it open for reading. False: nobody has. Undefined: it cannot be told, or not believed. */
export function hasReader(path: string, user?: number): boolean | undefined {
  try {
    if (!isOurPipe(path, user)) return undefined;
    closeSync(openSync(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW));
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENXIO' ? false : undefined;
  }
}

/** What guards that were killed have left. */
export function sweepPipes(folder: string, keptMs: number): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined || Date.now() - found.mtimeMs <= keptMs || path === spareFolder(folder)) continue;
    if (found.isDirectory() || hasReader(path) === false) discard(path);
  }
}

function setIn(folder: string): PipeSet {
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

/** None where others could have put something there: their pipes would tell what they like. */
function ownNamesIn(folder: string): readonly string[] {
  try {
    if (folderProblem(folder) !== undefined) return [];
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isOurs(set: PipeSet): boolean {
  return folderProblem(set.folder) === undefined && names.every((name) => isOurPipe(set[name]));
}

function isOurPipe(path: string, user?: number): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isFIFO() === true && isOwnedByUser(found, user);
}

function discard(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch {
    // Of somebody else: under another name nobody looks for it.
    isRenamed(folder, `${folder}.strange`);
  }
}

function isRenamed(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch {
    // Somebody was faster.
    return false;
  }
}

function isUnused(path: string): boolean {
  if (hasReader(path) !== false) return false;
  const reading = openSync(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  try {
    // The end, and not "nothing yet": nobody has it open for writing, and nothing is in it.
    return readSync(reading, Buffer.alloc(1)) === 0;
  } catch {
    return false;
  } finally {
    closeSync(reading);
  }
}

async function making({ folder }: PipeSet, make: () => Promise<void>): Promise<void> {
  try {
    await make();
  } catch (error) {
    const why = (error as Error).message;
    throw new SemelError('STORE_UNAVAILABLE', `No pipe could be made in ${dirname(folder)} (${why}).`, {
      next: 'Nothing was run. Let this user write there, on a disk that has pipes.',
    });
  }
}

/** Node.js has no call for it. */
function mkfifo(paths: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('mkfifo', ['-m', '600', '--', ...paths], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    child.on('error', reject);
    child.on('close', (code) =>
      code === 0 ? resolve() : reject(new Error(said.trim() || `mkfifo: exit ${code}`)),
    );
  });
}
