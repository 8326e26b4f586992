// Files and folders that other users of this machine may have touched. Opens regular files only, and trusts only what
// nobody but their owner can write.

import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  type Stats,
  statSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';

const { O_RDONLY, O_NONBLOCK } = constants;

/** Group and others may write. */
const writableByOthers = 0o022;

/**
 * Creates a folder and its parents, for this user only unless said. One by one, because Node's recursive mkdir never returns
 * where an existing folder accepts no entries, as below /proc.
 */
export function makeFolder(path: string, mode = 0o700): void {
  const missing: string[] = [];
  for (let at = path; !existsSync(at) && at !== dirname(at); at = dirname(at)) missing.push(at);
  for (const folder of missing.reverse()) {
    try {
      mkdirSync(folder, { mode });
    } catch (error) {
      // Another process was faster.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
  if (!statSync(path).isDirectory()) throw new Error(`ENOTDIR: ${path} is not a folder`);
}

/** The path itself, or its nearest existing parent. */
export function nearestExisting(path: string): string {
  let at = path;
  while (!existsSync(at) && at !== dirname(at)) at = dirname(at);
  return at;
}

/** Why a folder cannot be trusted. Undefined if only this user can write to it, or if that could be arranged. */
export function folderProblem(folder: string, user = process.geteuid?.()): string | undefined {
  const found = lstatSync(folder);
  if (!found.isDirectory()) return 'is not a folder';
  if (user === undefined) return undefined;
  if (found.uid !== user) return `belongs to another user (${found.uid}, this process is ${user})`;
  if ((found.mode & writableByOthers) === 0) return undefined;
  try {
    chmodSync(folder, 0o700);
  } catch {
    // The check below reports it.
  }
  return (lstatSync(folder).mode & writableByOthers) === 0 ? undefined : 'can be written by other users';
}

/** Only this user can have created it or can change it. */
export function isOwnedByUser({ uid, mode }: Stats, user = process.geteuid?.()): boolean {
  return user === undefined || (uid === user && (mode & writableByOthers) === 0);
}

/** Who else, besides root, can write to a folder. */
export function findOtherWriters({ mode, gid }: Stats): 'every user' | 'its group' | undefined {
  if ((mode & 0o002) !== 0) return 'every user';
  return (mode & 0o020) !== 0 && !isPrivateGroup(gid) ? 'its group' : undefined;
}

/** Opens a file to be read to its end. Reading a pipe or a device might never end. */
export function openRegular(path: string): number {
  const file = openSync(path, O_RDONLY | O_NONBLOCK);
  try {
    const found = fstatSync(file);
    if (found.isFile()) return file;
    if (found.isDirectory()) throw Object.assign(new Error(`${path} is a folder`), { code: 'EISDIR' });
    throw Object.assign(new Error(`${path} is not a regular file`), { code: 'ENOTFILE' });
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

/** Many systems give each user a private group that can write their files; that admits nobody else. */
function isPrivateGroup(gid: number): boolean {
  if (gid !== process.getegid?.()) return false;
  try {
    const { username } = userInfo();
    const [name, , , members] =
      readFileSync('/etc/group', 'utf8')
        .split('\n')
        .map((line) => line.split(':'))
        .find((entry) => entry[2] === String(gid)) ?? [];
    return name === username && (members === '' || members === username);
  } catch {
    return false;
  }
}
