// Who is asking, without passing it along: conversation, turn and run of the code that runs now. A hand-off
// carries them to another process, so that two deliveries of one task have one identity.

import { AsyncLocalStorage } from 'node:async_hooks';
import { SemelError } from '../core/errors.ts';

export interface Ambient {
  readonly conversation?: string;
  readonly turn?: string;
  readonly run?: string;
  /** The instant that calendar periods are taken from: the scheduled one, not the one of a late start. */
  readonly at?: Date | number;
  readonly permissions?: readonly string[];
  /** An adapter could only guess the turn. */
  readonly weak?: boolean;
}

const current = new AsyncLocalStorage<Ambient>();
const version = 'semel1.';

export function ambient(): Ambient {
  return current.getStore() ?? {};
}

/** Inner identity is added to the outer one; a new conversation does not inherit a turn. */
export function within<T>(identity: Ambient | string, work: () => T): T {
  const inner = typeof identity === 'string' ? adopt(identity) : identity;
  const { turn: _turn, weak: _weak, ...outer } = ambient();
  const sameConversation = inner.conversation === undefined || inner.conversation === outer.conversation;
  return current.run({ ...(sameConversation ? ambient() : outer), ...inner }, work);
}

export function handoff(): string {
  const { conversation, turn, run, at } = ambient();
  if (conversation === undefined && turn === undefined && run === undefined) {
    throw new SemelError('NO_IDENTITY', 'There is no identity to hand off here.');
  }
  const when = at === undefined ? undefined : Number(at);
  return (
    version +
    Buffer.from(JSON.stringify([conversation ?? null, turn ?? null, run ?? null, when ?? null])).toString(
      'base64url',
    )
  );
}

function adopt(text: string): Ambient {
  const bad = (why: string): never => {
    throw new SemelError('NO_IDENTITY', `This is no hand-off of semel: ${why}.`, {
      next: 'Pass what `semel.handoff()` gave, unchanged.',
    });
  };
  if (!text.startsWith(version))
    bad(text.startsWith('semel') ? 'it is of another version' : 'it does not start so');
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(text.slice(version.length), 'base64url').toString());
  } catch {
    bad('it is damaged');
  }
  if (!Array.isArray(parts) || parts.length !== 4) return bad('it is damaged');
  const [conversation, turn, run, at] = parts as unknown[];
  const isText = (part: unknown) => part === null || typeof part === 'string';
  if (!isText(conversation) || !isText(turn) || !isText(run) || !(at === null || typeof at === 'number'))
    bad('it is damaged');
  return Object.fromEntries(
    Object.entries({ conversation, turn, run, at }).filter(([, part]) => part !== null),
  ) as Ambient;
}
