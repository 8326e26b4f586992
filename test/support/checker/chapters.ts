// Sorts the three logs by what they are about: one chapter for each generation of each key, with everything that
// workers, store and world tell of it.

import { contractOf } from '../../../src/rules/state.ts';
import type { StoreEvent } from '../../../src/store/store.ts';
import type { CheckedRecord, EffectEntry, Logs, Policy, WorkEntry } from './logs.ts';

export type Claimed = Extract<WorkEntry, { kind: 'claimed' }>;
export type Settled = Extract<WorkEntry, { kind: 'settled' }>;
export type Ended = Extract<WorkEntry, { kind: 'ended' }>;

/** The life of one record, from its first claim until it expires. */
export interface Chapter {
  readonly namespace: string;
  readonly key: string;
  readonly generation: number;
  readonly policy: Policy;
  readonly claims: Claimed[];
  readonly settlements: Settled[];
  readonly endings: Ended[];
  readonly events: StoreEvent[];
  readonly effects: EffectEntry[];
  /** What the store holds of the key at the end: of this generation, or of another. */
  readonly record: CheckedRecord | undefined;
}

export interface Book {
  readonly logs: Logs;
  readonly chapters: readonly Chapter[];
  /** The chapters of each key, by generation. */
  readonly byKey: ReadonlyMap<string, readonly Chapter[]>;
  /** Where an effect belongs. */
  readonly chapterOf: ReadonlyMap<number, Chapter>;
}

const cautious: Policy = { keyed: false, repeats: false };

export function readLogs(logs: Logs): Book {
  const byKey = new Map<string, Chapter[]>();
  const chapterOf = new Map<number, Chapter>();
  const records = new Map(logs.records.map((record) => [idOf(record.namespace, record.key), record]));
  /** Which keys an intent has gone by. */
  const keysOf = new Map<string, Set<string>>();
  /** Under which contract an intent was called for: of one that never reached the store, there is no key to tell. */
  const contracts = new Map<string, string>();

  const chapter = (
    namespace: string,
    key: string,
    generation: number,
    contract: string = contractOf(key),
  ): Chapter => {
    const id = idOf(namespace, key);
    const chapters = byKey.get(id) ?? [];
    byKey.set(id, chapters);
    const known = chapters.find((found) => found.generation === generation);
    if (known !== undefined) return known;
    const begun: Chapter = {
      namespace,
      key,
      generation,
      policy: logs.policies[contract] ?? cautious,
      claims: [],
      settlements: [],
      endings: [],
      events: [],
      effects: [],
      record: records.get(id),
    };
    chapters.push(begun);
    return begun;
  };

  for (const record of logs.records) chapter(record.namespace, record.key, record.generation);
  for (const event of logs.events) {
    chapter(event.namespace, event.key, event.generation).events.push(event);
  }
  for (const entry of logs.work) {
    if (entry.kind === 'started') contracts.set(idOf(entry.namespace, entry.intent), entry.contract);
    if (entry.kind === 'started' || entry.kind === 'died') continue;
    if (entry.key === null || entry.generation === null) continue;
    const about = chapter(entry.namespace, entry.key, entry.generation);
    if (entry.kind === 'claimed') about.claims.push(entry);
    else if (entry.kind === 'settled') about.settlements.push(entry);
    else about.endings.push(entry);
    if (entry.kind === 'ended' && entry.told === 'nothing') continue;
    const intent = idOf(entry.namespace, entry.intent);
    keysOf.set(intent, (keysOf.get(intent) ?? new Set()).add(entry.key));
  }
  for (const chapters of byKey.values()) chapters.sort(byGeneration);
  for (const effect of logs.effects) {
    const intent = idOf(effect.namespace, effect.intent);
    const keys = keysOf.get(intent) ?? [effect.intent];
    const candidates = [...keys].flatMap((key) => byKey.get(idOf(effect.namespace, key)) ?? []);
    const about =
      belongsTo(effect, candidates) ??
      chapter(effect.namespace, [...keys][0] ?? '', 0, contracts.get(intent));
    about.effects.push(effect);
    chapterOf.set(effect.seq, about);
  }
  // What ran beside the ledger has begun chapters of its own.
  for (const chapters of byKey.values()) chapters.sort(byGeneration);
  return { logs, byKey, chapterOf, chapters: [...byKey.values()].flat() };
}

function byGeneration(a: Chapter, b: Chapter): number {
  return a.generation - b.generation;
}

/** By the attempt that said it made it, else by the generation that its fence is of, else by the time. */
function belongsTo(effect: EffectEntry, candidates: readonly Chapter[]): Chapter | undefined {
  const { fence, at } = effect;
  if (fence === null) {
    return candidates.findLast(({ claims }) => claims.some((claim) => claim.at <= at)) ?? candidates.at(0);
  }
  return (
    candidates.findLast(({ claims }) => claims.some((claim) => claim.fence === fence)) ??
    candidates.findLast(({ generation }) => generation <= fence)
  );
}

/** The same record, perhaps in another generation. */
export function sameKey(a: Chapter, b: Chapter): boolean {
  return a.namespace === b.namespace && a.key === b.key;
}

/** JSON, so that no two pairs of names can meet. */
export function idOf(namespace: string, key: string): string {
  return JSON.stringify([namespace, key]);
}

export function acts(chapter: Chapter, ...types: string[]): StoreEvent[] {
  return chapter.events.filter(
    ({ type, detail }) => type === 'resolved' && types.includes(String(detail.act)),
  );
}

export function eventsOf(chapter: Chapter, ...types: StoreEvent['type'][]): StoreEvent[] {
  return chapter.events.filter(({ type }) => types.includes(type));
}
