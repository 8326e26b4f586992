// Where the ledger is stored, and whether that place is safe. Refuses places that are not; deletes nothing.

import { accessSync, constants, existsSync, lstatSync, realpathSync, type Stats, statSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { findOtherWriters, makeFolder, nearestExisting } from '../../../store/files.ts';
import { storeError } from '../failure.ts';
import { type Machine, mounts } from '../machine.ts';
import { idPath } from './identity.ts';

/** One per user: the same from cron, shell and editor, whatever the working directory. */
export function defaultPath(): string {
  const { state, below } = stateHome();
  return join(state, ...below, 'semel', 'ledger.db');
}

function stateHome(): { readonly state: string; readonly below: readonly string[] } {
  const state = process.env.XDG_STATE_HOME;
  if (state !== undefined && isAbsolute(state)) return { state, below: [] };
  // An empty or relative HOME would make the ledger depend on the working directory, and effects would run twice.
  const home = isAbsolute(homedir()) ? homedir() : userInfo().homedir;
  return { state: home, below: ['.local', 'state'] };
}

/**
 * `sudo` may keep HOME. A ledger that root creates in another user's home locks that user out, and that user could swap
 * it. Silently using another place would miss what was already done.
 */
function refuseForeignHome(user: number | undefined): void {
  const state = nearestExisting(stateHome().state);
  const { uid } = statSync(state);
  if (user === undefined || uid === user || uid === 0) return;
  throw storeError(
    'STORE_UNSAFE',
    `The default ledger of this process would be in ${state}, which belongs to another user (${uid}, this process is ${user}).`,
    {
      next: 'Run as that user (sudo -u), use your own home (sudo -H), or choose a ledger with --store or SEMEL_STORE.',
      evidence: { path: state, owner: uid, user },
    },
  );
}

interface Place {
  readonly path: string;
  /** No other kernel can have it mounted. */
  readonly isLocal: boolean;
  /** A sentence if this place is not permanent. */
  readonly forgets: string | undefined;
  /** A sentence if a new ledger would be left behind once a link points elsewhere. */
  readonly behindLink: string | undefined;
}

/** Creates the folder if needed, and checks everything that does not require opening the file. */
export function preparePlace(wanted: string, machine: Machine, shared: boolean): Place {
  if (!shared && resolve(wanted) === resolve(defaultPath())) refuseForeignHome(machine.user());
  const path = resolveFile(resolve(wanted));
  const folder = dirname(path);
  const file = statSync(path, { throwIfNoEntry: false });
  if (!shared) {
    refuseOtherUsers(folder, statSync(folder), machine);
    if (file !== undefined) refuseOtherUsers(path, file, machine);
    // Ledgers have no journal, but SQLite would replay one into the ledger.
    for (const side of ['-wal', '-shm', '-journal', '.id']) refuseStrange(path + side, machine);
  }
  if (file !== undefined) {
    if (!file.isFile()) {
      throw storeError(
        'STORE_UNSAFE',
        `${path} is ${file.isDirectory() ? 'a folder' : 'not a regular file'}.`,
        {
          next: "Choose a file for the ledger with `store: 'sqlite:…'` or SEMEL_STORE.",
          evidence: { path },
        },
      );
    }
    refuseHardLinked(path, file);
    refuseMounted(path, machine);
  }
  if (!shared) refuseOpenFolder(path, statSync(folder), machine);
  refuseReadOnly(file === undefined ? folder : path, path);
  refuseReadOnly(folder, path);
  return {
    path,
    isLocal: isLocalFileSystem(path, machine),
    forgets: checkFileSystem(path, folder, machine),
    behindLink: file === undefined || file.size === 0 ? warnBehindLink(resolve(wanted), path) : undefined,
  };
}

/** SQLite names its side files after the real file, so all processes must use the real path. */
function resolveFile(path: string): string {
  try {
    makeFolder(dirname(path));
    return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path));
  } catch (cause) {
    throw storeError(
      'STORE_UNSAFE',
      `The folder of the ledger ${path} cannot be created (${message(cause)}).`,
      {
        next: "Create it for this user, or choose another place with `store: 'sqlite:…'` or SEMEL_STORE.",
        evidence: { path },
        cause,
      },
    );
  }
}

/** If two users own files of one ledger, one of them gets locked out; and the folder's owner can swap the file. */
function refuseOtherUsers(what: string, { uid }: Stats, machine: Machine): void {
  const user = machine.user();
  if (user === undefined || uid === user || uid === 0) return;
  throw storeError('STORE_UNSAFE', `${what} belongs to another user (${uid}, this process is ${user}).`, {
    next: "Run as that user, choose another place with `store: 'sqlite:…'` or SEMEL_STORE, or accept it with `shared: true`.",
    evidence: { path: what, owner: uid, user },
  });
}

/**
 * Between our look at the side files and SQLite's own, anybody could put a log there, which SQLite would replay into the
 * ledger. A sticky folder (/tmp) does not prevent that.
 */
