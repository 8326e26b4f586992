// What the package exports, as seen from the packed tarball by publint and by "Are the types wrong?".
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pack } from './pack.ts';

const folder = mkdtempSync(join(tmpdir(), 'semel-exports-'));
try {
  const tarball = pack(folder);
  for (const [command, ...args] of [
    ['publint', 'run', tarball, '--strict'],
    ['attw', tarball, '--profile', 'esm-only', '--no-emoji'],
  ] as const) {
    const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
    console.log(status === 0 ? `${command}: no problems` : `${stdout}${stderr}\n${command}: failed`);
    if (status !== 0) process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true });
}
