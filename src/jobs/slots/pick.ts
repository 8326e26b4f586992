// A choice that is the same in every attempt of a slot: it depends on job, slot, ids and name only, and is stored on
// first use, so that it stays even if the list changes.

import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Status } from '../../core/contract/words.ts';
import { items } from '../../core/paging.ts';
import { forgetTool, type RecordInfo, type Semel } from '../../semel/index.ts';
import type { RunContext } from '../context.ts';
import { contractName, type Ids } from './run-id.ts';

interface Picked<Choice = unknown> {
  readonly job: string;
  readonly ids: Ids;
  readonly name: string;
  readonly slot: string;
  /** The instant of the slot: earlier ones count as recent. */
  readonly at: number;
  readonly choice: Choice;
}

/** A whole number below 2^48 that depends on these words only. */
export function seedOf(...words: readonly string[]): number {
  return createHash('sha256').update(JSON.stringify(words)).digest().readUIntBE(0, 6);
}

/** The text from which every attempt of a run derives its picks. */
export function seedWords({ id: { job, slot, ids } }: Pick<RunContext, 'id'>): readonly string[] {
  const sorted = Object.entries(ids).sort(([a], [b]) => (a < b ? -1 : 1));
  return [job, slot, JSON.stringify(sorted)];
}

/** Prefers items not in `recent` (newest first); if all are, the one used longest ago. */
export function draw<Item>(from: readonly Item[], recent: readonly unknown[], seed: number): Item {
  let left = from;
  for (const used of recent) {
    const without = left.filter((each) => !isDeepStrictEqual(each, used));
    if (without.length === 0) break;
    left = without;
  }
  return left[seed % left.length] as Item;
}

/** Longer than a year, so that last year's choice still counts. */
const window = '400d';

export function pick<Item>(
  semel: Semel,
  run: RunContext,
  name: string,
  from: readonly Item[],
  notRecent: number,
): Promise<Item> {
  return choose(semel, run, name, async () => {
    const earlier = notRecent === 0 ? [] : await earlierPicks(semel, run, name);
    const recent = earlier.slice(0, notRecent).map(({ choice }) => choice);
    return draw(from, recent, seedOf(...seedWords(run), name));
  });
}

/** The choice of this name in this run; `make` makes it on first use. */
export async function choose<Choice>(
  semel: Semel,
  run: RunContext,
  name: string,
  make: () => Choice | Promise<Choice>,
): Promise<Choice> {
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
    run: async (_: { name: string }): Promise<Picked<Choice>> => ({
      ...{ job, ids, name, slot, at: run.at },
      choice: await make(),
    }),
  });
  const choosing = tool({ name }, { run: run.text });
  // Its `run` is about this run only: no sweep may continue another one's choice with it.
  forgetTool(tool);
  return (await choosing).choice;
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
export async function picksOf(semel: Semel, run: RunContext): Promise<Readonly<Record<string, unknown>>> {
  const picks = new Map<string, unknown>();
  for await (const { run: madeIn, value } of listRecords(semel, { prefix: 'pick.' })) {
    const picked = value as Picked | undefined;
    if (madeIn === run.text && picked !== undefined) picks.set(picked.name, picked.choice);
  }
  return Object.fromEntries(picks);
}
