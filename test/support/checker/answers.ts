// What was answered and accepted against what the store holds, and against each other.

import { acts, type Book, type Chapter, eventsOf } from './chapters.ts';
import { type Violation, violation } from './report.ts';

/** The store accepts one success per key and generation. */
export function oneCompletion({ chapters }: Book): Violation[] {
  return chapters.flatMap((chapter) => {
    const fences = completionFences(chapter);
    if (fences.size <= 1) return [];
    const what = `The store accepted a success from fences ${[...fences].join(' and ')}.`;
    return [violation('one completion', chapter, what)];
  });
}

function completionFences({ settlements }: Chapter): Set<number> {
  return new Set(settlements.filter(({ outcome }) => outcome === 'succeeded').map(({ fence }) => fence));
}

/** Every replay gives the value that was accepted first. */
export function replaysEqual({ chapters }: Book): Violation[] {
  return chapters.flatMap((chapter) => {
    const replayed = new Set(
      chapter.endings
        .filter(({ told, value }) => told === 'replayed' && value !== null)
        .map(({ value }) => value),
    );
    if (replayed.size > 1) {
      const what = `Replays gave ${replayed.size} different values.`;
      return [violation('replays equal', chapter, what)];
    }
    const [value] = replayed;
    const first = firstValues(chapter);
    if (value === undefined || first.size === 0 || first.has(value)) return [];
    const what = `A replay gave ${value}, the execution ${[...first].join(' or ')}.`;
    return [violation('replays equal', chapter, what)];
  });
}

/** Values of the accepted execution where it is known, otherwise of any. It may have died before it told its caller. */
function firstValues(chapter: Chapter): Set<string | null> {
  const accepted = completionFences(chapter);
  const executed = chapter.endings.filter(({ told, value }) => told === 'executed' && value !== null);
  const counted = executed.filter(
    ({ fence }) => accepted.size === 0 || (fence !== null && accepted.has(fence)),
  );
  return new Set(counted.map(({ value }) => value));
}

/** What was answered is there at the end, and says the same. */
export function acknowledgedIsDurable({ logs, chapters }: Book): Violation[] {
  return chapters.flatMap((chapter) => {
    const { record, generation, claims, settlements, effects } = chapter;
    const acknowledged = chapter.endings.find(({ told }) => told === 'executed' || told === 'replayed');
    const isKnown = claims.length + settlements.length + effects.length > 0 || acknowledged !== undefined;
    if (!isKnown) return [];
    if (record === undefined) {
      if (logs.expires || acts(chapter, 'forget').length > 0) return [];
      return [violation('acknowledged is durable', chapter, 'The store has lost its record.')];
    }
    const isDone = acknowledged !== undefined || completionFences(chapter).size > 0;
    if (record.generation > generation) {
      if (!isDone || logs.expires || acts(chapter, 'forget').length > 0) return [];
      const what = `A success was answered, and generation ${record.generation} followed although nothing expires.`;
      return [violation('acknowledged is durable', chapter, what)];
    }
    if (record.generation < generation) {
      const what = `The store has gone back to generation ${record.generation}.`;
      return [violation('acknowledged is durable', chapter, what)];
    }
    if (!isDone || record.status === 'succeeded' || chapter.policy.repeats) return [];
    if (record.status === 'failed' && eventsOf(chapter, 'contradiction').length > 0) return [];
    const what = `A success was answered, but the record is ${record.status}.`;
    return [violation('acknowledged is durable', chapter, what)];
  });
}
