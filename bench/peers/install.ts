// Installs the peers into this folder the first time they are measured.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.url));

/** False, after lines that cannot be overlooked, if they are not to be had. */
export function installPeers(): boolean {
  if (missing().length === 0) return true;
  process.stderr.write(`bench/peers: npm ci, once, for ${missing().join(', ')}\n`);
  const options = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const { status, stderr, error } = spawnSync('npm', options, {
    cwd: folder,
    encoding: 'utf8',
    timeout: 300_000,
  });
  if (status === 0 && missing().length === 0) return true;
  const reason = error?.message ?? stderr.trim();
  process.stderr.write(
    `\nSKIPPED: NO PEER WAS MEASURED. npm ci in bench/peers did not bring ${missing().join(', ')}:\n${reason}\n\n`,
  );
  return false;
}

/** By name and version, as this folder's package.json wants them. */
function missing(): readonly string[] {
  const { dependencies } = manifest('package.json');
  return Object.entries(dependencies ?? {})
    .filter(([name, version]) => manifest(`node_modules/${name}/package.json`).version !== version)
    .map(([name, version]) => `${name}@${version}`);
}

interface Manifest {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

function manifest(path: string): Manifest {
  try {
    return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as Manifest;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
}
