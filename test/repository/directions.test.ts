// The folder directions of biome.directions.jsonc, seen at work: imports are planted in an empty copy of the
// project, and Biome has to report exactly the wrong ones.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

const below = ['core', 'rules', 'store', 'stores', 'providers', 'ledger', 'call'];
const patterns = ['jobs', 'batch', 'consumer', 'outbox', 'http', 'signals'];
const agents = ['guard', 'adapters', 'mcp'];

const directions: Record<string, string[]> = {
  core: [],
  rules: ['core'],
  store: ['core', 'rules'],
  stores: ['core', 'rules', 'store'],
  providers: ['core'],
  ledger: ['core', 'rules', 'store'],
  call: ['core', 'rules', 'store', 'ledger'],
  semel: below,
  guard: ['core', 'providers', 'call', 'semel'],
  adapters: ['core', 'providers', 'semel', 'guard'],
  mcp: ['core', 'providers', 'semel', 'guard'],
  identity: ['core', 'semel'],
  ...Object.fromEntries(patterns.map((pattern) => [pattern, [...below, 'semel']])),
  server: [...below, 'semel', ...patterns, ...agents],
  cli: [...below, 'semel', ...patterns, ...agents, 'server'],
  testing: [...below, 'semel', ...patterns, ...agents, 'server', 'cli'],
};

const openByFile = ['core', 'rules', 'store'];
const onePerImplementation = ['stores', 'adapters'];

/** Code by file; one run of Biome reads it all. */
const plants = new Map<string, string>();
/** What Biome reported, as `file:line`. */
const reported = new Set<string>();

test('every folder of src has a direction', () => {
  const present = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  );
  expect(Object.keys(directions)).toEqual(expect.arrayContaining(present.map((folder) => folder.name)));
});

planted('a folder without a direction imports nothing outside itself', 'src/unheard-of/a-file.ts', {
  right: ['./own.ts'],
  wrong: ['../core/words.ts', '../ledger/index.ts'],
});

for (const [folder, allowed] of Object.entries(directions)) {
  const isAllowed = (other: string) => allowed.includes(other);
  const others = Object.keys(directions).filter((other) => other !== folder);
  const { home, up } = inside(folder);

  planted(`${folder} reaches what is below it and nothing else`, `${home}/a-file.ts`, {
    right: ['./own.ts', ...others.filter(isAllowed).map((other) => up + door(other))],
    wrong: others.filter((other) => !isAllowed(other)).map((other) => up + door(other)),
  });

  planted(`${folder} keeps its direction in a nested folder`, `${home}/nested/a-file.ts`, {
    right: ['./own.ts', '../own.ts', ...others.filter(isAllowed).map((other) => `../${up}${door(other)}`)],
    wrong: others.filter((other) => !isAllowed(other)).map((other) => `../${up}${door(other)}`),
  });

  planted(`${folder} enters another folder by its door`, `${home}/past-the-door.ts`, {
    right: openByFile.filter(isAllowed).map((other) => `${up}${other}/a-file.ts`),
    wrong: others.filter((other) => !openByFile.includes(other)).map((other) => up + pastTheDoor(other)),
  });
}

for (const folder of [...below, 'semel', ...patterns]) {
  const { home, up } = inside(folder);
  planted(`${folder} does not read the public names back`, `${home}/public-names.ts`, {
    wrong: [`${up}index.ts`],
  });
}

for (const folder of onePerImplementation) {
  planted(`${folder} never import each other`, `src/${folder}/some/sibling.ts`, {
    wrong: ['../another/index.ts', `../../${folder}/another/index.ts`],
  });
}

planted('core imports no package, and of Node only node:crypto', 'src/core/outside.ts', {
  right: ['node:crypto'],
  wrong: ['node:fs', 'node:sqlite', 'zod'],
});

for (const file of ['src/index.ts', 'src/create-semel.ts']) {
  planted(`${file} goes through the doors of what the public object is made of`, file, {
    // What defines a job is loaded at once, the rest at its first run.
    right: [
      ...[...below, 'semel', ...patterns].map((folder) => `./${door(folder)}`),
      './jobs/definition.ts',
      './jobs/library/index.ts',
    ],
    wrong: ['guard', 'mcp', 'server', 'cli', 'testing'].map((folder) => `./${door(folder)}`),
  });
}

planted('dashboard runs in a browser: its own files, preact and uplot', 'dashboard/views/a-view.ts', {
  right: ['../own.ts', './own.tsx', 'preact', 'preact/hooks', 'uplot'],
  wrong: ['../../src/core/words.ts', '../../src/server/index.ts', 'node:fs', 'zod'],
});

planted('what ships imports no development dependency', 'src/call/dependency.ts', {
  right: ['node:timers/promises'],
  wrong: ['zod', 'vitest'],
});

planted('a test in src may import what it needs', 'src/core/words.test.ts', {
  right: ['vitest', 'node:fs', '../testing/index.ts', '../call/attempt.ts'],
});

plantedCode('a re-export, a type import and a dynamic import are imports too', 'src/ledger/other-forms.ts', [
  "export { run } from '../call/index.ts';",
  "import type { Run } from '../call/index.ts';",
  "export const late = (): Promise<Run> => import('../call/index.ts');",
]);

test('no source imports the package by its own name', () => {
  const sources = globSync('src/**/*.ts', { cwd: root, exclude: ['**/*.test.ts'] });
  expect(sources.filter((file) => /from 'semel[/']/.test(readFileSync(join(root, file), 'utf8')))).toEqual(
    [],
  );
});

beforeAll(() => {
  const copy = mkdtempSync(join(tmpdir(), 'semel-directions-'));
  for (const file of ['biome.json', 'biome.directions.jsonc', 'package.json', '.gitignore']) {
    cpSync(join(root, file), join(copy, file));
  }
  for (const [file, code] of plants) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    writeFileSync(join(copy, file), code);
  }
  const { stdout } = spawnSync(
    join(root, 'node_modules/.bin/biome'),
    ['lint', '--reporter=json', '--max-diagnostics=none'],
    { cwd: copy, encoding: 'utf8', maxBuffer: 2 ** 26 },
  );
  for (const { category, location } of JSON.parse(stdout).diagnostics) {
    if (/noRestrictedImports|noUndeclaredDependencies/.test(category)) {
      reported.add(`${location.path}:${location.start.line}`);
    }
  }
  rmSync(copy, { recursive: true });
});

function planted(title: string, file: string, imports: { right?: string[]; wrong?: string[] }): void {
  const { right = [], wrong = [] } = imports;
  const all = [...right, ...wrong];
  plants.set(file, all.map((specifier) => `import '${specifier}';\n`).join(''));
  test(title, () => {
    expect(all.filter((_, index) => reported.has(`${file}:${index + 1}`))).toEqual(wrong);
  });
}

function plantedCode(title: string, file: string, lines: string[]): void {
  plants.set(file, lines.join('\n'));
  test(title, () => {
    expect(lines.filter((_, index) => reported.has(`${file}:${index + 1}`))).toEqual(lines);
  });
}

/** Where a file of this folder lives, and the way from there up to src. */
function inside(folder: string): { home: string; up: string } {
  return onePerImplementation.includes(folder)
    ? { home: `src/${folder}/some`, up: '../../' }
    : { home: `src/${folder}`, up: '../' };
}

function door(folder: string): string {
  return onePerImplementation.includes(folder) ? `${folder}/another/index.ts` : `${folder}/index.ts`;
}

function pastTheDoor(folder: string): string {
  return door(folder).replace('index.ts', 'a-file.ts');
}
