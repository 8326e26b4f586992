// A file that is there whole or not at all: written beside its place, flushed to the disk, then renamed.

import { createHash, randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { SemelError } from '../core/errors.ts';
import { bytesOf, type EffectValue } from '../jobs/index.ts';

export function outputOf(value: EffectValue): Uint8Array | undefined {
  const stdout = typeof value === 'string' ? value : value?.stdout;
  return stdout === undefined ? undefined : bytesOf(stdout);
}

export async function writeFile(path: string, bytes: Uint8Array): Promise<void> {
  const beside = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`);
  try {
    const file = await open(beside, 'wx', 0o666);
    try {
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
