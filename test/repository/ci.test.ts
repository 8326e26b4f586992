// What CI does is what the README tells people to do.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };

const read = (file: string) => readFileSync(join(import.meta.dirname, '../..', file), 'utf8');

test('CI runs the command of the README', () => {
  const [command] = /^npm ci && npm run verify/m.exec(read('README.md')) ?? [];
  expect(read('.github/workflows/ci.yml')).toContain(`- run: ${command}\n`);
});

test('CI runs the package on every major version that it supports', () => {
  const majors = [...manifest.engines.node.matchAll(/(?:\^|>=)(\d+)/g)].map(([, major]) => major);
  expect(read('.github/workflows/ci.yml')).toContain(`node: [${majors.join(', ')}]\n`);
});
