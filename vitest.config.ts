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

/** The longest first, so that none of them is left alone at the end. Vitest would go by the size of a file. */
const longest = [
  'cli/run.test.ts',
  'python/',
  'stores/copy',
  'jobs/kills',
  'stores/dynamodb-contract',
  'crash/batch',
  'cli/once.test.ts',
  'sim/sim.test.ts',
  'mutants/',
  'incidents/',
  'mcp/stdio',
  'mcp/stateful',
  'servers/',
  'stores/s3-contract',
  'cli/store.test.ts',
  'same-history/',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longest.findIndex((part) => moduleId.includes(`/test/${part}`));
      return at === -1 ? longest.length : at;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

// Programs that tests start run the sources too: without this, each spends half a second on taking the types away.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('.cache/compiled', import.meta.url));

const storms = 'test/**/storm/*.test.ts';

export default defineConfig({
  resolve: { alias: doors },
  test: {
    projects: [
      {
        extends: true,
        test: { name: 'tests', include: ['test/**/*.test.ts', 'src/**/*.test.ts'], exclude: [storms] },
      },
      {
        // After all others, and one at a time: a storm in which a busy machine does little proves nothing.
        extends: true,
        test: { name: 'storms', include: [storms], maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
    // Tests start, stop and kill child processes; a worker of its own keeps signals and open handles apart.
    pool: 'forks',
    // Most of them wait for processes: more at a time than there are cores.
    maxWorkers: 6,
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/cli/build.ts', 'test/servers/shared.ts'],
    // Generous: a busy machine is slow, and no test asserts how long something takes.
    testTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    hookTimeout: 300_000,
  },
});
