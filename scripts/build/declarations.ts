// One declaration file for each door, and files for what they share: a class must be the same type behind every door.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'rolldown';
import { dts } from 'rolldown-plugin-dts';

export async function bundleDeclarations(
  root: string,
  dist: string,
  doors: readonly { readonly path: string }[],
): Promise<void> {
  const single = mkdtempSync(join(tmpdir(), 'semel-declarations-'));
  try {
    execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.build.json', '--outDir', single], {
      cwd: root,
      stdio: 'inherit',
    });
    await build({
      cwd: root,
      logLevel: 'warn',
      input: Object.fromEntries(doors.map(({ path }) => [path, join(single, `${path}.d.ts`)])),
      external: /^[^./]/,
      // The generator is not used for declarations that exist; named, because another one warns when it is chosen.
      plugins: [dts({ dtsInput: true, sourcemap: false, generator: 'oxc' })],
      output: { dir: dist, entryFileNames: '[name].ts', chunkFileNames: 'types/[name]-[hash].d.ts' },
    });
  } finally {
    rmSync(single, { recursive: true });
  }
}
