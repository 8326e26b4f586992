// llms.txt and the skill for coding agents name only what exists, and ship with the package.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorCodes } from 'semel';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { summaries } from '../../src/cli/commands/summaries.ts';
import { toolFields } from '../../src/semel/toolbox.ts';
import { root } from './page.ts';

const files = ['llms.txt', 'skills/semel/SKILL.md'] as const;
const read = (file: string) => readFileSync(join(root, file), 'utf8');

describe.each(files)('%s', (file) => {
  const text = read(file);
  const all = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name!);

  test('ships with the package', () => {
    expect(manifest.files).toContain(file.split('/')[0]);
  });

  test('names files, commands, doors and error codes that exist', () => {
    const linked = all(/\]\(([^)]+)\)/g).map((path) => join(dirname(file), path));
    const paths = [...linked, ...all(/`((?:docs|skills)\/[\w./-]+)`/g)];
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
    const commands = all(/`(?:npx )?semel ([a-z]+)\b/g);
    expect(commands.filter((name) => !(name in summaries))).toEqual([]);
    const doors = all(/['`]semel\/([\w-]+)['`]/g);
    expect(doors.filter((door) => !(`./${door}` in manifest.exports))).toEqual([]);
    const codes = all(/\b([A-Z]+_[A-Z_]+)\b/g);
    expect(codes.filter((code) => !(errorCodes as string[]).includes(code))).toEqual([]);
  });
});

test('the skill has at most 80 lines, a description that says when to use it, and contract fields that exist', () => {
  const skill = read('skills/semel/SKILL.md');
  expect(skill.trimEnd().split('\n').length).toBeLessThanOrEqual(80);
  expect(skill).toMatch(/^---\nname: semel\ndescription: Use when .+\n---\n/);
  const named = [...skill.matchAll(/`(\w+):/g)].map(([, field]) => field!);
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter((field) => !toolFields.has(field))).toEqual([]);
});
