// What lies on the disk, before anything is opened: opening mends and tidies.

import { closeSync, readSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { openRegular } from '../../../store/files.ts';
import type { FilesSeen } from './seen.ts';

export function filesAt(path: string): FilesSeen {
  return {
    path,
    logBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
    freeBytes: freeAt(dirname(path)),
    journal: journalOf(path),
  };
}

function freeAt(folder: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}

/** Byte 18 of an SQLite file. */
function journalOf(path: string): FilesSeen['journal'] {
  const header = Buffer.alloc(20);
  try {
    const file = openRegular(path);
    try {
      if (readSync(file, header) < header.length) return undefined;
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
  return header[18] === 2 ? 'wal' : header[18] === 1 ? 'rollback' : undefined;
}
