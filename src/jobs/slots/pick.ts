// A choice that is the same in every attempt of a slot: it depends on job, slot, ids and name only, and is stored on
// first use, so that it stays even if the list changes.

import { createHash } from 'node:crypto';
import type { Status } from '../../core/contract/words.ts';
import { items } from '../../core/paging.ts';
import type { RecordInfo, Semel } from '../../semel/index.ts';
import type { RunContext } from '../context.ts';
import { contractName, type Ids } from './run-id.ts';

interface Picked {
  readonly job: string;
  readonly ids: Ids;
  readonly name: string;
  readonly slot: string;
  /** The instant of the slot: earlier ones count as recent. */
  readonly at: number;
  readonly choice: string;
}

/** A whole number below 2^48 that depends on these words only. */
export function seedOf(...words: readonly string[]): number {
  return createHash('sha256').update(JSON.stringify(words)).digest().readUIntBE(0, 6);
}

/** The words that all attempts of a run share. */
export function seedWords({ id: { job, slot, ids } }: Pick<RunContext, 'id'>): readonly string[] {
  const sorted = Object.entries(ids).sort(([a], [b]) => (a < b ? -1 : 1));
  return [job, slot, JSON.stringify(sorted)];
}

/** Prefers items not in `recent` (newest first); if all are, the one used longest ago. */
export function draw(from: readonly string[], recent: readonly string[], seed: number): string {
  let left = from;
  for (const used of recent) {
    const without = left.filter((each) => each !== used);
    if (without.length === 0) break;
    left = without;
  }
  return left[seed % left.length] as string;
}

/** Longer than a year, so that last year's choice still counts. */
const window = '400d';

export async function pick(
  semel: Semel,
  run: RunContext,
  name: string,
  from: readonly string[],
  notRecent: number,
): Promise<string> {
  const contract = contractName('pick', name);
  const { job, ids, slot } = run.id;
  const tool = semel.tool({
    name: contract,
    effect: 'irreversible',
    per: 'run',
    window,
    // Choosing again is harmless: the choice is the same.
    onDoubt: 'rerun',
    identity: ['name'],
    share: true,
    run: async (_: { name: string }): Promise<Picked> => {
      const earlier = notRecent === 0 ? [] : await earlierPicks(semel, run, name);
      const recent = earlier.slice(0, notRecent).map(({ choice }) => choice);
      const seed = seedOf(...seedWords(run), name);
      return { job, ids, name, slot, at: run.at, choice: draw(from, recent, seed) };
    },
  });
  return (await tool({ name })).choice;
}

/** Picks of this job and these ids in earlier slots, newest first. */
async function earlierPicks(semel: Semel, run: RunContext, name: string): Promise<readonly Picked[]> {
  const mine = JSON.stringify(seedWords(run).toSpliced(1, 1));
  const picks: Picked[] = [];
  for await (const { value } of listRecords(semel, { contract: contractName('pick', name) })) {
    const picked = value as Picked | undefined;
    if (picked === undefined || picked.name !== name || picked.at >= run.at) continue;
    const theirs = seedWords({ id: { job: picked.job, slot: '', ids: picked.ids } }).toSpliced(1, 1);
    if (JSON.stringify(theirs) === mine) picks.push(picked);
  }
  return picks.sort((a, b) => b.at - a.at);
}

/** All records of a contract, or of a prefix of keys, with this status (default: succeeded). */
export function listRecords(
  semel: Semel,
  query: ({ readonly contract: string } | { readonly prefix: string }) & { readonly status?: Status },
): AsyncGenerator<RecordInfo> {
  return items((from) => semel.records.list({ status: 'succeeded', ...query, limit: 500, ...from }));
}

/** The picks of this run so far. */
export async function picksOf(semel: Semel, run: RunContext): Promise<Readonly<Record<string, string>>> {
  const picks = new Map<string, string>();
  for await (const { run: madeIn, value } of listRecords(semel, { prefix: 'pick.' })) {
    const picked = value as Picked | undefined;
    if (madeIn === run.text && picked !== undefined) picks.set(picked.name, picked.choice);
  }
  return Object.fromEntries(picks);
}
