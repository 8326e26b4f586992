// What no source file may do, because Node.js does it in a way that cannot be mended around the call.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

test('no source uses the recursive mkdir of Node.js, which never returns below /proc: makeFolder does it', () => {
  const files = globSync('src/**/*.ts', { cwd: root }).filter((file) => !file.endsWith('.test.ts'));
  expect(files.length).toBeGreaterThan(300);
  const found = files.filter((file) =>
    /\bmkdir(Sync)?\([^;]*recursive/.test(readFileSync(join(root, file), 'utf8')),
  );
  expect(found).toEqual([]);
});

test('no test has less time than the configuration gives, which only fails on a busy machine', () => {
  const files = globSync(['test/**/*.test.ts', 'src/**/*.test.ts'], { cwd: root });
  const found = files.flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    const times = [...text.matchAll(/^ *\}, (\d[\d_]*)\);$|^ *\},\n *(\d[\d_]*),\n *\);$/gm)]
      .map(([, one, other = one]) => Number(other?.replaceAll('_', '')))
      // Less than a second is a timer of the test.
      .filter((ms) => ms >= 1_000 && ms < 300_000);
    // It gives up after a second; `expect.poll` is as patient as vitest.config.ts says.
    const impatient = file !== 'test/repository/sources.test.ts' && text.includes('vi.waitFor(');
    return [...times.map((ms) => `${file}: ${ms} ms`), ...(impatient ? [`${file}: vi.waitFor`] : [])];
  });
  expect(found).toEqual([]);
});
