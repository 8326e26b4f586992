// A file that is there whole or not at all: written beside its place, flushed to the disk, then renamed. Refuses to write
// through what other users have laid there.

import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  writeSync,
} from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, parse, resolve, sep } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SemelError } from '../../core/errors.ts';
import { type StoredValue, toBytes } from '../../jobs/index.ts';
import { openRegular } from '../../store/files.ts';

const { O_WRONLY, O_APPEND, O_NONBLOCK, O_NOFOLLOW, O_DIRECTORY } = constants;

export function outputOf(value: StoredValue): Uint8Array | undefined {
  const stdout = typeof value === 'string' ? value : value?.stdout;
  return stdout === undefined ? undefined : toBytes(stdout);
}

export async function writeFile(named: string, bytes: Uint8Array): Promise<void> {
  let folder: Held | undefined;
  try {
    // What a link leads to is meant, not the link.
    const place = followed(named);
    folder = held(dirname(place));
    const path = join(folder.path, basename(place));
    const before = lstatSync(path, { throwIfNoEntry: false });
    if (before === undefined || before.isFile() || before.isDirectory())
      await replace(path, bytes, before?.uid === process.geteuid?.() ? before?.mode : undefined);
    // A device or a pipe is written to; it cannot be replaced.
    else await pour(path, bytes, before.isSymbolicLink());
  } catch (error) {
    const { message } = error as Error;
    const why = folder === undefined ? message : message.replaceAll(folder.path, folder.name);
    throw new SemelError('INVALID_ARGS', `${named} could not be written (${why}).`, {
      next: 'The step is done and its output is kept: call it again with a file that can be written.',
    });
  } finally {
    folder?.letGo();
  }
}

/** A folder that stays the same even if its owner replaces what its name points to. */
interface Held {
  readonly name: string;
  /** To be used instead of its name. */
  readonly path: string;
  letGo(): void;
}

/** Where a descriptor of a folder is a way into it. */
const descriptors = '/proc/self/fd';
/** Linux only, and not among the names of Node.js: a way into a folder that need not be read. */
const O_PATH = 0o10000000;

/**
 * Opened folder by folder, through no link: `followed` has seen none on the way, but the owner of a folder may lay one there
 * since. Elsewhere than on Linux it is what is under its name.
 */
function held(name: string): Held {
  if (process.platform !== 'linux' || !existsSync(descriptors))
    return { name, path: name, letGo: () => undefined };
  let folder = openSync(parse(name).root, O_PATH | O_DIRECTORY);
  try {
    for (const word of words(name)) {
      const next = openSync(`${descriptors}/${folder}/${word}`, O_PATH | O_DIRECTORY | O_NOFOLLOW);
      closeSync(folder);
      folder = next;
    }
  } catch (error) {
    closeSync(folder);
    throw new Error(`${name} cannot be entered: ${(error as NodeJS.ErrnoException).code}`);
  }
  return { name, path: `${descriptors}/${folder}`, letGo: () => closeSync(folder) };
}

function words(path: string): readonly string[] {
  return path.slice(parse(path).root.length).split(sep).filter(Boolean);
}

/** The file as the step left it: kept if it is the same, else restored. Tells what it did. */
export async function keepFile(path: string, bytes: Uint8Array | undefined): Promise<string> {
  if (bytes === undefined) return `its output is not in the ledger; ${path} was left as it is`;
  const present = presentAt(path, bytes.length);
  if (present !== undefined && digest(present) === digest(bytes)) return `${path} is as it left it`;
  await writeFile(path, bytes);
  return `${path} is restored`;
}

async function replace(path: string, bytes: Uint8Array, mode: number | undefined): Promise<void> {
  const beside = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`);
  try {
    const file = await open(beside, 'wx', 0o666);
    try {
      if (mode !== undefined) await file.chmod(mode & 0o777);
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(beside, path);
    const folder = await open(dirname(path), 'r');
    await folder.sync().finally(() => folder.close());
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}

/** More are a loop. */
const mostLinks = 40;

/** Where a path leads, link by link. A link of another user would let them choose which of our files is written. */
function followed(named: string): string {
  const start = resolve(named);
  let at = parse(start).root;
  let rest = words(start);
  for (let links = 0; rest.length > 0; ) {
    const [name = '', ...others] = rest;
    const next = join(at, name);
    const found = lstatSync(next, { throwIfNoEntry: false });
    if (found?.isSymbolicLink() !== true) {
      at = next;
      rest = others;
      continue;
    }
    if (!isTrusted(found.uid)) throw new Error(`${next} is a link of another user`);
    links += 1;
    if (links > mostLinks) throw new Error(`${named} leads in a circle`);
    const target = resolve(at, readlinkSync(next));
    // The links of /proc lead to open files, which need have no name.
    if (!existsSync(target) && existsSync(next)) return join(next, ...others);
    at = parse(target).root;
    rest = [...words(target), ...others];
  }
  return at;
}

function isTrusted(uid: number): boolean {
  return uid === 0 || uid === process.geteuid?.();
}

async function pour(path: string, bytes: Uint8Array, isLink: boolean): Promise<void> {
  // Opened without waiting: where nobody reads a pipe, that is an error at once. Only links of /proc have come this far.
  const file = openSync(path, O_WRONLY | O_APPEND | O_NONBLOCK | (isLink ? 0 : O_NOFOLLOW));
  try {
    const found = fstatSync(file);
    if (!found.isFIFO() && !found.isCharacterDevice())
      throw new Error('it is not a file, a pipe or a terminal');
    if (!isTrusted(found.uid)) throw new Error('it belongs to another user');
    for (let at = 0; at < bytes.length; ) at += await written(file, bytes.subarray(at));
  } finally {
    closeSync(file);
  }
}

/** How many bytes the reader has room for. */
async function written(file: number, bytes: Uint8Array): Promise<number> {
  try {
    return writeSync(file, bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    await pause(10);
    return 0;
  }
}

/** Undefined where there is no such file, or none of this size. */
function presentAt(path: string, size: number): Uint8Array | undefined {
  try {
    const file = openRegular(path);
    try {
      return fstatSync(file).size === size ? readFileSync(file) : undefined;
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
