// A choice that every attempt of a slot makes alike: drawn from job, slot, ids and name alone, and stored on first use,
// so that it stays even if the list changes.

import { createHash } from 'node:crypto';
import type { Status } from '../../core/contract/words.ts';
import { items } from '../../core/paging.ts';
import type { RecordInfo, Semel } from '../../semel/index.ts';
import type { Inside } from '../context.ts';
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

/** A whole number from 0 to 2^48 that depends on these words and on nothing else. */
export function seedOf(...words: readonly string[]): number {
  return createHash('sha256').update(JSON.stringify(words)).digest().readUIntBE(0, 6);
}

/** The words that a run has in common with all its attempts. */
export function wordsOf({ run: { job, slot, ids } }: Inside): readonly string[] {
  const sorted = Object.entries(ids).sort(([a], [b]) => (a < b ? -1 : 1));
  return [job, slot, JSON.stringify(sorted)];
}

/** Of what was not used lately; where all of it was, of what was used longest ago. `recent` is newest first. */
export function draw(from: readonly string[], recent: readonly string[], seed: number): string {
  let left = from;
  for (const used of recent) {
    const without = left.filter((each) => each !== used);
    if (without.length === 0) break;
    left = without;
  }
  return left[seed % left.length] as string;
}

/** Longer than a year: what was chosen last year may matter. */
const window = '400d';

export async function pick(
  semel: Semel,
  inside: Inside,
  name: string,
  from: readonly string[],
  notRecent: number,
): Promise<string> {
  const contract = contractName('pick', name);
  const { job, ids, slot } = inside.run;
  const tool = semel.tool({
    name: contract,
    effect: 'irreversible',
    per: 'run',
    window,
    // To choose once more is no second effect: the same choice comes out.
    onDoubt: 'rerun',
    identity: ['name'],
    share: true,
    run: async (_: { name: string }): Promise<Picked> => {
      const earlier = notRecent === 0 ? [] : await earlierPicks(semel, inside, name);
      const recent = earlier.slice(0, notRecent).map(({ choice }) => choice);
      const seed = seedOf(...wordsOf(inside), name);
      return { job, ids, name, slot, at: inside.at, choice: draw(from, recent, seed) };
    },
  });
  return (await tool({ name })).choice;
}

/** Of this job and these ids, from slots before this one, newest first. */
async function earlierPicks(semel: Semel, inside: Inside, name: string): Promise<readonly Picked[]> {
  const mine = JSON.stringify(wordsOf(inside).toSpliced(1, 1));
  const picks: Picked[] = [];
  for await (const { value } of recordsOf(semel, { contract: contractName('pick', name) })) {
    const picked = value as Picked | undefined;
    if (picked === undefined || picked.name !== name || picked.at >= inside.at) continue;
    const theirs = wordsOf({ ...inside, run: { job: picked.job, slot: '', ids: picked.ids } }).toSpliced(
      1,
      1,
    );
    if (JSON.stringify(theirs) === mine) picks.push(picked);
  }
  return picks.sort((a, b) => b.at - a.at);
}

/** All records of a contract, or of those whose names start so, with this status: what succeeded unless another is named. */
export function recordsOf(
  semel: Semel,
  query: ({ readonly contract: string } | { readonly prefix: string }) & { readonly status?: Status },
): AsyncGenerator<RecordInfo> {
  return items((from) => semel.records.list({ status: 'succeeded', ...query, limit: 500, ...from }));
}

/** What this run has chosen so far. */
export async function picksOf(semel: Semel, inside: Inside): Promise<Readonly<Record<string, string>>> {
  const picks = new Map<string, string>();
  for await (const { run, value } of recordsOf(semel, { prefix: 'pick.' })) {
    const picked = value as Picked | undefined;
    if (run === inside.text && picked !== undefined) picks.set(picked.name, picked.choice);
  }
  return Object.fromEntries(picks);
}
