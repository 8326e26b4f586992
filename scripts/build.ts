// npm run build: the library by tsc, file by file; the command by rolldown, in a few files, because a command is started
// often and Node.js takes longer to find a hundred modules than to run them.
import { execFileSync } from 'node:child_process';
import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Plugin } from 'rolldown';

const root = join(import.meta.dirname, '..');

/** Into `folder`, as `semel.cjs`: CommonJS starts without the asynchronous loader. */
export async function bundleCommand(folder: string): Promise<void> {
  const common = { cwd: root, platform: 'node' as const, logLevel: 'warn' as const, plugins: [asciiOnly] };
  const output = {
    dir: folder,
    format: 'cjs',
    chunkFileNames: '[name]-[hash].cjs',
    // Names stay, so that a stack can be read; what is left out is what takes time to read in.
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
    comments: false,
  } as const;
  const guarded = await modulesOf('src/cli/commands/run.ts');
  const { output: files } = await build({
    ...common,
    input: { main: 'src/cli/main.ts', actor: 'src/cli/commands/demo/actor.ts' },
    checks: { ineffectiveDynamicImport: false },
    output: {
      ...output,
      entryFileNames: ({ name }) => (name === 'main' ? '[name]-[hash].cjs' : '[name].cjs'),
      codeSplitting: {
        groups: [
          // All that `semel run` loads is one file, and nothing else is in it; most commands need most of it.
          { name: 'guarded', test: (id) => guarded.has(id) },
          { name: 'shared', test: /src[/]cli[/]/, minShareCount: 2 },
        ],
      },
    },
  });
  const main = files.find(({ fileName }) => fileName.startsWith('main-'));
  await build({
    ...common,
    input: { semel: 'src/cli/start.ts' },
    transform: { define: { mainFile: JSON.stringify(main?.fileName) } },
    output: { ...output, entryFileNames: '[name].cjs' },
  });
  // npm does it when it installs; `npx semel` in a clone that was built again starts the file itself.
  chmodSync(join(folder, 'semel.cjs'), 0o755);
}

/** A single character beyond Latin-1 makes V8 keep the whole text with two bytes for each. */
const asciiOnly: Plugin = {
  name: 'ascii-only',
  generateBundle(_, files) {
    const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
    for (const file of Object.values(files))
      if (file.type === 'chunk') file.code = file.code.replace(/[^\0-\x7f]/g, escaped);
  },
};

/** All that a module imports, without what it imports dynamically. */
async function modulesOf(input: string): Promise<ReadonlySet<string>> {
  const { output } = await build({
    cwd: root,
    platform: 'node',
    logLevel: 'warn',
    input,
    write: false,
    plugins: [{ name: 'static-imports', resolveDynamicImport: () => false }],
  });
  return new Set(output[0].moduleIds);
}

if (import.meta.main) {
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  });
  await bundleCommand(join(root, 'dist/bin'));
}
