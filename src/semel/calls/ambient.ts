// Who is asking, without passing it along: caller, conversation, turn and run of the code that runs now. A hand-off
// carries them to another process, so that two deliveries of one task have one identity.

import { AsyncLocalStorage } from 'node:async_hooks';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { digestCaller } from '../../core/caller.ts';
import { toInstant } from '../../core/clock.ts';
import { checkKnown, fieldNames } from '../../core/contract/known-fields.ts';
import { SemelError } from '../../core/errors.ts';
import { shortDigest } from '../../core/key/key.ts';
import { checkText } from '../../core/text.ts';

export interface Ambient {
  readonly conversation?: string;
  readonly turn?: string;
  readonly run?: string;
  /** The instant that calendar periods are taken from: the scheduled one, not the one of a late start. */
  readonly at?: Date | number;
  readonly permissions?: readonly string[];
  /** An adapter could only guess the turn. */
  readonly weak?: boolean;
  /** Whose calls these are, where the program serves several users. Only a digest of it is kept. */
  readonly caller?: string;
}

const ambientFields = fieldNames<Ambient>({
  conversation: true,
  turn: true,
  run: true,
  at: true,
  permissions: true,
  weak: true,
  caller: true,
});

const current = new AsyncLocalStorage<Ambient>();
const version = 'semel1.';

/** The caller is a digest here, as it is everywhere below. */
export function ambient(): Ambient {
  return current.getStore() ?? inherited();
}

/** The caller that this program itself has named, not the one it was started with. */
export function namedCaller(): string | undefined {
  const caller = current.getStore()?.caller;
  return caller === inherited().caller ? undefined : caller;
}

/** Of a program that says nothing about who asks. */
export const noAmbient: Ambient = Object.freeze({});

let ofProcess: Ambient | undefined;

/** A process that `semel run` started belongs to that run: every call of it, until the program says otherwise. */
function inherited(): Ambient {
  // Asked once: reading the environment is a call into the system.
  if (ofProcess === undefined) {
    const { SEMEL_CONTEXT: context } = process.env;
    ofProcess = context === undefined || context === '' ? noAmbient : adopt(context);
  }
  return ofProcess;
}

/** Inner identity is added to the outer one; a new conversation does not inherit a turn. */
export function within<T>(identity: Ambient | string, work: () => T): T {
  const isHandoff = typeof identity === 'string';
  const inner = isHandoff ? adopt(identity) : identity;
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
  const caller = isHandoff ? (outer.caller ?? inner.caller) : callerIn(inner);
  return current.run({ ...outer, ...given(inherited), ...given(inner), ...given({ caller }) }, work);
}

/** Who asked for a call that somebody else goes on with. The caller is a digest. */
export type FormerAsker = {
  readonly [K in 'conversation' | 'turn' | 'run' | 'caller']: Ambient[K] | undefined;
};

/** Runs `work` as its first caller: calls that it makes belong to the same conversation, turn and run. */
export function onBehalfOf<T>(asker: FormerAsker, work: () => T): T {
  const { at, permissions } = ambient();
  return current.run(given({ at, permissions, ...asker }), work);
}

/** Only a digest of it is kept: it may be a name, or a token. */
export function callerIn({ caller }: Pick<Ambient, 'caller'>): string | undefined {
  if (caller === undefined) return undefined;
  if (typeof caller === 'string' && caller.trim() !== '' && caller.isWellFormed())
    return digestCaller({ id: caller });
  throw new SemelError('INVALID_ARGS', '`caller` must be a string that is not empty.', {
    path: 'caller',
    next: 'Pass the id of the user, or leave it out.',
  });
}

/** What is spelt out as undefined was not given. */
function given(identity: { readonly [K in keyof Ambient]?: Ambient[K] | undefined }): Ambient {
  return Object.fromEntries(Object.entries(identity).filter(([, part]) => part !== undefined));
}

export function handoff(): string {
  const { conversation, turn, run, at, weak, caller } = ambient();
  if (conversation === undefined && turn === undefined && run === undefined) {
    throw new SemelError('NO_IDENTITY', 'There is no identity to hand off here.');
  }
  const parts = [
    checkText('conversation', conversation) ?? null,
    checkText('turn', turn) ?? null,
    checkText('run', run) ?? null,
    toInstant('at', at) ?? null,
    weak === true,
    ...(caller === undefined ? [] : [caller]),
  ];
  const body = Buffer.from(JSON.stringify(parts)).toString('base64url');
  // One wrong character would be another identity, and a second effect.
  return `${version}${body}.${checkOf(body)}`;
}

/**
 * Without a key it finds mistakes only: a stranger can write a hand-off of their own. With one, only those who have the
 * key can.
 */
function checkOf(text: string): string {
  const { SEMEL_HANDOFF_KEY: key } = process.env;
  if (key === undefined || key === '') return shortDigest(version, text);
  if (key.length >= shortestKey)
    return createHmac('sha256', key)
      .update(version + text)
      .digest('base64url');
  throw new SemelError('INVALID_ARGS', `SEMEL_HANDOFF_KEY is shorter than ${shortestKey} characters.`, {
    path: 'SEMEL_HANDOFF_KEY',
    next: 'Set it to a long random text, the same for all that hand over to each other.',
  });
}

const shortestKey = 16;

function adopt(text: string): Ambient {
  const bad = (why: string): never => {
    throw new SemelError('NO_IDENTITY', `This is no hand-off of semel: ${why}.`, {
      next: 'Pass what `semel.handoff()` gave, unchanged.',
    });
  };
  if (!text.startsWith(version))
    bad(text.startsWith('semel') ? 'it is of another version' : 'it does not start so');
  const [body = '', check] = text.slice(version.length).split('.');
  if (!isSame(check ?? '', checkOf(body))) bad('it is damaged, or was made with another SEMEL_HANDOFF_KEY');
  const parts = JSON.parse(Buffer.from(body, 'base64url').toString()) as unknown[];
  if (!['undefined', 'string'].includes(typeof parts[5])) bad('it is damaged');
  const [conversation, turn, run, at, weak, caller] = parts.map((part) => part ?? undefined);
  return given({ conversation, turn, run, at, weak, caller } as Ambient);
}

/** In a time that tells nothing of how much of it is right. */
function isSame(given: string, right: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}
