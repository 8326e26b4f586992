// Who else of this machine can get at the records: they hold args and results.

import { chmodSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { findOtherWriters } from '../../../store/files.ts';
import type { Machine } from '../machine.ts';
import { idPath } from './identity.ts';

/**
 * Takes from others what they may do with our files, unless the ledger is shared. A sentence where that is not for us
 * to do. Only once the file is known to be a ledger: what is refused stays as it was.
 */
export function makePrivate(path: string, machine: Machine, shared: boolean): string | undefined {
  const user = machine.user();
  if (user === undefined) return undefined;
  const files = shared ? [] : [path, `${path}-wal`, `${path}-shm`, idPath(path)];
  const exposed = files.filter((file) => !isPrivate(file, user));
  const sentences = exposed.length === 0 ? [] : [exposedFiles(exposed)];
  const folder = dirname(path);
  const writers = othersIn(folder);
  if (writers === 'every user' || (writers !== undefined && !shared))
    sentences.push(openFolder(folder, writers));
  return sentences.length === 0 ? undefined : sentences.join(' ');
}

function isPrivate(file: string, user: number): boolean {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined || (found.mode & 0o077) === 0) return true;
  if (found.uid !== user) return false;
  try {
    chmodSync(file, 0o600);
    return (modeOf(file) & 0o077) === 0;
  } catch {
    // Some file systems know no modes.
    return false;
  }
}

function modeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
}

function exposedFiles(files: readonly string[]): string {
  return `Other users of this machine can read or write ${files.join(', ')}, and semel may not change that. Set the mode to 600.`;
}

function othersIn(folder: string): ReturnType<typeof findOtherWriters> {
  const found = statSync(folder, { throwIfNoEntry: false });
  return found === undefined ? undefined : findOtherWriters(found);
}

function openFolder(folder: string, writers: NonNullable<ReturnType<typeof findOtherWriters>>): string {
  const [who, mode] =
    writers === 'every user' ? ['Every user of this machine', 'o-w'] : ['Every member of its group', 'g-w'];
  return `${who} can write the folder ${folder}, and so get in the ledger's way. Take that right away (chmod ${mode}), or move the ledger.`;
}
