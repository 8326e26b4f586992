// A file that a run produces: written beside its place, flushed, recorded by its hash, then renamed. The ledger has
// the name of the file beside it too, so that an attempt after a crash finds it again. Neither reads from nor writes to a pipe or a device.

import { createHash } from 'node:crypto';
import { closeSync, createReadStream, fstatSync } from 'node:fs';
import { open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { AttemptContext } from '../../call/index.ts';
import { SemelError } from '../../core/errors.ts';
import { shortDigest } from '../../core/key/key.ts';
import { makeFolder, openRegular } from '../../store/files.ts';
import type { RunContext } from '../context.ts';

export interface Artifact {
  readonly path: string;
  readonly sha256: string;
  readonly bytes: number;
}

export interface ArtifactOptions {
  /** The file may be produced again if it is missing or changed. @default false: that is an error */
  readonly repeatable?: boolean;
}

type Content = string | Uint8Array | AsyncIterable<string | Uint8Array>;

export type Produce = () => Content | Promise<Content>;

/** What is known before the rename: the hash is in the ledger by then. */
interface Written {
  readonly sha256: string;
  readonly bytes: number;
  /** The name of the file beside its place. */
  readonly part: string;
}

type Attempt = Pick<AttemptContext, 'fence' | 'attempt'>;

/** Each attempt has a file of its own beside the place: one that was taken over may still be writing. */
export function artifactParts(named: string, run: RunContext, produce: Produce) {
  const path = resolve(/[\\/]$/.test(named) ? join(named, nameFor(run, named)) : named);
  const folder = dirname(path);
  const stem = `.${basename(path)}.${shortDigest('artifact', run.text, named)}.`;
  const prepare = async ({ fence }: Attempt): Promise<Written> => {
    // Refused before anything is produced.
    const present = openPresent(path);
    if (present !== undefined) closeSync(present);
    const part = `${stem}${fence}.part`;
    return { ...(await write(join(folder, part), await produce())), part };
  };
  return {
    path,
    prepare,
    async run(prepared: unknown, attempt: Attempt): Promise<Artifact> {
      let written = prepared as Written;
      if (!(await isAt(path, written))) {
        // Both are gone, and nobody has seen the file: it is produced again.
        if (!(await isAt(join(folder, written.part), written))) written = await prepare(attempt);
        await rename(join(folder, written.part), path);
        const opened = await open(folder, 'r');
        await opened.sync().finally(() => opened.close());
      }
      if (attempt.attempt > 1) await removeLeftovers(folder, stem, attempt);
      const { sha256, bytes } = written;
      return { path, sha256, bytes };
    },
  };
}

/** What attempts that were taken over left behind. */
async function removeLeftovers(folder: string, stem: string, { fence }: Attempt): Promise<void> {
  for (const name of await readdir(folder)) {
    const isPart = name.startsWith(stem) && name.endsWith('.part');
    if (isPart && Number(name.slice(stem.length, -'.part'.length)) < fence)
      await rm(join(folder, name), { force: true });
  }
}

/** Undefined if the file is as it was left. */
export async function findProblem(
  path: string,
  written: Artifact,
): Promise<'missing' | 'changed' | undefined> {
  try {
    return await compare(path, written);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTFILE') return 'changed';
    throw error;
  }
}

function nameFor({ text, id: { job, slot } }: RunContext, folder: string): string {
  const readable = `${job}-${slot}`.replace(/[^A-Za-z0-9._-]+/g, '-');
  return `${readable}-${shortDigest('artifact', text, folder)}`;
}

async function isAt(path: string, written: Pick<Written, 'sha256' | 'bytes'>): Promise<boolean> {
  return (await compare(path, written)) === undefined;
}

async function write(path: string, content: Content): Promise<Omit<Written, 'part'>> {
  makeFolder(dirname(path), 0o777);
  const hash = createHash('sha256');
  let bytes = 0;
  // A new file: never one that an earlier attempt left, nor a link or pipe that somebody else put there.
  await rm(path, { force: true });
  const file = await open(path, 'wx', 0o666);
  try {
    const parts = typeof content === 'string' || content instanceof Uint8Array ? [content] : content;
    for await (const part of parts) {
      const chunk = typeof part === 'string' ? Buffer.from(part) : part;
      hash.update(chunk);
      bytes += chunk.length;
      await file.writeFile(chunk);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return { sha256: hash.digest('hex'), bytes };
}

/** Undefined if it is the same. Reads no more than was written: another user may have put a file there that does not end. */
async function compare(
  path: string,
  { sha256, bytes }: Pick<Written, 'sha256' | 'bytes'>,
): Promise<'missing' | 'changed' | undefined> {
  const fd = openPresent(path);
  if (fd === undefined) return 'missing';
  if (fstatSync(fd).size !== bytes) {
    closeSync(fd);
    return 'changed';
  }
  const hash = createHash('sha256');
  // HTTP cannot express an empty range: for an empty file, one byte is requested.
  const range = { start: 0, end: Math.max(0, bytes - 1) };
  await pipeline(createReadStream(path, { fd, ...range }), async (parts: AsyncIterable<Buffer>) => {
    for await (const part of parts) hash.update(part);
  });
  return hash.digest('hex') === sha256 ? undefined : 'changed';
}

function openPresent(path: string): number | undefined {
  try {
    return openRegular(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

export function lostArtifact(
  label: string,
  path: string,
  { sha256 }: Artifact,
  problem: 'missing' | 'changed',
): SemelError {
  return new SemelError(
    'RESULT_OMITTED',
    `${label}: ${path} was produced by an earlier attempt (sha256 ${sha256}) and is ${problem} now.`,
    {
      path: 'path',
      next: 'Restore the file; or pass { repeatable: true } if it may be produced again.',
      evidence: { path, sha256, problem },
    },
  );
}
