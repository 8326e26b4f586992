// The package as a user gets it: `npm pack` builds first (prepack), so the tarball is never stale.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Packs the project into an empty folder and returns the path of the tarball. */
export function pack(folder: string): string {
  const npm = spawnSync('npm', ['pack', '--loglevel=error', '--pack-destination', folder], {
    encoding: 'utf8',
  });
  const tarball = readdirSync(folder).find((file) => file.endsWith('.tgz'));
  if (npm.status !== 0 || !tarball) throw new Error(`npm pack failed:\n${npm.stdout}${npm.stderr}`);
  return join(folder, tarball);
}
