// A database driver that the user installs, if they need it: beside semel, or in the project of the working folder, where
// the command is called from.

import { createRequire } from 'node:module';
import { join } from 'node:path';

/** By `require`: the command is no module, and nobody's bundler asks for a package that is optional. */
export function findPeer(name: string): unknown {
  for (const place of [import.meta.url, join(process.cwd(), 'semel.cjs')]) {
    const require = createRequire(place);
    if (isThere(require, name)) return require(name);
  }
  return undefined;
}

function isThere(require: NodeJS.Require, name: string): boolean {
  try {
    require.resolve(name);
    return true;
  } catch {
    return false;
  }
}
