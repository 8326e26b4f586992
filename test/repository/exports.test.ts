// The doors of the package: package.json, the sources and tsconfig.json name the same ones (package.test.ts looks at the
// build), and what each lets out is written down in doors.json. To accept a change: UPDATE_DOORS=1 npx vitest run test/repository
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };

const root = join(import.meta.dirname, '../..');
const snapshot = join(import.meta.dirname, 'doors.json');

const doors = Object.entries(manifest.exports).flatMap(([door, target]) =>
  typeof target === 'string'
    ? []
    : [{ name: door.replace('.', manifest.name), ...target, source: sourceOf(target) }],
);

describe.each(doors)('$name', (door) => {
  test('has a source', () => {
    expect(existsSync(join(root, door.source))).toBe(true);
  });

  test('has its declarations next to its code', () => {
    expect(door.types).toBe(door.default.replace(/\.js$/, '.d.ts'));
  });

  test('names what it lets out one by one', () => {
    expect(readFileSync(join(root, door.source), 'utf8')).not.toMatch(/export\s*\*/);
  });

  test('lets out the values that its source names', async () => {
    const values = Object.keys(await import(join(root, door.source))).sort();
    expect(values).toEqual(namesIn(door.source).values);
  });
});

test('each door lets out the names of doors.json', () => {
  const names = Object.fromEntries(doors.map((door) => [door.name, namesIn(door.source)]));
  if (process.env.UPDATE_DOORS) writeFileSync(snapshot, `${JSON.stringify(names, null, 2)}\n`);
  expect(names).toEqual(JSON.parse(readFileSync(snapshot, 'utf8')));
});

test('what is written to be imported has a door', () => {
  const forUsers = [
    'index.ts',
    '{stores,adapters}/*/index.ts',
    '{http,identity,providers,server,testing}/index.ts',
    'mcp/handler.ts',
  ];
  const written = globSync(forUsers, { cwd: join(root, 'src') }).map((file) => `./src/${file}`);
  expect(doors.map((door) => door.source)).toEqual(expect.arrayContaining(written));
});

test('tsconfig.json leads each door to its source', () => {
  const withoutComments = readFileSync(join(root, 'tsconfig.json'), 'utf8').replace(/^\s*\/\/.*$/gm, '');
  const { paths } = JSON.parse(withoutComments).compilerOptions;
  expect(paths).toEqual(Object.fromEntries(doors.map((door) => [door.name, [door.source]])));
});

function sourceOf(target: { default: string }): string {
  return target.default.replace('./dist/', './src/').replace(/\.js$/, '.ts');
}

/** Types leave no trace at run time, so the names are read from the source text. */
function namesIn(file: string): { values: string[]; types: string[] } {
  const code = readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  const values = new Set<string>();
  const types = new Set<string>();
  for (const [, allTypes, list] of code.matchAll(/^export\s+(type\s+)?\{([^}]*)\}/gm)) {
    for (const entry of list!.split(',')) {
      const [, oneType, name] = /^\s*(type\s+)?(?:\w+\s+as\s+)?(\w+)\s*$/.exec(entry) ?? [];
      if (name) (allTypes || oneType ? types : values).add(name);
    }
  }
  const declarations =
    /^export\s+(?:async\s+|abstract\s+)?(function\*?|const|class|interface|type)\s+(\w+)/gm;
  for (const [, kind, name] of code.matchAll(declarations)) {
    (kind === 'interface' || kind === 'type' ? types : values).add(name!);
  }
  return { values: [...values].sort(), types: [...types].sort() };
}