function refuseOpenFolder(path: string, folder: Stats, machine: Machine): void {
  if (machine.user() === undefined || findOtherWriters(folder) !== 'every user') return;
  const own = join(dirname(path), 'semel', basename(path));
  throw storeError(
    'STORE_UNSAFE',
    `Every user of this machine can write the folder ${dirname(path)}, and so change the ledger ${path}.`,
    {
      next: `Put it into a folder of its own, as in ${own}, remove that permission (chmod o-w), or accept it with \`shared: true\`.`,
      evidence: { path, mode: (folder.mode & 0o7777).toString(8) },
    },
  );
}

/** SQLite would write through a link, or block on a pipe, that somebody put there before the ledger existed. */
function refuseStrange(side: string, machine: Machine): void {
  const found = lstatSync(side, { throwIfNoEntry: false });
  if (found === undefined) return;
  refuseOtherUsers(side, found, machine);
  if (found.isFile()) return;
  throw storeError('STORE_UNSAFE', `${side} is not a regular file.`, {
    next: 'Find out what put it there, and remove it.',
    evidence: { path: side },
  });
}

/** SQLite would keep a separate log under each name, and none would see what is in the others. */
function refuseHardLinked(path: string, { nlink }: Stats): void {
  if (nlink <= 1) return;
  throw storeError('STORE_UNSAFE', `The ledger ${path} has ${nlink} names (hard links).`, {
    next: 'It would have a separate log under each name. Remove the other names (`find -samefile` shows them), or make them symbolic links.',
    evidence: { path, links: nlink },
  });
}

/** The log of a file that is mounted by itself ends up in a folder that others do not see. */
function refuseMounted(path: string, machine: Machine): void {
  const points = machine.mountPoints();
  const mounted = [path, `${path}-wal`, `${path}-shm`, idPath(path)].find((file) => points?.includes(file));
  if (mounted === undefined) return;
  throw storeError('STORE_UNSAFE', `${mounted} is mounted as a single file, probably into a container.`, {
    next: `Its log would be outside the mount, where no other container sees it. Mount the folder ${dirname(path)} instead.`,
    evidence: { path, mounted },
  });
}

/** Ignores links of the system (/tmp, /var/run), which never change. A deployment's link (`current`) does. */
function warnBehindLink(wanted: string, path: string): string | undefined {
  for (let name = dirname(wanted); dirname(name) !== dirname(dirname(name)); name = dirname(name)) {
    if (!lstatSync(name, { throwIfNoEntry: false })?.isSymbolicLink()) continue;
    return `The new ledger ${path} is reached through the link ${name}: once that points elsewhere, programs find no records there and repeat everything. Keep the ledger in a place of its own.`;
  }
  return undefined;
}

function refuseReadOnly(what: string, path: string): void {
  try {
    accessSync(what, constants.R_OK | constants.W_OK);
  } catch (cause) {
    throw storeError('STORE_UNSAFE', `This user cannot write ${what} (${message(cause)}).`, {
      next: "Give this user write access, or choose another place with `store: 'sqlite:…'` or SEMEL_STORE.",
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

function checkFileSystem(path: string, folder: string, machine: Machine): string | undefined {
  const type = machine.fileSystem(existsSync(path) ? path : folder);
  if (type === undefined) return undefined;
  const network = networks[type] ?? (type === fuse && !isLocalFuse(folder) ? 'FUSE' : undefined);
  if (network !== undefined) {
    throw storeError('STORE_UNSAFE', `The ledger ${path} would be on a network file system (${network}).`, {
      next: "SQLite cannot lock and share memory there. Choose a place on a local disk with `store: 'sqlite:…'` or SEMEL_STORE, or use Postgres or Redis.",
      evidence: { path, fileSystem: network },
    });
  }
  if (memories[type] !== undefined) {
    return `The ledger ${path} is on ${memories[type]}: it is lost when the machine restarts. Keep it on a disk.`;
  }
  if (type === overlay) {
    return `The ledger ${path} is on a container's own file system: it is lost when the container is replaced. Keep it on a volume.`;
  }
  return undefined;
}

/** File systems that only one kernel at a time can have mounted. What is not listed may be shared with other machines. */
const ofOneKernel: ReadonlySet<number> = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // XFS
  0x9123683e, // Btrfs
  0x2fc12fc1, // ZFS
  0xf2f52010, // F2FS
  0xca451a4e, // bcachefs
  overlay,
  ...Object.keys(memories).map(Number),
]);

function isLocalFileSystem(path: string, machine: Machine): boolean {
  const type = machine.fileSystem(existsSync(path) ? path : dirname(path));
  return type !== undefined && ofOneKernel.has(type);
}

/** Local disks mounted through FUSE (ntfs-3g, exfat) have the type fuseblk; sshfs, s3fs and the like do not. */
function isLocalFuse(folder: string): boolean {
  const above = (mounts() ?? []).filter(
    ({ point }) => folder === point || folder.startsWith(point === '/' ? '/' : `${point}/`),
  );
  return above.sort((a, b) => b.point.length - a.point.length)[0]?.type === 'fuseblk';
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
