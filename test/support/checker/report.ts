// A violation, told so that somebody can follow it: what was promised, what happened, line by line.

import type { StoreEvent } from '../../../src/store/store.ts';
import type { Chapter } from './chapters.ts';
import type { EffectEntry, WorkEntry } from './logs.ts';

export type Invariant =
  | 'one completion'
  | 'no silent surplus'
  | 'nothing lost'
  | 'refused means nothing landed'
  | 'replays equal'
  | 'acknowledged is durable'
  | 'everything ends'
  | 'fences grow'
  | 'namespaces apart';

export interface Violation {
  readonly invariant: Invariant;
  readonly namespace: string;
  readonly key: string;
  readonly generation: number | null;
  /** What is wrong, in one sentence. */
  readonly what: string;
  /** Everything that the logs tell of it, in the order of time. */
  readonly trace: readonly string[];
}

export function violation(invariant: Invariant, chapter: Chapter, what: string): Violation {
  const { namespace, key, generation } = chapter;
  return { invariant, namespace, key, generation, what, trace: traceOf(chapter) };
}

export function formatViolation({ invariant, namespace, key, generation, what, trace }: Violation): string {
  const about = `${namespace} · ${key}${generation === null ? '' : ` · generation ${generation}`}`;
  return [`✗ ${invariant}: ${what}`, `  ${about}`, ...trace.map((line) => `    ${line}`)].join('\n');
}

function traceOf({ claims, settlements, endings, events, effects, record }: Chapter): string[] {
  const lines = [
    ...[...claims, ...settlements, ...endings].map((entry) => ({ at: entry.at, text: tellWork(entry) })),
    ...events.map((event) => ({ at: event.at, text: tellEvent(event) })),
    ...effects.map((effect) => ({ at: effect.at, text: tellEffect(effect) })),
  ].sort((a, b) => a.at - b.at);
  const start = lines[0]?.at ?? 0;
  const told = lines.map(({ at, text }) => `+${at - start} ms  ${text}`);
  if (record === undefined) return [...told, 'at the end  the store holds no record'];
  const { status, fence, generation, doubtFence } = record;
  const doubt = doubtFence === null ? '' : `, in doubt since fence ${doubtFence}`;
  return [...told, `at the end  ${status}, fence ${fence}, generation ${generation}${doubt}`];
}

function tellWork(entry: Exclude<WorkEntry, { kind: 'started' } | { kind: 'died' }>): string {
  if (entry.kind === 'claimed') return `${entry.worker} claims for ${entry.call}, fence ${entry.fence}`;
  if (entry.kind === 'settled') return `${entry.worker} settles ${entry.outcome}, fence ${entry.fence}`;
  const details = [
    entry.code,
    entry.fence === null ? null : `fence ${entry.fence}`,
    entry.value === null ? null : `value ${entry.value}`,
    entry.effect === null ? null : `effect ${entry.effect}`,
  ].filter((detail) => detail !== null);
  return `${entry.worker} tells ${entry.call}: ${[entry.told, ...details].join(', ')}`;
}

function tellEvent({ type, fence, detail }: StoreEvent): string {
  return `store notes ${type}, fence ${fence} ${JSON.stringify(detail)}`;
}

function tellEffect({ seq, fence, target, providerKey }: EffectEntry): string {
  const by = fence === null ? '' : ` by fence ${fence}`;
  return `EFFECT ${seq} lands at ${target}${by}${providerKey === null ? '' : ` under key ${providerKey}`}`;
}
