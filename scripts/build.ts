// npm run build: the library by tsc, file by file; the command by rolldown, in a few files, because a command is started
// often and Node.js takes longer to find a hundred modules than to run them.
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'rolldown';

const root = join(import.meta.dirname, '..');

/** Into `folder`, as `semel.cjs`: CommonJS starts without the asynchronous loader. */
export async function bundleCommand(folder: string): Promise<void> {
  await build({
    cwd: root,
    input: { semel: 'src/cli/main.ts', actor: 'src/cli/demo/actor.ts' },
    platform: 'node',
    logLevel: 'warn',
    output: {
      dir: folder,
      format: 'cjs',
      entryFileNames: '[name].cjs',
      chunkFileNames: '[name]-[hash].cjs',
      // Names stay, so that a stack can be read; what is left out is what takes time to read in.
      minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
      comments: false,
    },
  });
}

if (import.meta.main) {
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  });
  await bundleCommand(join(root, 'dist/bin'));
}
