// Each page of evidence names a commit of this repository, so that anyone can look at the code that was measured.

import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './page.ts';

const git = (...args: string[]) => spawnSync('git', args, { cwd: root, encoding: 'utf8' });

/** A package has no history, and a shallow clone only its end. */
const hasHistory = git('rev-parse', '--is-shallow-repository').stdout?.trim() === 'false';

/** Written in a clone whose commits were never delivered. Delete a name when its page was written again. */
const known: readonly string[] = ['kill-dynamodb.md', 'kill-s3.md'];

test.skipIf(!hasHistory)('the commit of every page of evidence is in the repository', () => {
  const folder = join(root, 'docs/internals/evidence');
  const named = globSync('*.md', { cwd: folder }).flatMap((page) =>
    [...readFileSync(join(folder, page), 'utf8').matchAll(/\bcommit\W{1,6}([0-9a-f]{7,40})\b/g)].map(
      ([, commit]) => ({ page, commit: commit! }),
    ),
  );
  expect(named.length).toBeGreaterThan(10);
  const missing = named.filter(({ commit }) => git('cat-file', '-e', `${commit}^{commit}`).status !== 0);
  expect(missing.filter(({ page }) => !known.includes(page))).toEqual([]);
  expect(known.filter((name) => !missing.some(({ page }) => page === name))).toEqual([]);
});
