// A record's known attempts: those that were taken over, and the output of commands that ended.

import { shownOwner } from '../../../jobs/index.ts';
import type { RecordInfo } from '../../../semel/index.ts';
import type { StoreEvent } from '../../../store/store.ts';
import { endingOf, isEnding } from './timeline.ts';

export interface AttemptInfo {
  readonly at: Date;
  readonly fence: number;
  readonly owner: string | undefined;
  readonly what: string;
  /** The end of the command's output. */
  readonly tail: readonly string[];
}

/** About a screen. */
const maxLines = 40;

export function attemptsOf(record: RecordInfo, history: readonly StoreEvent[]): readonly AttemptInfo[] {
  const known: AttemptInfo[] = [];
  for (const { at, fence, type, detail, generation } of history) {
    if (generation !== record.generation) continue;
    if (type === 'takeover')
      known.push({
        at: new Date(at),
        fence: Number(detail.fence),
        owner: typeof detail.from === 'string' ? shownOwner(detail.from) : undefined,
        what: takenOver(detail),
        tail: [],
      });
    if (type === 'noted' && isEnding(detail))
      known.push({
        at: new Date(at),
        fence,
        owner: undefined,
        what: endingOf(detail),
        tail: tailOf(detail.tail),
      });
  }
  return known;
}

function takenOver({ dispatched, lapsed }: StoreEvent['detail']): string {
  if (lapsed === false) return 'ended without knowing whether it landed, and was taken over';
  return dispatched
    ? 'crashed or stalled after it had dispatched, and was taken over'
    : 'crashed before it dispatched anything, and was taken over';
}

function tailOf(tail: unknown): readonly string[] {
  if (typeof tail !== 'string' || tail.trim() === '') return [];
  return tail.trimEnd().split(/\r?\n/).slice(-maxLines);
}
