// Reads what workers, store and world have written down, and says where they contradict the promise. Pure: the
// same logs from a simulation or from real processes give the same verdict.

import { acknowledgedIsDurable, oneCompletion, replaysEqual } from './answers.ts';
import { type Book, readLogs } from './chapters.ts';
import { noSilentSurplus, nothingLost, refusedMeansNothingLanded } from './effects.ts';
import type { Logs } from './logs.ts';
import { everythingEnds, fencesGrow, namespacesApart } from './order.ts';
import type { Invariant, Violation } from './report.ts';

export { type Effort, effortOf, shortfalls } from './effort.ts';
export {
  type CheckedRecord,
  type EffectEntry,
  type Logs,
  type Policy,
  parseLines,
  type Told,
  type WorkEntry,
} from './logs.ts';
export { formatViolation, type Invariant, type Violation } from './report.ts';

const invariants: Readonly<Record<Invariant, (book: Book) => Violation[]>> = {
  'one completion': oneCompletion,
  'no silent surplus': noSilentSurplus,
  'nothing lost': nothingLost,
  'refused means nothing landed': refusedMeansNothingLanded,
  'replays equal': replaysEqual,
  'acknowledged is durable': acknowledgedIsDurable,
  'everything ends': everythingEnds,
  'fences grow': fencesGrow,
  'namespaces apart': namespacesApart,
};

export const invariantNames = Object.keys(invariants) as readonly Invariant[];

export function check(logs: Logs): readonly Violation[] {
  const book = readLogs(logs);
  return Object.values(invariants).flatMap((holds) => holds(book));
}
