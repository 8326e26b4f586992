// Where the ledger lies, and whether that place keeps what it is told. Refuses places that do not; deletes nothing.

import { accessSync, constants, existsSync, lstatSync, realpathSync, type Stats, statSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { makeFolder, nearestExisting } from '../../../store/files.ts';
import { storeError } from '../failure.ts';
import { type Machine, mounts } from '../machine.ts';
import { idPath } from './identity.ts';

/** One per user, the same from cron, shell and editor; never by working directory. */
export function defaultPath(): string {
  const { state, below } = stateHome();
  return join(state, ...below, 'semel', 'ledger.db');
}

function stateHome(): { readonly state: string; readonly below: readonly string[] } {
  const state = process.env.XDG_STATE_HOME;
  if (state !== undefined && isAbsolute(state)) return { state, below: [] };
  // An empty or relative HOME would lead into the working directory: another folder, another ledger, a second effect.
  const home = isAbsolute(homedir()) ? homedir() : userInfo().homedir;
  return { state: home, below: ['.local', 'state'] };
}

/**
 * `sudo` may keep HOME. A ledger that root makes in another user's home locks that user out, and they could swap it; one
 * that root makes elsewhere without a word knows nothing of what was done.
 */
function refuseForeignHome(user: number | undefined): void {
  const state = nearestExisting(stateHome().state);
  const { uid } = statSync(state);
  if (user === undefined || uid === user || uid === 0) return;
  throw storeError(
    'STORE_UNSAFE',
    `The default ledger of this process would lie in ${state}, which belongs to another user (${uid}, this process is ${user}).`,
    {
      next: 'Run as that user (sudo -u), use your own home (sudo -H), or name a ledger by --store or SEMEL_STORE.',
      evidence: { path: state, owner: uid, user },
    },
  );
}

export interface Place {
  readonly path: string;
  /** A sentence where this place forgets by its nature. */
  readonly forgets: string | undefined;
  /** A sentence where a new ledger would be left behind once a link points elsewhere. */
  readonly behindLink: string | undefined;
}

/** Makes the folder if it is missing, and looks at everything that can be seen without opening the file. */
export function prepare(wanted: string, machine: Machine, shared: boolean): Place {
  if (!shared && resolve(wanted) === resolve(defaultPath())) refuseForeignHome(machine.user());
  const path = madeFolder(resolve(wanted));
  const folder = dirname(path);
  const file = statSync(path, { throwIfNoEntry: false });
  if (!shared) {
    refuseOtherUsers(folder, statSync(folder), machine);
    if (file !== undefined) refuseOtherUsers(path, file, machine);
    // A journal too, though a ledger has none once it is made: SQLite would play it back into the ledger.
    for (const side of ['-wal', '-shm', '-journal', '.id']) refuseStrange(path + side, machine);
  }
  if (file !== undefined) {
    if (!file.isFile()) {
      throw storeError('STORE_UNSAFE', `${path} is ${file.isDirectory() ? 'a folder' : 'no regular file'}.`, {
        next: "Name a file for the ledger by `store: 'sqlite:…'` or SEMEL_STORE.",
        evidence: { path },
      });
    }
    refuseHardLinked(path, file);
    refuseMounted(path, machine);
  }
  refuseReadOnly(file === undefined ? folder : path, path);
  refuseReadOnly(folder, path);
  return {
    path,
    forgets: judgeFileSystem(path, folder, machine),
    behindLink: file === undefined || file.size === 0 ? newBehindLink(resolve(wanted), path) : undefined,
  };
}

/** SQLite names its side files after the real file, so that is what all processes must agree on. */
function madeFolder(path: string): string {
  try {
    makeFolder(dirname(path));
    return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path));
  } catch (cause) {
    throw storeError('STORE_UNSAFE', `The folder of the ledger ${path} cannot be made (${message(cause)}).`, {
      next: "Make it for this user, or name another place by `store: 'sqlite:…'` or SEMEL_STORE.",
      evidence: { path },
      cause,
    });
  }
}

/** Files of two users in one ledger end with one of them locked out; and whoever owns the folder can swap the file. */
function refuseOtherUsers(what: string, { uid }: Stats, machine: Machine): void {
  const user = machine.user();
  if (user === undefined || uid === user || uid === 0) return;
  throw storeError('STORE_UNSAFE', `${what} belongs to another user (${uid}, this process is ${user}).`, {
    next: "Run as that user, name another place by `store: 'sqlite:…'` or SEMEL_STORE, or accept it with `shared: true`.",
    evidence: { path: what, owner: uid, user },
  });
}

