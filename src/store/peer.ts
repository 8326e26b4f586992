// A database driver that the user installs, if they need it: beside semel, or in the project of the working folder, where
// the command is called from.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SemelError } from '../core/errors.ts';

/** Not a literal at the caller either, so that nobody's bundler asks for a package that is optional. */
export async function loadPeer(name: string): Promise<unknown> {
  try {
    return await import(name);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  const path = resolved(name);
  if (path !== undefined) return import(pathToFileURL(path).href);
  throw new SemelError('CONTRACT_INVALID', `The package \`${name}\` is not installed.`, {
    path: 'store',
    next: `Run \`npm install ${name}\` beside semel or in this folder's project, or pass a client of yours as \`store\`.`,
  });
}

function resolved(name: string): string | undefined {
  try {
    return createRequire(join(process.cwd(), 'semel.cjs')).resolve(name);
  } catch {
    return undefined;
  }
}

function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
}
