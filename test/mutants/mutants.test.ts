// Every mutant still fits the source that it changes; `npm run mutants` lets simulator and suites look for them all.
import { existsSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from './copy.ts';
import { compareEvidence, describeEvidence } from './evidence.ts';
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

test('evidence that lacks a mutant, or lists one that is gone, is noticed', () => {
  const page = '| a | simulator | 3 |\n| b | suites |  |\n| c | – |  |\n';
  expect(compareEvidence(page, ['a', 'b', 'c'])).toEqual({ missing: [], gone: [] });
  expect(compareEvidence(page, ['a', 'c', 'd'])).toEqual({ missing: ['d'], gone: ['b'] });
  expect(describeEvidence()).toMatch(/lists all \d+ mutants\.$|is OLD: .*npm run mutants -- --evidence$/);
});

const quick = ['release-on-throw', 'no-token-check-in-settle', 'same-provider-key-after-the-window'];

describe('the simulator', { timeout: 120_000 }, () => {
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
