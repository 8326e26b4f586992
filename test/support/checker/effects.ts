// What landed against what was promised and told.

import { acts, type Book, type Chapter, type Ended, eventsOf, sameKey } from './chapters.ts';
import type { Logs } from './logs.ts';
import { type Violation, violation } from './report.ts';

/** A second effect is covered by somebody who accepted it, or it is a violation. */
export function noSilentSurplus({ logs, chapters }: Book): Violation[] {
  return chapters.flatMap((chapter) => {
    const { effects, policy } = chapter;
    if (effects.length <= 1 || policy.repeats) return [];
    const accepted = acceptedRepeats(chapter, logs);
    if (effects.length <= 1 + accepted) return [];
    const covered = accepted === 0 ? 'no repeat was accepted' : `${accepted} repeats were accepted`;
    return [violation('no silent surplus', chapter, `${effects.length} effects landed, and ${covered}.`)];
  });
}

function acceptedRepeats(chapter: Chapter, logs: Logs): number {
  const byPeople = acts(chapter, 'runAgain').length + forced(chapter);
  if (!logs.requestsOutliveQuiet) return byPeople;
  const duplicates = new Set(eventsOf(chapter, 'duplicate').map(({ fence }) => fence)).size;
  const verdicts = eventsOf(chapter, 'cleared').length + acts(chapter, 'notLanded').length - forced(chapter);
  return byPeople + Math.max(duplicates, verdicts);
}

/** "Not landed", said before that could be known. */
function forced(chapter: Chapter): number {
  return acts(chapter, 'notLanded').filter(({ detail }) => detail.force === true).length;
}

/** Whoever was told that it is done can find the effect. */
export function nothingLost(book: Book): Violation[] {
  return book.chapters.flatMap((chapter) => {
    const { effects, endings, record, generation } = chapter;
    const lost = endings.find((ended) => isDone(ended) && !speaksOfOwnEffect(book, chapter, ended));
    if (lost !== undefined) {
      const what = `${lost.call} was told "${lost.told}", but no effect of this generation landed.`;
      return [violation('nothing lost', chapter, what)];
    }
    const isSettled = record?.generation === generation && record.status === 'succeeded';
    if (!isSettled || effects.length > 0 || acts(chapter, 'landed').length > 0) return [];
    return [violation('nothing lost', chapter, 'The record says succeeded, but no effect landed.')];
  });
}

function isDone({ told }: Ended): boolean {
  return told === 'executed' || told === 'replayed' || told === 'unrecorded';
}

function speaksOfOwnEffect({ chapterOf }: Book, chapter: Chapter, { effect }: Ended): boolean {
  if (effect === null) return chapter.effects.length > 0 || acts(chapter, 'landed').length > 0;
  const owner = chapterOf.get(effect);
  // An effect of somebody else is another violation.
  return owner === chapter || (owner !== undefined && !sameKey(owner, chapter));
}

/** "Failed" and "not landed" are definite: nothing of what was sent until then landed, or ever does. */
export function refusedMeansNothingLanded({ logs, chapters }: Book): Violation[] {
  return chapters.flatMap((chapter) => {
    if (chapter.policy.repeats || isExcused(chapter, logs)) return [];
    const refusal = chapter.endings.find(
      (ended) => (ended.told === 'failed' || ended.told === 'not landed') && landedUntil(chapter, ended),
    );
    if (refusal !== undefined) {
      const what = `${refusal.call} was told "${refusal.told}", but it landed.`;
      return [violation('refused means nothing landed', chapter, what)];
    }
    const { record, generation } = chapter;
    if (record === undefined || record.generation !== generation || record.doubtFence !== null) return [];
    const isClosed = record.status === 'failed' || record.status === 'released';
    if (!isClosed || !landedUntil(chapter, { fence: record.fence, at: Number.POSITIVE_INFINITY })) return [];
    const what = `The record is closed as ${record.status} without doubt, but it landed.`;
    return [violation('refused means nothing landed', chapter, what)];
  });
}

function landedUntil({ effects }: Chapter, until: { fence: number | null; at: number }): boolean {
  return effects.some(({ fence, at }) =>
    fence === null || until.fence === null ? at <= until.at : fence <= until.fence,
  );
}

function isExcused(chapter: Chapter, { requestsOutliveQuiet = false }: Logs): boolean {
  if (acts(chapter, 'abandon').length > 0 || forced(chapter) > 0) return true;
  const verdicts = eventsOf(chapter, 'cleared', 'contradiction', 'lateNews').length;
  return requestsOutliveQuiet && verdicts + acts(chapter, 'notLanded').length > 0;
}
