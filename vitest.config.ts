import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import manifest from './package.json' with { type: 'json' };

/** `semel/sqlite` → src/stores/sqlite/index.ts: tests run the sources, not the last build. */
const doors = Object.entries(manifest.exports).flatMap(([door, target]) => {
  if (typeof target === 'string') return [];
  const source = target.default.replace('./dist/', './src/').replace(/\.js$/, '.ts');
  const specifier = door.replace('.', manifest.name);
  return [
    { find: new RegExp(`^${specifier}$`), replacement: fileURLToPath(new URL(source, import.meta.url)) },
  ];
});

/** The longest first, so that it is not left alone at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLongest = ({ moduleId }: TestSpecification) => moduleId.includes('/crash/storm/');
    const others = await super.sort(files.filter((file) => !isLongest(file)));
    return [...files.filter(isLongest), ...others];
  }
}

export default defineConfig({
  resolve: { alias: doors },
  test: {
    include: ['test/**/*.test.ts', 'src/**/*.test.ts'],
    // Tests start, stop and kill child processes; a worker of its own keeps signals and open handles apart.
    pool: 'forks',
    // Most of them wait for processes: more at a time than there are cores.
    maxWorkers: 5,
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/cli/build.ts', 'test/servers/shared.ts'],
    // Generous: a busy machine is slow, and no test asserts how long something takes.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
