// The tokens of `semel serve` on this machine: one in a file that only its owner can read, made at the first start; others in a
// file of digests.

import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { SemelError } from '../../../core/errors.ts';
import { digestToken, makeToken, type Role, readTokenFile, type TokenEntry } from '../../../server/index.ts';
import { isOwnedByUser, makeFolder, openRegular } from '../../../store/files.ts';
import { defaultPath } from '../../../stores/sqlite/index.ts';

/** An agent's programs get one that can decide nothing. */
export function localTokenPath(role: Role): string {
  return join(dirname(defaultPath()), role === 'admin' ? 'serve.token' : `serve.${role}.token`);
}

export interface LocalToken {
  readonly token: string;
  readonly isNew: boolean;
}

/** `make` gives the first one. */
export function localToken(path: string, make: () => string = makeToken): LocalToken {
  const found = readOwn(path)?.trim();
  if (found !== undefined) {
    if (found.length >= minTokenLength) return { token: found, isNew: false };
    throw new SemelError('INVALID_ARGS', `${path} holds no token, or a short one.`, {
      next: 'Delete it: the next start writes a new one.',
    });
  }
  const token = make();
  makeFolder(dirname(path));
  const next = `${path}.${process.pid}`;
  try {
    rmSync(next, { force: true });
    writeOwn(next, `${token}\n`, 'wx');
    // With its content or not at all: a server that starts at the same time reads it.
    linkSync(next, path);
    return { token, isNew: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    // Another server made it at the same time.
    return localToken(path, make);
  } finally {
    rmSync(next, { force: true });
  }
}

/** A token that can be guessed is none. */
export const minTokenLength = 32;

/** Adds an entry, and replaces the file as a whole. */
export function addToken(path: string, entry: Omit<TokenEntry, 'sha256'>): string {
  const text = readOwn(path);
  const entries = text === undefined ? [] : readTokenFile(text, path);
  if (entries.some(({ name }) => name === entry.name))
    throw new SemelError('INVALID_ARGS', `${path} has a token ${entry.name} already.`, {
      path: 'name',
      next: 'Choose another name, or remove its entry.',
    });
  const token = makeToken();
  const tokens = [...entries, { ...entry, sha256: digestToken(token) }];
  const next = `${path}.${process.pid}`;
  try {
    writeOwn(next, `${JSON.stringify({ version: 1, tokens }, null, 2)}\n`, 'wx');
    renameSync(next, path);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
  return token;
}

export function readTokens(path: string): readonly TokenEntry[] {
  const text = readOwn(path);
  if (text !== undefined) return readTokenFile(text, path);
  throw new SemelError('INVALID_ARGS', `There is no ${path}.`, {
    path: 'tokens',
    next: `Create it: semel serve token --tokens ${path} --name ci`,
  });
}

/** Undefined if there is none. Refuses a file that others could have written or can read. */
export function readOwn(path: string): string | undefined {
  let file: number;
  try {
    file = openRegular(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const stats = fstatSync(file);
    if (!isOwnedByUser(stats) || (stats.mode & 0o077) !== 0)
      throw new SemelError('NOT_PERMITTED', `${path} belongs to another user, or others may open it.`, {
        next: `Make it yours alone: chmod 600 ${path}`,
      });
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

function writeOwn(path: string, text: string, flags: string): void {
  const file = openSync(path, flags, 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
