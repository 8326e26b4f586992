// The checks, in the order of the report. docs/operate/doctor.md has a heading for each.

import { contradiction, deadHolder, doubtBacklog, duplicate, onDoubtRerun } from './doubt-checks.ts';
import type { Check, Finding } from './finding.ts';
import { keyNeverHits, workEaten } from './key-checks.ts';
import { namespaceShared, namespaceSplit, twoLedgers } from './place-checks.ts';
import type { Seen } from './seen.ts';
import {
  clock,
  damaged,
  diskSpace,
  durability,
  ledgerRefused,
  logSize,
  permissions,
} from './store-checks.ts';
import { leaseTooShort, windowTooLong } from './time-checks.ts';
import { version } from './version-check.ts';

const checks = [
  ledgerRefused,
  damaged,
  durability,
  clock,
  version,
  permissions,
  diskSpace,
  logSize,
  twoLedgers,
  namespaceSplit,
  namespaceShared,
  duplicate,
  contradiction,
  doubtBacklog,
  deadHolder,
  onDoubtRerun,
  leaseTooShort,
  windowTooLong,
  keyNeverHits,
  workEaten,
] as const satisfies readonly Check[];

export type FindingId = (typeof checks)[number]['id'];

export const findingIds: readonly string[] = checks.map(({ id }) => id);

export function findingsIn(seen: Seen, ids: readonly string[] = findingIds): readonly Finding[] {
  return checks
    .filter(({ id }) => ids.includes(id))
    .flatMap((check) => check.finds(seen).map((found) => ({ id: check.id, ...found })));
}
