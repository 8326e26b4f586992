// Whether the evidence of the last whole hunt is about the mutants that exist. Old evidence fails no test, or nobody could plant a mutant;
// `npm run verify` prints the sentence, and a hunt that writes evidence ends with it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './copy.ts';
import { harmless, planted } from './mutant.ts';

export const evidenceFile = 'docs/internals/evidence/mutants.md';

export interface Coverage {
  readonly missing: readonly string[];
  readonly gone: readonly string[];
}

export function compareEvidence(page: string, existing: readonly string[]): Coverage {
  const rows = page.matchAll(/^\| (\S+) \| (?:simulator|suites|–) \|/gm);
  const listed = new Set([...rows].map(([, name]) => name as string));
  return {
    missing: existing.filter((name) => !listed.has(name)),
    gone: [...listed].filter((name) => !existing.includes(name)),
  };
}

/** One sentence, for people. */
export function describeEvidence(): string {
  const existing = [...planted(), ...harmless()].map(({ name }) => name);
  const { missing, gone } = compareEvidence(readFileSync(join(root, evidenceFile), 'utf8'), existing);
  if (missing.length + gone.length === 0) return `${evidenceFile} lists all ${existing.length} mutants.`;
  return `${evidenceFile} is OLD: ${missing.length} of ${existing.length} mutants are not in it, ${gone.length} in it no longer exist. Run: npm run mutants -- --evidence`;
}
