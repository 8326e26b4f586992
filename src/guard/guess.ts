// Who asks, where the program did not say: a guess from what was said so far. The same words in two conversations make
// the same guess, so it is marked as weak.

import { shortDigest } from '../core/key.ts';
import type { Ambient } from '../semel/index.ts';

/** Words tell turns apart; conversations begin alike, so which one it is cannot be told. */
export const guessedConversation = 'guessed';

/** All that was said up to the user's last word: the same however often the model plans anew. */
export function guessFrom(messages: unknown, isUser: (message: unknown) => boolean): Ambient {
  if (!Array.isArray(messages)) return {};
  const last = messages.findLastIndex(isUser);
  if (last < 0) return {};
  const said = messages.slice(0, last + 1);
  return { conversation: guessedConversation, turn: shortDigest('turn', JSON.stringify(said)), weak: true };
}
