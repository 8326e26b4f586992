// npm run build: what the package holds. The command and the doors of the library share one set of CommonJS files in dist/lib
// (see docs/internals/decisions/014): Node.js takes longer to find and link three hundred modules than to run them.
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { build, type OutputChunk } from 'rolldown';
import manifest from '../package.json' with { type: 'json' };
import { bundleDashboard } from './build/dashboard.ts';
import { asciiOnly, oneStatementPerLine, readyForBundlers } from './build/plugins.ts';

const root = join(import.meta.dirname, '..');

/** `src/stores/sqlite/index.ts` is what `dist/stores/sqlite/index.js` lets out, as `semel/sqlite`. */
export const doors = Object.entries(manifest.exports).flatMap(([door, target]) => {
  if (typeof target === 'string') return [];
  const path = target.default.replace('./dist/', '').replace(/\.js$/, '');
  return [{ name: door.replace(/^\.\/?/, '') || 'index', path, source: `src/${path}.ts` }];
});

/** Writes the command, as `lib/semel.cjs`, and the code of every door into `dist`; the declarations are apart. */
export async function bundle(dist: string): Promise<void> {
  const lib = join(dist, 'lib');
  const common = {
    cwd: root,
    platform: 'node' as const,
    logLevel: 'warn' as const,
    // The oldest Node.js that can load the library; the sources use `using`, which 22 does not know either.
    transform: { target: 'node20' },
    // A slow machine is not worth a warning; what a command loads lazily, another one may need at once.
    checks: { bundlerTimings: false, ineffectiveDynamicImport: false },
  };
  const output = {
    dir: lib,
    format: 'cjs',
    // The command's cache of compiled code knows a file by its name.
    chunkFileNames: '[name]-[hash].cjs',
    // Functions and classes keep their names, so that a stack can be read; what is left out takes time to read in.
    minify: {
      compress: false,
      mangle: { toplevel: false, keepNames: true },
      codegen: { removeWhitespace: true },
    },
    comments: false,
  } as const;
  const guarded = await modulesOf('src/cli/commands/run.ts');
  const { output: files } = await build({
    ...common,
    input: {
      main: 'src/cli/main.ts',
      actor: 'src/cli/commands/demo/actor.ts',
      ...Object.fromEntries(doors.map(({ name, source }) => [name, source])),
    },
    plugins: [asciiOnly, readyForBundlers, oneStatementPerLine],
    output: {
      ...output,
      entryFileNames: ({ name }) => (name === 'actor' ? '[name].cjs' : '[name]-[hash].cjs'),
      codeSplitting: {
        groups: [
          // All that `semel run` loads is one file, and nothing else is in it; most commands, and the library, need most of it.
          { name: 'guarded', test: (id) => guarded.has(id) },
          { name: 'shared', test: /src[/]cli[/]/, minShareCount: 2 },
        ],
      },
    },
  });
  const entries = new Map(
    files.flatMap((file) => (file.type === 'chunk' && file.isEntry ? [[file.name, file] as const] : [])),
  );
  for (const { name, path } of doors) writeDoor(join(dist, `${path}.js`), lib, entries.get(name));
  await build({
    ...common,
    input: { semel: 'src/cli/start.ts' },
    plugins: [asciiOnly, oneStatementPerLine],
    transform: { ...common.transform, define: { mainFile: JSON.stringify(entries.get('main')?.fileName) } },
    output: { ...output, entryFileNames: '[name].cjs' },
  });
  await bundleDashboard(root, join(dist, 'dashboard'));
  // npm does it when it installs; `npx semel` in a clone that was built again starts the file itself.
  chmodSync(join(lib, 'semel.cjs'), 0o755);
}

/** An ES module that names each export, so that `import` needs no guess and a bundler can tell what exists. */
function writeDoor(file: string, lib: string, entry: OutputChunk | undefined): void {
  if (entry === undefined) throw new Error(`${file} has no code.`);
  const code = relative(dirname(file), join(lib, entry.fileName));
  const names = [...entry.exports].sort().map((name) => `  ${name},\n`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `export {\n${names.join('')}} from '${code.startsWith('.') ? code : `./${code}`}';\n`);
}

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
  const dist = join(root, 'dist');
  rmSync(dist, { recursive: true, force: true });
  await bundle(dist);
  // Loaded here only: tests build the code without its declarations.
  const { bundleDeclarations } = await import('./build/declarations.ts');
  await bundleDeclarations(root, dist, doors);
}
