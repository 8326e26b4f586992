// Whether a hunt shows that the simulator and the suites see what they must, and how it is told.

import type { Finding } from './hunt.ts';

/** The issue asks for 40 planted bugs, 30 of them found by the simulator alone, and three harmless changes. */
const least = { planted: 44, bySim: 30, harmless: 3 };

export interface Hunted {
  readonly planted: readonly Finding[];
  readonly harmless: readonly Finding[];
}

/** What is wrong with a whole run; empty: nothing. */
export function complaints({ planted, harmless }: Hunted): readonly string[] {
  const bySim = planted.filter(({ by }) => by === 'sim').length;
  const wrong = [
    ...planted.flatMap((finding) => complaintOf(finding)),
    ...harmless
      .filter(({ by }) => by !== undefined)
      .map(({ mutant, what }) => `${mutant.name} is harmless and was reported: ${what}`),
  ];
  if (planted.length < least.planted) wrong.push(`only ${planted.length} mutants, not ${least.planted}`);
  if (bySim < least.bySim) wrong.push(`only ${bySim} found by the simulator alone, not ${least.bySim}`);
  if (harmless.length < least.harmless) wrong.push(`only ${harmless.length} harmless changes`);
  return wrong;
}

/** The same for some mutants only. */
export function complaintOf({ mutant, by }: Finding): readonly string[] {
  if (by === undefined) return [`${mutant.name} was not found`];
  if (mutant.foundBy === 'sim' && by !== 'sim') return [`${mutant.name} was not found by the simulator`];
  return [];
}

export function summary({ planted, harmless }: Hunted): string {
  const by = (finder: Finding['by']) => planted.filter((finding) => finding.by === finder).length;
  const quiet = harmless.filter(({ by: finder }) => finder === undefined).length;
  return `${planted.length} mutants: ${by('sim')} found by the simulator alone, ${by('contract')} by the suites, ${by(undefined)} missed; ${quiet} of ${harmless.length} harmless changes not reported`;
}
