// Keeps other users of this machine away from the records, which hold args and results.

import { chmodSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { findOtherWriters } from '../../../store/files.ts';
import type { Machine } from '../machine.ts';
import { idPath } from './identity.ts';

/**
 * Removes other users' access to our files, unless the ledger is shared; returns a sentence if we may not. Call only once
 * the file is known to be a ledger: a refused file stays as it was.
 */
export function makePrivate(path: string, machine: Machine, shared: boolean): string | undefined {
  const user = machine.user();
  if (user === undefined) return undefined;
  const files = shared ? [] : [path, `${path}-wal`, `${path}-shm`, idPath(path)];
  const exposed = files.filter((file) => !isPrivate(file, user));
  const sentences = exposed.length === 0 ? [] : [describeExposedFiles(exposed)];
  const folder = dirname(path);
  const writers = findFolderWriters(folder);
  if (writers === 'every user' || (writers !== undefined && !shared))
    sentences.push(describeOpenFolder(folder, writers));
  return sentences.length === 0 ? undefined : sentences.join(' ');
}

function isPrivate(file: string, user: number): boolean {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined || (found.mode & 0o077) === 0) return true;
  if (found.uid !== user) return false;
  try {
    chmodSync(file, 0o600);
    return (readMode(file) & 0o077) === 0;
  } catch {
    // Some file systems have no modes.
    return false;
  }
}

function readMode(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
}

function describeExposedFiles(files: readonly string[]): string {
  return `Other users of this machine can read or write ${files.join(', ')}, and semel cannot change that. Set the mode to 600.`;
}

function findFolderWriters(folder: string): ReturnType<typeof findOtherWriters> {
  const found = statSync(folder, { throwIfNoEntry: false });
  return found === undefined ? undefined : findOtherWriters(found);
}

function describeOpenFolder(
  folder: string,
  writers: NonNullable<ReturnType<typeof findOtherWriters>>,
): string {
  const [who, mode] =
    writers === 'every user' ? ['Every user of this machine', 'o-w'] : ['Every member of its group', 'g-w'];
  return `${who} can write the folder ${folder}, and so replace the ledger. Remove that permission (chmod ${mode}), or move the ledger.`;
}
