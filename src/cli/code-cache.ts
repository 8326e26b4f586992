// Keeps compiled code from one start to the next. Node.js has such a cache, but fills it before the code has run: most
// functions are compiled at their first call, so every start would compile them again.

import {
  closeSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { Script } from 'node:vm';
import { isOwnedByUser, makeFolder, nearestExisting, openRegular } from '../store/files.ts';

interface CodeCache {
  /** The compiled code of this file, whose name identifies its content. Undefined: none that can be trusted. */
  find(file: string): Buffer | undefined;
  /** Registers a script in use, and the cached data that it was made from. */
  note(file: string, script: Script, cached: Buffer | undefined): void;
  /** Writes the cache at the end, when all called functions are compiled. */
  keep(): void;
}

/** After a command this long, checking for more compiled code is not noticeable. */
const longSeconds = 2;
/** Less growth is not worth writing. */
const grownBy = 1.05;

export function codeCache(): CodeCache {
  const folder = cacheFolder();
  const used: { readonly file: string; readonly script: Script; readonly size: number }[] = [];
  const pathOf = (file: string) => join(folder ?? '', `${file}-${process.version}-${process.arch}`);

  return {
    find(file) {
      if (folder === undefined) return undefined;
      try {
        return ownFile(pathOf(file));
      } catch {
        return undefined;
      }
    },
    note(file, script, cached) {
      // V8 rejects data made by another version or with other flags.
      const size = script.cachedDataRejected ? 0 : (cached?.length ?? 0);
      used.push({ file, script, size });
    },
    keep() {
      if (folder === undefined) return;
      const wasLong = process.uptime() > longSeconds;
      for (const { file, script, size } of used) {
        if (size > 0 && !wasLong) continue;
        try {
          const data = script.createCachedData();
          if (data.length > size * grownBy) replace(pathOf(file), data);
        } catch {
          // A full or read-only disk: the next start is slow again.
          return;
        }
      }
    },
  };

  function replace(path: string, data: Buffer): void {
    makeFolder(folder as string);
    const draft = `${path}.${process.pid}`;
    const written = openSync(draft, 'wx', 0o600);
    try {
      try {
        writeFileSync(written, data);
        // V8 trusts the data: after a power cut it must be there whole, or not at all.
        fsyncSync(written);
      } finally {
        closeSync(written);
      }
      renameSync(draft, path);
    } catch (error) {
      rmSync(draft, { force: true });
      throw error;
    }
  }
}

function cacheFolder(): string | undefined {
  try {
    const { XDG_CACHE_HOME: given = '' } = process.env;
    const caches = isAbsolute(given) ? given : '';
    const home = caches || homedir();
    // An empty or relative path would lead into the working directory, which may be another user's checkout.
    if (!isAbsolute(home)) return undefined;
    // `sudo` may keep HOME: nothing of root's belongs there, and nothing from there is root's to run.
    const isOurs = statSync(nearestExisting(home)).uid === (process.geteuid?.() ?? 0);
    return isOurs ? join(home, ...(caches ? [] : ['.cache']), 'semel') : undefined;
  } catch {
    // No home directory, as in some containers.
    return undefined;
  }
}

/** It is code: what another user could have written is not run. */
function ownFile(path: string): Buffer | undefined {
  const file = openRegular(path);
  try {
    return isOwnedByUser(fstatSync(file)) ? readFileSync(file) : undefined;
  } finally {
    closeSync(file);
  }
}
