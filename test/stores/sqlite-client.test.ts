// node:sqlite is loaded when it is needed, and quietly.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { withoutExperimentalWarning } from '../../src/stores/sqlite/client.ts';

const folder = join(import.meta.dirname, '../../src/stores/sqlite');

test('no file imports node:sqlite before it is needed: an old Node has none', () => {
  for (const file of globSync('**/!(*.test).ts', { cwd: folder })) {
    const imports = readFileSync(join(folder, file), 'utf8').match(/^import .*'node:sqlite'/gm) ?? [];
    for (const line of imports) expect(line, file).toMatch(/^import type /);
  }
});

test('only the warning about node:sqlite is left out, and only while it is loaded', async () => {
  const emitWarning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const before = process.emitWarning;
  await withoutExperimentalWarning(async () => {
    process.emitWarning(
      'SQLite is an experimental feature and might change at any time',
      'ExperimentalWarning',
    );
    process.emitWarning('something else', 'DeprecationWarning');
    await null;
    process.emitWarning(new Error('an error'));
  });
  expect(process.emitWarning).toBe(before);
  process.emitWarning('SQLite is an experimental feature', 'ExperimentalWarning');
  expect(emitWarning.mock.calls.map(([warning]) => String(warning))).toEqual([
    'something else',
    'Error: an error',
    'SQLite is an experimental feature',
  ]);
  emitWarning.mockRestore();
});

test('the warnings come back also where loading fails', async () => {
  const before = process.emitWarning;
  await expect(
    withoutExperimentalWarning(async () => {
      throw new Error('no such module');
    }),
  ).rejects.toThrow('no such module');
  expect(process.emitWarning).toBe(before);
});