/** Laid there by others before there was a ledger, SQLite would write through it, or wait for it. */
function refuseStrange(side: string, machine: Machine): void {
  const found = lstatSync(side, { throwIfNoEntry: false });
  if (found === undefined) return;
  refuseOtherUsers(side, found, machine);
  if (found.isFile()) return;
  throw storeError('STORE_UNSAFE', `${side} is not a regular file.`, {
    next: 'Find out what has put it there, and remove it.',
    evidence: { path: side },
  });
}

/** Under each of its names SQLite would keep a log of its own, and none would know what is in the others. */
function refuseHardLinked(path: string, { nlink }: Stats): void {
  if (nlink <= 1) return;
  throw storeError('STORE_UNSAFE', `The ledger ${path} has ${nlink} names (hard links).`, {
    next: 'Under each name it would have a log of its own. Remove the other names (`find -samefile` shows them), or make them symbolic links.',
    evidence: { path, links: nlink },
  });
}

/** A file that is mounted by itself lies in a folder that others do not see, and with it a log that they do not see. */
function refuseMounted(path: string, machine: Machine): void {
  const points = machine.mountPoints();
  const mounted = [path, `${path}-wal`, `${path}-shm`, idPath(path)].find((file) => points?.includes(file));
  if (mounted === undefined) return;
  throw storeError('STORE_UNSAFE', `${mounted} is mounted as a single file, as into a container.`, {
    next: `Its log would lie outside of it, where no other container sees it. Mount the folder ${dirname(path)} instead.`,
    evidence: { path, mounted },
  });
}

/** Links of the system (/tmp, /var/run) stand still; those of a deployment (`current`) are pointed elsewhere. */
function newBehindLink(wanted: string, path: string): string | undefined {
  for (let name = dirname(wanted); dirname(name) !== dirname(dirname(name)); name = dirname(name)) {
    if (!lstatSync(name, { throwIfNoEntry: false })?.isSymbolicLink()) continue;
    return `The new ledger ${path} is reached through the link ${name}: once that points elsewhere, programs find no records there and do everything again. Keep the ledger at a place of its own.`;
  }
  return undefined;
}

function refuseReadOnly(what: string, path: string): void {
  try {
    accessSync(what, constants.R_OK | constants.W_OK);
  } catch (cause) {
    throw storeError('STORE_UNSAFE', `This user may not write ${what} (${message(cause)}).`, {
      next: "Give this user the right to, or name another place by `store: 'sqlite:…'` or SEMEL_STORE.",
      evidence: { path },
      cause,
    });
  }
}

const networks: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4283649346: 'CIFS',
  4266872130: 'SMB2',
  16914839: '9P',
  1397113167: 'AFS',
  1799439955: 'AFS',
  1937076805: 'Coda',
  12805120: 'Ceph',
  198183888: 'Lustre',
  1196443219: 'GPFS',
  18225520: 'GFS2',
  1952539503: 'OCFS2',
  428016422: 'BeeGFS',
  3133910204: 'VMware shared folders',
  2020557398: 'VirtualBox shared folders',
};

const fuse = 0x65735546;
const memories: Readonly<Record<number, string>> = { 16914836: 'tmpfs', 2240043254: 'ramfs' };
const overlay = 0x794c7630;

function judgeFileSystem(path: string, folder: string, machine: Machine): string | undefined {
  const type = machine.fileSystem(existsSync(path) ? path : folder);
  if (type === undefined) return undefined;
  const network = networks[type] ?? (type === fuse && !isLocalFuse(folder) ? 'FUSE' : undefined);
  if (network !== undefined) {
    throw storeError('STORE_UNSAFE', `The ledger ${path} would lie on a network file system (${network}).`, {
      next: "SQLite cannot lock and share memory there: name a place on a local disk by `store: 'sqlite:…'` or SEMEL_STORE, or use a server store.",
      evidence: { path, fileSystem: network },
    });
  }
  if (memories[type] !== undefined) {
    return `The ledger ${path} is on ${memories[type]}: it forgets everything when the machine is started again. Keep it on a disk.`;
  }
  if (type === overlay) {
    return `The ledger ${path} is on a container's own file system: it forgets everything when the container is replaced. Keep it on a volume.`;
  }
  return undefined;
}

/** A local disk that is driven from user space (ntfs-3g, exfat) is called fuseblk; sshfs, s3fs and their like are not. */
function isLocalFuse(folder: string): boolean {
  const above = (mounts() ?? []).filter(
    ({ point }) => folder === point || folder.startsWith(point === '/' ? '/' : `${point}/`),
  );
  return above.sort((a, b) => b.point.length - a.point.length)[0]?.type === 'fuseblk';
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
