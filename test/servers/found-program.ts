// Programs that npm does not have: the one on the PATH, else unpacked from the packages of Debian, which needs no
// root and installs nothing; else a line on the console, and none.

import { execFile } from 'node:child_process';
import { accessSync, constants, globSync, mkdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { madeOnce } from './made-once.ts';

export interface FoundProgram {
  readonly file: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface WantedProgram {
  readonly name: string;
  /** With the libraries it needs, as far as a small system may lack them. */
  readonly packages: readonly string[];
}

const run = promisify(execFile);
const found = new Map<string, Promise<FoundProgram | undefined>>();

export function findProgram(wanted: WantedProgram): Promise<FoundProgram | undefined> {
  const known = found.get(wanted.name);
  if (known !== undefined) return known;
  const looking = look(wanted);
  found.set(wanted.name, looking);
  return looking;
}

async function look({ name, packages }: WantedProgram): Promise<FoundProgram | undefined> {
  const places = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin'];
  const file = places.map((folder) => join(folder, name)).find(isExecutable);
  const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC' };
  if (file !== undefined) return { file, env };
  try {
    const folder = await madeOnce(`${name}-unpacked`, (made) => unpack(name, packages, made));
    const unpacked = globSync(join(folder, 'usr/{bin,sbin}', name))[0] as string;
    return { file: unpacked, env: { ...env, LD_LIBRARY_PATH: librariesIn(folder) } };
  } catch (error) {
    const reason = (error as Error).message.split('\n')[0];
    console.log(`skipped: ${name} is neither on the PATH nor to be had by apt-get download: ${reason}`);
    return undefined;
  }
}

async function unpack(name: string, packages: readonly string[], folder: string): Promise<void> {
  const downloads = join(folder, 'downloads');
  mkdirSync(downloads);
  // Root's downloads run as a user who could not write here.
  const asSelf = ['-o', 'APT::Sandbox::User=root'];
  await run('apt-get', ['-q', ...asSelf, 'download', ...packages], { cwd: downloads, timeout: 60_000 });
  for (const file of globSync(join(downloads, '*.deb'))) await run('dpkg', ['-x', file, folder]);
  const env = { ...process.env, LD_LIBRARY_PATH: librariesIn(folder) };
  // A library that is missing shows here, and not in the middle of a test.
  await run(globSync(join(folder, 'usr/{bin,sbin}', name))[0] ?? name, ['--version'], { env });
}

function librariesIn(folder: string): string {
  return globSync(join(folder, 'usr/lib/*-linux-*')).join(':');
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
