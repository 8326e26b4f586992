// A block of histories with consecutive seeds: the unit of work of a thread, and of a digest in the evidence.

import { createHash } from 'node:crypto';
import { faultKinds } from './faults.ts';
import { featureNames } from './features.ts';
import { runHistory } from './history.ts';
import { newTable, type Table } from './table.ts';

export interface Failure {
  readonly seed: number;
  readonly events: number;
  readonly invariant: string;
  readonly detail: string;
}

export interface Tally {
  histories: number;
  events: number;
  effects: number;
  /** By kind, in the order of `faultKinds`. */
  readonly faults: Float64Array;
  readonly table: Table;
  readonly told: Record<string, number>;
  readonly failures: Failure[];
  /** How many generated contracts had each feature, in the order of `featureNames`. */
  readonly features: Float64Array;
  /** One number per different contract. */
  readonly contracts: Set<number>;
}

export interface Block {
  readonly seed: number;
  readonly count: number;
}

export interface BlockResult extends Tally {
  readonly block: Block;
  /** Over all that happened in it. */
  readonly digest: string;
}

/** As many as a digest stands for. */
export const blockSize = 1_000;

/** More than this says nothing new. */
const maxFailures = 200;

export function newTally(): Tally {
  return {
    histories: 0,
    events: 0,
    effects: 0,
    faults: new Float64Array(faultKinds.length),
    table: newTable(),
    told: {},
    failures: [],
    features: new Float64Array(featureNames.length),
    contracts: new Set(),
  };
}

/** To be called where `drain` works, see scheduler.ts. */
export function runBlock(block: Block, stopAtFirst: boolean): BlockResult {
  // Stacks are never shown, and to take them is a tenth of the time.
  Error.stackTraceLimit = 0;
  const tally = newTally();
  const fingerprints = new Uint32Array(block.count);
  for (let nth = 0; nth < block.count; nth += 1) {
    const { table, faults: faultCounts, features } = tally;
    const outcome = runHistory({ seed: block.seed + nth, table, faultCounts, features });
    const { seed, events, effects, told, violations } = outcome;
    fingerprints[nth] = outcome.fingerprint;
    tally.histories += 1;
    tally.events += events;
    tally.effects += effects;
    for (const contract of outcome.contracts) tally.contracts.add(contract);
    for (const code of told) tally.told[code] = (tally.told[code] ?? 0) + 1;
    for (const violation of violations)
      if (tally.failures.length < maxFailures) tally.failures.push({ seed, events, ...violation });
    if (stopAtFirst && violations.length > 0) break;
  }
  const digest = createHash('sha256').update(fingerprints).digest('hex').slice(0, 8);
  return { ...tally, block, digest };
}

export function add(sum: Tally, more: Tally): void {
  sum.histories += more.histories;
  sum.events += more.events;
  sum.effects += more.effects;
  for (let at = 0; at < sum.faults.length; at += 1)
    sum.faults[at] = (sum.faults[at] as number) + (more.faults[at] as number);
  for (let at = 0; at < sum.table.length; at += 1)
    sum.table[at] = (sum.table[at] as number) + (more.table[at] as number);
  for (const [code, count] of Object.entries(more.told)) sum.told[code] = (sum.told[code] ?? 0) + count;
  for (let at = 0; at < sum.features.length; at += 1)
    sum.features[at] = (sum.features[at] as number) + (more.features[at] as number);
  for (const contract of more.contracts) sum.contracts.add(contract);
  sum.failures.push(...more.failures);
}
