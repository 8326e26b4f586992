// Fences, ends and borders: what holds whatever the effects were.

import { type Book, type Chapter, idOf, sameKey } from './chapters.ts';
import { type Violation, violation } from './report.ts';

/**
 * No two claims of a key share a fence, what changes hands later has a higher one, and a generation ends before the
 * next begins. (The order of a worker's own lines proves nothing: a reply may have been on its way for long.)
 */
export function fencesGrow({ byKey }: Book): Violation[] {
  return [...byKey.values()].flatMap((chapters) => {
    const wrong = chapters.flatMap((chapter, index) => {
      const what = wrongFence(chapter, chapters[index + 1]?.generation);
      return what === undefined ? [] : [violation('fences grow', chapter, what)];
    });
    return wrong.slice(0, 1);
  });
}

function wrongFence(chapter: Chapter, nextGeneration = Number.POSITIVE_INFINITY): string | undefined {
  const { claims, events, generation, record } = chapter;
  const callOf = new Map<number, string>();
  for (const { call, fence } of claims) {
    const holder = callOf.get(fence) ?? call;
    if (holder !== call) return `${holder} and ${call} were both given fence ${fence}.`;
    callOf.set(fence, call);
    if (fence < generation || fence >= nextGeneration) return `Fence ${fence} is not of this generation.`;
  }
  let last = 0;
  for (const { type, fence } of events) {
    if (type !== 'takeover' && type !== 'resolved') continue;
    if (fence <= last) return `A ${type} was given fence ${fence} after ${last}.`;
    last = fence;
  }
  const highest = Math.max(0, ...callOf.keys());
  if (record?.generation === generation && record.fence < highest)
    return `The record has fence ${record.fence}, but ${highest} was given out.`;
  return undefined;
}

/** Once the faults have stopped, every call has its answer and every record is settled, free or in doubt. */
export function everythingEnds({ logs, chapters }: Book): Violation[] {
  const dead = new Set(logs.work.flatMap((entry) => (entry.kind === 'died' ? [entry.worker] : [])));
  const answered = new Set(logs.work.flatMap((entry) => (entry.kind === 'ended' ? [entry.call] : [])));
  const unanswered = logs.work.flatMap((entry): Violation[] => {
    if (entry.kind !== 'started' || dead.has(entry.worker) || answered.has(entry.call)) return [];
    const { namespace, intent, call, worker } = entry;
    const what = `${call} of ${worker}, which lives, never got an answer.`;
    const generation = null;
    return [{ invariant: 'everything ends', namespace, key: intent, generation, what, trace: [] }];
  });
  const stuck = chapters.flatMap((chapter) => {
    const { record, generation } = chapter;
    if (record?.generation !== generation || record.status !== 'running' || record.lapsed) return [];
    return [violation('everything ends', chapter, 'The record is still running, and its lease goes on.')];
  });
  return [...unanswered, ...stuck];
}

/** Nobody gets another's effect, and no two intents or generations share a provider's key. */
export function namespacesApart({ logs, chapters, chapterOf }: Book): Violation[] {
  const found: Violation[] = [];
  for (const chapter of chapters) {
    const foreign = chapter.endings.find(({ effect }) => {
      const owner = effect === null ? undefined : chapterOf.get(effect);
      return owner !== undefined && !sameKey(owner, chapter);
    });
    if (foreign === undefined) continue;
    const owner = chapterOf.get(foreign.effect ?? 0);
    const what = `${foreign.call} was told of effect ${foreign.effect}, which is ${owner?.namespace} · ${owner?.key}.`;
    found.push(violation('namespaces apart', chapter, what));
  }
  const ownerOf = new Map<string, Chapter>();
  for (const { seq, target, providerKey } of logs.effects) {
    const chapter = chapterOf.get(seq);
    if (providerKey === null || chapter === undefined) continue;
    const at = idOf(target, providerKey);
    const owner = ownerOf.get(at) ?? chapter;
    ownerOf.set(at, owner);
    if (owner === chapter) continue;
    const what = `Its provider's key ${providerKey} is that of ${owner.namespace} · ${owner.key} · generation ${owner.generation}.`;
    found.push(violation('namespaces apart', chapter, what));
  }
  return found;
}
