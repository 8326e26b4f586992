// Who asks, where the program did not say: a guess from what was said so far. Two users may begin with the same words, so
// it is marked as weak, and names the run that it was made in. Which conversation it is nobody can guess: its words
// change with each turn.

import { randomUUID } from 'node:crypto';
import { isUnique } from '../call/index.ts';
import { shortDigest } from '../core/key/key.ts';
import type { Ambient } from '../semel/index.ts';

export interface Guess extends Ambient {
  /** The run whose words these are: by the first call that the model made in it. */
  readonly origin?: string;
}

/** What a framework shows of its messages. */
export interface Shown {
  readonly isUser: (message: never) => boolean;
  /** The ids of the calls that the model makes in a message. */
  readonly callsIn: (message: never) => readonly unknown[];
  /** The first call of the step that this call belongs to. */
  readonly first: unknown;
  /** Of a message, what was said. @default the message */
  readonly wordsOf?: (message: never) => unknown;
}

/** All that was said up to the user's last word: the same however often the model plans anew. */
export function guessFrom(messages: unknown, { isUser, callsIn, first, wordsOf = itself }: Shown): Guess {
  if (!Array.isArray(messages)) return {};
  const last = (messages as never[]).findLastIndex(isUser);
  if (last < 0) return {};
  const said = (messages as never[]).slice(0, last + 1).map(wordsOf);
  const calls = [...(messages as never[]).slice(last + 1).flatMap(callsIn), first];
  return { turn: shortDigest('turn', JSON.stringify(said)), weak: true, origin: originOf(calls) };
}

/** An id that a model counts anew in every run tells nothing: then each call is a run of its own. */
function originOf(calls: readonly unknown[]): string {
  const telling = calls.find((id) => typeof id === 'string' && isUnique(id, ''));
  return typeof telling === 'string' ? telling : randomUUID();
}

const itself = (message: unknown) => message;
