// Finds the application's folder and name from the package.json of its own code, never from a launcher's (next, vitest, pm2).
// The working folder counts only for a launcher: cron and a shell must agree.

import { closeSync, lstatSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path';
import { SemelError } from '../../core/errors.ts';
import { openRegular } from '../../store/files.ts';

interface Application {
  readonly name: string | undefined;
  /** Its folder; undefined where there is no program: a REPL, `node -e`. */
  readonly root: string | undefined;
}

interface Process {
  /** The file that Node.js was started with. */
  readonly started: string | undefined;
  readonly cwd: string;
  /** The path as the shell shows it, including symbolic links that a deployment re-points. */
  readonly shellCwd: string | undefined;
  /** Where this code of semel is; a bundler may have taken that away. */
  readonly installed: string | undefined;
}

export function findApplication({ started, cwd, shellCwd, installed }: Process): Application {
  const home = findHome(installed);
  const here = shellCwd !== undefined && realPath(shellCwd) === realPath(cwd) ? shellCwd : cwd;
  // A REPL, `node -e`, standard input, a worker that was given its text.
  if (started === undefined || !isAbsolute(started)) return launchedFrom(home ?? realPath(cwd));
  const entry = realPath(join(realPath(dirname(started)), basename(started)));
  const own = findManifest(dirname(entry));
  // One that is elsewhere (installed globally, or by a platform) is known by semel, which is installed for the application.
  const launcher = home !== undefined && !isInside(entry, home) ? home : modulesOwner(entry);
  // An installed program that uses semel itself is an application too.
  if (launcher !== undefined && own?.usesSemel !== true) return launchedFrom(launcher);
  return asStarted(own, dirname(started)) ?? { name: undefined, root: dirname(started) };

  /** A launcher works for the folder that it was started in, where that belongs to what it is installed for. */
  function launchedFrom(from: string): Application {
    const found = isInside(realPath(cwd), from) ? findManifest(realPath(cwd)) : findManifest(from);
    return asStarted(found ?? findManifest(realPath(cwd)), here) ?? { name: undefined, root: undefined };
  }
}

/** The folder that semel is installed for; undefined where it is not installed, or for no named package. */
function findHome(installed: string | undefined): string | undefined {
  const home = installed === undefined ? undefined : modulesOwner(realPath(installed));
  return home !== undefined && manifestIn(home)?.name !== undefined ? home : undefined;
}

/** Whose node_modules hold it. */
function modulesOwner(path: string): string | undefined {
  const parts = path.split(sep);
  const at = parts.indexOf('node_modules');
  return at < 0 ? undefined : parts.slice(0, at).join(sep) || sep;
}

interface Manifest extends Application {
  readonly root: string;
  readonly usesSemel: boolean;
}

/** The nearest package.json with a name: builds leave some without one beside their output. Else the nearest at all. */
function findManifest(folder: string): Manifest | undefined {
  let nearest: Manifest | undefined;
  for (let at = folder; ; at = dirname(at)) {
    const found = manifestIn(at);
    if (found?.name !== undefined) return found;
    nearest ??= found;
    if (at === dirname(at)) return nearest;
  }
}

function manifestIn(root: string): Manifest | undefined {
  const path = join(root, 'package.json');
  let read: string;
  try {
    if (belongsToStranger(path)) return undefined;
    const file = openRegular(path);
    try {
      read = readFileSync(file, 'utf8');
    } finally {
      closeSync(file);
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EISDIR') return undefined;
    throw unreadable(path, error);
  }
  let fields: Readonly<Record<string, unknown>>;
  try {
    fields = Object(JSON.parse(read));
  } catch (error) {
    throw unreadable(path, error);
  }
  const { name } = fields;
  const lists = [fields.dependencies, fields.optionalDependencies, fields.peerDependencies];
  return {
    root,
    name: typeof name === 'string' && name !== '' ? name : undefined,
    usesSemel: lists.some((list) => Object.hasOwn(Object(list), 'semel')),
  };
}

/** In a folder like /tmp anybody can put one above the programs of others, and would choose their namespace. */
function belongsToStranger(path: string): boolean {
  const user = process.geteuid?.();
  const { uid } = lstatSync(path);
  if (user === undefined || uid === 0 || uid === user) return false;
  const isOpenToAll = (statSync(dirname(path)).mode & 0o002) !== 0;
  return isOpenToAll && uid !== fileOwner(process.argv[1]);
}

function fileOwner(file: string | undefined): number | undefined {
  return file === undefined ? undefined : statSync(file, { throwIfNoEntry: false })?.uid;
}

/** With another namespace every effect would run again: that must not hang on a file that is just being written. */
function unreadable(path: string, cause: unknown): SemelError {
  const why = (cause as Error).message;
  return new SemelError('CONTRACT_INVALID', `${path}, which names the namespace, cannot be read (${why}).`, {
    path: 'namespace',
    next: "Fix it, or write createSemel({ namespace: '…' }).",
    cause,
  });
}

/** As the program was started: `/srv/app/current` stays the same from one release to the next. */
function asStarted(found: Manifest | undefined, from: string): Application | undefined {
  if (found === undefined) return undefined;
  for (let at = from; ; at = dirname(at)) {
    if (realPath(at) === found.root) return { name: found.name, root: at };
    if (at === dirname(at)) return { name: found.name, root: found.root };
  }
}

export function isSameFolder(one: string, other: string): boolean {
  return one === other || realPath(one) === realPath(other);
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return !way.startsWith('..') && !isAbsolute(way);
}

/** As it is where it does not exist. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
