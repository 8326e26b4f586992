// Every fact is held by a test, or says why not; and no test claims a fact that is not listed.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { facts } from './facts.ts';

const root = join(import.meta.dirname, '..');
const sources = globSync('{adapters,mcp}/**/*.test.ts', { cwd: root }).map((file) =>
  readFileSync(join(root, file), 'utf8'),
);
const claimed = new Set(
  sources.flatMap((source) => [...source.matchAll(/['"`](\d\.\d+) /g)].map(([, number]) => number)),
);

test.each(facts.filter(({ absent }) => absent === undefined))('$number has a test: $fact', ({ number }) => {
  expect([...claimed]).toContain(number);
});

test('no test claims a fact that is not listed, or that is said to be absent', () => {
  const listed = facts.filter(({ absent }) => absent === undefined).map(({ number }) => number);
  expect([...claimed].filter((number) => number !== undefined && !listed.includes(number))).toEqual([]);
});
