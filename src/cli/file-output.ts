// A file that is there whole or not at all: written beside its place, flushed to the disk, then renamed.

import { createHash, randomBytes } from 'node:crypto';
import { appendFile, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { SemelError } from '../core/errors.ts';
import { bytesOf, type EffectValue } from '../jobs/index.ts';

export function outputOf(value: EffectValue): Uint8Array | undefined {
  const stdout = typeof value === 'string' ? value : value?.stdout;
  return stdout === undefined ? undefined : bytesOf(stdout);
}

export async function writeFile(named: string, bytes: Uint8Array): Promise<void> {
  // What a link leads to is meant, not the link.
  const path = await realpath(named).catch(() => named);
  const before = await stat(path).catch(() => undefined);
  // A device or a pipe is written to; it cannot be replaced.
  if (before !== undefined && !before.isFile() && !before.isDirectory()) return appendFile(path, bytes);
  const beside = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`);
  try {
    const file = await open(beside, 'wx', 0o666);
    try {
      if (before !== undefined) await file.chmod(before.mode & 0o7777);
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
    throw new SemelError('INVALID_ARGS', `${path} could not be written (${(error as Error).message}).`, {
      next: 'The step is done and its output is kept: call it again with a file that can be written.',
    });
  }
}

/** The file as the step left it: kept if it is the same, else restored. Tells what it did. */
export async function keepFile(path: string, bytes: Uint8Array | undefined): Promise<string> {
  if (bytes === undefined) return `its output is not in the ledger; ${path} is left as it is`;
  const present = await readFile(path).catch(() => undefined);
  if (present !== undefined && digest(present) === digest(bytes)) return `${path} is as it left it`;
  await writeFile(path, bytes);
  return `${path} is restored`;
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
