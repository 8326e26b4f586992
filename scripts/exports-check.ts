// What the package exports, as seen from the packed tarball by publint and by "Are the types wrong?". How large it is and how
// long `import 'semel'` takes is printed; test/repository/package.test.ts asserts the sizes, and nothing asserts the time.
import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, rmSync, statSync } from 'node:fs';
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
  execFileSync('tar', ['-xzf', tarball, '-C', folder]);
  const sizes = globSync(join(folder, 'package/**')).map((file) => statSync(file));
  const files = sizes.filter((file) => file.isFile());
  const megabytes = files.reduce((sum, { size }) => sum + size, 0) / 1e6;
  console.log(`package: ${megabytes.toFixed(2)} MB unpacked, in ${files.length} files`);
  console.log(
    `import 'semel': ${importMs(join(folder, 'package/dist/index.js'))} ms, median of 15 processes`,
  );
} finally {
  rmSync(folder, { recursive: true });
}

function importMs(file: string): string {
  const program = `const before = performance.now(); await import('${file}'); console.log(performance.now() - before)`;
  const times = Array.from({ length: 15 }, () =>
    Number(execFileSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' })),
  );
  return times.sort((one, other) => one - other)[7]?.toFixed(0) ?? '';
}
