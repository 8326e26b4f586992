// Every mutant still fits the source that it changes; `npm run mutants` lets simulator and suites look for them all.
import { appendFileSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from './copy.ts';
import { describeEvidence, digestState, head, printRow, readRows, selectCurrent, toRow } from './evidence.ts';
import { hunt } from './hunt.ts';
import { emptyChecker, harmless, type Mutant, mutate, planted } from './mutant.ts';
import { complaints } from './verdict.ts';

const everyone = [...planted(), ...harmless(), emptyChecker()];
const read = (file: string) => readFileSync(join(root, file), 'utf8');

describe('a mutant', () => {
  test.each(everyone.map((mutant) => [mutant.name, mutant] as const))(
    'fits the source: %s',
    (_name, mutant) => {
      for (const [file, text] of mutate(mutant, read)) {
        expect(text).not.toBe(read(file));
        stripTypeScriptTypes(text);
      }
      if (mutant.foundBy.endsWith('.test.ts')) expect(existsSync(join(root, mutant.foundBy))).toBe(true);
    },
  );

  test('names the mutant and its file if the quoted text has changed', () => {
    const [first] = planted() as [Mutant];
    expect(() => mutate(first, () => '')).toThrow(`${first.name}: its text is 0 times in`);
    expect(() => mutate(first, (file) => read(file) + read(file))).toThrow(
      /is 2 times in .* Mend .*\.mutant/s,
    );
  });
});

test('a run that misses one, takes fright at a harmless one, or sees too few by the simulator fails', () => {
  const found = planted().map((mutant) => ({ mutant, by: 'sim' as const, seeds: 1, what: 'x', seconds: 0 }));
  const missed = { by: undefined, seeds: undefined, what: '' };
  const quiet = harmless().map((mutant) => ({ mutant, ...missed, seconds: 0 }));
  expect(complaints({ planted: found, harmless: quiet })).toEqual([]);

  const [first, ...rest] = found;
  const blind = found.map((finding) => ({ ...finding, ...missed }));
  const bySuites = found.map((finding) => ({ ...finding, by: 'contract' as const }));
  expect(complaints({ planted: [{ ...first!, ...missed }, ...rest], harmless: quiet })).toHaveLength(1);
  expect(complaints({ planted: found, harmless: [...quiet, first!] })).toHaveLength(1);
  expect(complaints({ planted: bySuites, harmless: quiet })).not.toEqual([]);
  expect(complaints({ planted: blind, harmless: quiet }).length).toBeGreaterThan(found.length);
});

describe('the evidence', () => {
  const commit = '0123456789ab';
  const [first] = planted() as [Mutant];
  const found = { mutant: first, by: 'contract' as const, seeds: undefined, what: 'x: a | b', seconds: 1 };
  const row = toRow(found, commit);

  test('is read as it was written', () => {
    expect(readRows(`# Page\n\n${head}\n${printRow(row)}\n`)).toEqual([row]);
    expect(describeEvidence()).toMatch(/ as they are now\.( Run: npm run mutants -- --evidence)?$/);
  });

  test('keeps what holds, and neither what was missed nor what has changed or is gone', () => {
    const [harmlessOne] = harmless() as [Mutant];
    const missed = { by: undefined, seeds: undefined, what: '', seconds: 1 };
    const quiet = toRow({ mutant: harmlessOne, ...missed }, commit);
    const changed = { ...row, state: 'aaaaaaaaaaaa' };
    const gone = { ...row, name: 'no-such-mutant' };
    const reported = { ...quiet, finder: 'suites' };
    expect(selectCurrent([row, quiet])).toEqual([row, quiet]);
    expect(selectCurrent([toRow({ mutant: first, ...missed }, commit), changed, gone, reported])).toEqual([]);
  });

  test('changes with the mutant, its finder, the source and the test', () => {
    const [named] = planted().filter(({ foundBy }) => foundBy.endsWith('.test.ts')) as [Mutant];
    const folder = mkdtempSync(join(tmpdir(), 'semel-evidence-'));
    try {
      const files = [...named.changes.map(({ file }) => file), named.foundBy];
      for (const file of files) cpSync(join(root, file), join(folder, file));
      const before = digestState(named, folder);
      expect(digestState({ ...named, why: 'in other words' }, folder)).toBe(before);
      expect(digestState({ ...named, foundBy: 'contract' }, folder)).not.toBe(before);
      expect(digestState({ ...named, changes: named.changes.slice(1) }, folder)).not.toBe(before);
      for (const file of files) {
        appendFileSync(join(folder, file), '\n');
        expect(digestState(named, folder)).not.toBe(before);
        cpSync(join(root, file), join(folder, file));
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

const quick = ['release-on-throw', 'no-token-check-in-settle', 'same-provider-key-after-the-window'];

describe('the simulator', () => {
  const chosen = planted().filter(({ name }) => quick.includes(name));

  test.each(chosen.map((mutant) => [mutant.name, mutant] as const))('finds %s', async (_name, mutant) => {
    const { by, seeds } = await hunt(mutant, { histories: 300, seed: 1, suites: false });
    expect(by).toBe('sim');
    expect(seeds).toBeLessThanOrEqual(300);
  });

  test('finds nothing with a checker that reports nothing', async () => {
    const [mutant] = chosen as [Mutant];
    const effort = { histories: 300, seed: 1, suites: false, besides: emptyChecker() };
    expect(await hunt(mutant, effort)).toMatchObject({ by: undefined });
  });
});

describe('a test file', () => {
  const effort = { histories: 1, seed: 1, suites: true };
  const [quiet] = harmless() as [Mutant];

  test('that uses the built command finds nothing in an unchanged copy of the tree', async () => {
    const found = await hunt({ ...quiet, foundBy: 'test/cli/key.test.ts' }, effort);
    expect(found).toMatchObject({ by: undefined });
  });

  test('that does not run has not found anything', async () => {
    await expect(hunt({ ...quiet, foundBy: 'test/no-such.test.ts' }, effort)).rejects.toThrow(
      'No test of test/no-such.test.ts ran',
    );
  });
});
