// Who is asking, without passing it along: conversation, turn and run of the code that runs now. A hand-off
// carries them to another process, so that two deliveries of one task have one identity.

import { AsyncLocalStorage } from 'node:async_hooks';
import { SemelError } from '../core/errors.ts';
import { shortDigest } from '../core/key.ts';
import { checkKnown, fieldsOf } from '../core/known-fields.ts';

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

const ambientFields = fieldsOf<Ambient>({
  conversation: true,
  turn: true,
  run: true,
  at: true,
  permissions: true,
  weak: true,
});

const current = new AsyncLocalStorage<Ambient>();
const version = 'semel1.';

export function ambient(): Ambient {
  return current.getStore() ?? inherited();
}

let ofProcess: Ambient | undefined;

/** A process that `semel run` started belongs to that run: every call of it, until the program says otherwise. */
function inherited(): Ambient {
  // Asked once: reading the environment is a call into the system.
  if (ofProcess === undefined) {
    const { SEMEL_CONTEXT: context } = process.env;
    ofProcess = context === undefined || context === '' ? {} : adopt(context);
  }
  return ofProcess;
}

/** Inner identity is added to the outer one; a new conversation does not inherit a turn. */
export function within<T>(identity: Ambient | string, work: () => T): T {
  const inner = typeof identity === 'string' ? adopt(identity) : identity;
  checkKnown('within', inner, ambientFields, 'INVALID_ARGS');
  if (typeof work !== 'function') {
    const next = 'Write semel.within({ conversation, turn }, () => …).';
    throw new SemelError('INVALID_ARGS', 'within needs a function as its second argument.', {
      path: 'work',
      next,
    });
  }
  const { turn, weak, ...outer } = ambient();
  const sameConversation = inner.conversation === undefined || inner.conversation === outer.conversation;
  // A turn that is stated here is as sure as whoever states it says.
  const inherited = sameConversation && inner.turn === undefined ? { turn, weak } : {};
  return current.run({ ...outer, ...given(inherited), ...given(inner) }, work);
}

/** What is spelt out as undefined was not given. */
function given(identity: { readonly [K in keyof Ambient]: Ambient[K] | undefined }): Ambient {
  return Object.fromEntries(Object.entries(identity).filter(([, part]) => part !== undefined));
}

export function handoff(): string {
  const { conversation, turn, run, at, weak } = ambient();
  if (conversation === undefined && turn === undefined && run === undefined) {
    throw new SemelError('NO_IDENTITY', 'There is no identity to hand off here.');
  }
  const parts = [
    conversation ?? null,
    turn ?? null,
    run ?? null,
    at === undefined ? null : Number(at),
    weak === true,
  ];
  const text = Buffer.from(JSON.stringify(parts)).toString('base64url');
  // One wrong character would be another identity, and a second effect.
  return `${version}${text}.${shortDigest(version, text)}`;
}

function adopt(text: string): Ambient {
  const bad = (why: string): never => {
    throw new SemelError('NO_IDENTITY', `This is no hand-off of semel: ${why}.`, {
      next: 'Pass what `semel.handoff()` gave, unchanged.',
    });
  };
  if (!text.startsWith(version))
    bad(text.startsWith('semel') ? 'it is of another version' : 'it does not start so');
  const [body = '', check] = text.slice(version.length).split('.');
  if (check !== shortDigest(version, body)) bad('it is damaged');
  const parts = JSON.parse(Buffer.from(body, 'base64url').toString()) as unknown[];
  const [conversation, turn, run, at, weak] = parts.map((part) => part ?? undefined);
  return given({ conversation, turn, run, at, weak } as Ambient);
}
