// The ids that simulated tools note, as a provider gives them or as the tool chose them before it sent; and what is true of
// the one that `verify` is asked with.

import type { AttemptContext } from '../../src/call/index.ts';
import { NotLanded, Rejected } from '../../src/core/signals.ts';
import type { Attempt, CallLog, KeyLog } from './log.ts';
import type { Sim } from './sim.ts';

/** One id that an attempt noted. */
export interface SentNote {
  readonly ref: string;
  /** The tool was told that it is stored. */
  isStored: boolean;
  /** `run` threw after it: semel may know by now that it did not land. */
  isJudged: boolean;
  /** The tool has said that the effect with this id did not land. */
  isRefuted: boolean;
  /** After that, the attempt sent something else. */
  isPast: boolean;
}

/** Notes an id; some tools wait until it is stored, and some do not. */
export async function noteId(
  { log, chance }: Sim,
  call: CallLog,
  { fence, note }: AttemptContext,
): Promise<SentNote | undefined> {
  const attempt = log.attemptOf(call, fence);
  if (attempt === undefined) return undefined;
  const own: SentNote = {
    ref: `${attempt.key} f${fence} #${attempt.notes.length + 1}`,
    isStored: false,
    isJudged: false,
    isRefuted: false,
    isPast: false,
  };
  attempt.notes.push(own);
  const stored = note(own.ref).then((is) => {
    own.isStored = is;
  });
  if (chance.happens(0.6)) await stored;
  return own;
}

/** `run` threw this: where it knows that nothing landed, that holds for what it noted too. */
export function judgeNote(note: SentNote | undefined, error: unknown): void {
  if (note === undefined) return;
  note.isJudged = true;
  note.isRefuted = error instanceof NotLanded || error instanceof Rejected;
}

/** The attempt sends: what was refuted before is about something else. */
export function passNotes({ notes }: Attempt): void {
  for (const note of notes) note.isPast = note.isRefuted;
}

/** `verify` is asked about attempts in doubt, with an id of theirs and no other. */
export function checkGivenRef(
  { log }: Sim,
  { key, attempts, verdicts }: KeyLog,
  asking: Attempt | undefined,
  remoteRef: string | undefined,
): void {
  const detail = `${key}: f${asking?.fence} is given ${remoteRef}`;
  if (remoteRef !== undefined) {
    const notedBy = attempts.find(({ notes }) => notes.some(({ ref }) => ref === remoteRef));
    const note = notedBy?.notes.find(({ ref }) => ref === remoteRef);
    if (note === undefined) log.violated('`verify` is given only what an attempt noted', detail);
    const isOver = notedBy?.outcome === 'released' || notedBy?.outcome === 'failed';
    if (note?.isRefuted && (notedBy === asking || isOver || note.isPast))
      log.violated('`verify` is not given the id of what did not land', detail);
  }
  const before = attempts.findLast(({ fence }) => asking !== undefined && fence < asking.fence);
  const last = before?.notes.at(-1);
  if (before === undefined || last === undefined || asking?.for !== 'verify') return;
  const isOpen = before.outcome === undefined || before.outcome === 'unknown';
  const isJudged = last.isJudged || verdicts.some(({ fence, act }) => fence > before.fence && act !== 'died');
  const isSame = before.generation === asking.generation && asking.notes.length === 0;
  if (last.isStored && isOpen && isSame && !isJudged && remoteRef !== last.ref)
    log.violated('an id that was stored is given to `verify`', `${detail} instead of ${last.ref}`);
}
