// A user's own store, named by the path of a module: `module:./my-store.js`. Its code runs with the rights of the process, so
// only an explicit path is taken, never the name of a package, and no file that other users of the machine can change.

import { realpathSync, type Stats, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SemelError } from '../../core/errors.ts';
import { findOtherWriters } from '../../store/files.ts';
import type { Store } from '../../store/store.ts';

export const moduleScheme = 'module:';

/** Checks the path only: the module is loaded when the store is made. */
export function storeFromModule(url: string): () => Promise<Store> {
  const path = url.slice(moduleScheme.length);
  if (!isAbsolute(path) && !/^\.\.?[\\/]/.test(path))
    throw invalid(
      'it is not the path of a file',
      'Write `module:./my-store.js` or a full path; the name of a package is not taken.',
    );
  return () => load(resolve(path));
}

async function load(path: string): Promise<Store> {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile() !== true) throw invalid(`there is no file ${path}`, 'Check the path.');
  const problem = findForeignWriters(path, found);
  if (problem !== undefined)
    throw invalid(`${problem}, and its code would run here`, 'Take that right away (chown, chmod go-w).');
  const exported = await loadDefault(path);
  const store: unknown = typeof exported === 'function' ? await exported() : exported;
  if (typeof store === 'object' && store !== null && 'claim' in store && 'settle' in store)
    return store as Store;
  throw invalid(
    `the default export of ${path} is neither a store nor a function that returns one`,
    "Write `export default () => remoteStore(backend)`, with `remoteStore` or `localStore` of 'semel/store'.",
  );
}

/** Who else can change the file, or put another one in its place. */
function findForeignWriters(path: string, found: Stats): string | undefined {
  const owner = findForeignOwner(path, found);
  if (owner !== undefined) return owner;
  const writers = findOtherWriters(found);
  if (writers !== undefined) return `${writers} can write ${path}`;
  // Both, if it is a link: where the link is, it can be laid to another file.
  for (const folder of new Set([dirname(path), dirname(realpathSync(path))])) {
    const around = statSync(folder);
    const other = findForeignOwner(folder, around);
    if (other !== undefined) return other;
    // Where it is sticky, as in /tmp, others can add files but replace none.
    const replacers = (around.mode & sticky) === 0 ? findOtherWriters(around) : undefined;
    if (replacers !== undefined) return `${replacers} can replace files in ${folder}`;
  }
  return undefined;
}

function findForeignOwner(path: string, { uid }: Stats): string | undefined {
  const user = process.geteuid?.();
  if (user === undefined || uid === user || uid === 0) return undefined;
  return `${path} belongs to another user (${uid}, this process is ${user})`;
}

const sticky = 0o1000;

/** With `require`, which loads ES modules too: the command itself is compiled in a way that has no `import()`. */
async function loadDefault(path: string): Promise<unknown> {
  try {
    const loaded = createRequire(path)(path) as { readonly default?: unknown } | undefined;
    return loaded?.default ?? loaded;
  } catch (error) {
    // Older Node.js, or a module that awaits at its top level.
    const { code } = error as { code?: unknown };
    if (code !== 'ERR_REQUIRE_ESM' && code !== 'ERR_REQUIRE_ASYNC_MODULE') throw error;
    return ((await import(pathToFileURL(path).href)) as { readonly default?: unknown }).default;
  }
}

function invalid(why: string, next: string): SemelError {
  return new SemelError('CONTRACT_INVALID', `The store cannot be used: ${why}.`, { path: 'store', next });
}
