// Guesses the turn from the messages so far, where the program did not name one. Two users may begin with the same words,
// so a guess is marked `weak` and names its run. The conversation is never guessed: its words change with each turn.

import { randomUUID } from 'node:crypto';
import { isUnique } from '../call/index.ts';
import { shortDigest } from '../core/key/key.ts';
import type { Ambient } from '../semel/index.ts';

export interface Guess extends Ambient {
  /** Identifies the run: the id of the first call that the model made in it. */
  readonly origin?: string;
}

/** Reads a framework's messages. */
export interface MessageReader {
  readonly isUser: (message: never) => boolean;
  /** The ids of the tool calls in a message. */
  readonly callsIn: (message: never) => readonly unknown[];
  /** The id of the first call in the same step. */
  readonly first: unknown;
  /** The words of a message, without ids that change. @default the message */
  readonly wordsOf?: (message: never) => unknown;
}

/** A digest of everything up to the user's last message: it stays the same when the model re-plans. */
export function guessIdentity(
  messages: unknown,
  { isUser, callsIn, first, wordsOf = (message) => message }: MessageReader,
): Guess {
  if (!Array.isArray(messages)) return {};
  const last = (messages as never[]).findLastIndex(isUser);
  if (last < 0) return {};
  const said = (messages as never[]).slice(0, last + 1).map(wordsOf);
  const calls = [...(messages as never[]).slice(last + 1).flatMap(callsIn), first];
  return { turn: shortDigest('turn', JSON.stringify(said)), weak: true, origin: originOf(calls) };
}

/** Ids that a model restarts in every run identify nothing: then each call counts as a separate run. */
function originOf(calls: readonly unknown[]): string {
  const unique = calls.find((id) => typeof id === 'string' && isUnique(id, ''));
  return typeof unique === 'string' ? unique : randomUUID();
}
