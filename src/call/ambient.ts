// The identity of the code that runs now: caller, conversation, turn and run. A hand-off carries it to another process, so
// that two deliveries of one task have the same identity.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { digestCaller } from '../core/caller.ts';
import { toInstant } from '../core/clock.ts';
import { checkKnown, fieldNames } from '../core/contract/known-fields.ts';
import { SemelError } from '../core/errors.ts';
import { shortDigest } from '../core/key/key.ts';
import { checkText } from '../core/text.ts';
import { changed, surrounding, surroundings } from './surroundings.ts';

export interface Ambient {
  readonly conversation?: string;
  readonly turn?: string;
  readonly run?: string;
  /** The instant that determines calendar periods: the scheduled time, not that of a late start. */
  readonly at?: Date | number;
  readonly permissions?: readonly string[];
  /** An adapter guessed the turn. */
  readonly weak?: boolean;
  /** The user, if the program serves several. Only a digest is kept. */
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

const version = 'semel1.';

/** What calls inherit. Its `caller` is a digest. */
export type Inherited = { readonly [K in keyof Ambient]?: Ambient[K] | undefined };

export function ambient(): Inherited {
  return surroundings().identity ?? inherited();
}

/** The caller that the program named itself, not the one inherited from the process that started it. */
export function namedCaller(): string | undefined {
  const caller = surroundings().identity?.caller;
  return caller === inherited().caller ? undefined : caller;
}

/** For a program that names no identity. */
export const noAmbient: Inherited = Object.freeze({});

let processAmbient: Inherited | undefined;

/** All calls of a process that `semel run` started belong to that run, unless the program says otherwise. */
function inherited(): Inherited {
  // Read once: every read of the environment is a system call.
  if (processAmbient === undefined) {
    const { SEMEL_CONTEXT: context } = process.env;
    processAmbient = context === undefined || context === '' ? noAmbient : parseHandoff(context);
  }
  return processAmbient;
}

/** Adds to the outer identity. A new conversation does not inherit the turn. */
export function within<T>(identity: Ambient | string, work: () => T): T {
  const isHandoff = typeof identity === 'string';
  const inner = isHandoff ? parseHandoff(identity) : identity;
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
  // A turn named here comes with its own `weak`.
  const inherited = sameConversation && inner.turn === undefined ? { turn, weak } : {};
  const caller = isHandoff ? (outer.caller ?? inner.caller) : readCaller(inner);
  const known = {
    ...outer,
    ...withoutUndefined(inherited),
    ...withoutUndefined(inner),
    ...withoutUndefined({ caller }),
  };
  return surrounding.run(changed({ identity: known }), work);
}

/** The identity in a record, for a call that another process continues. The caller is a digest. */
export type RecordedIdentity = {
  readonly [K in 'conversation' | 'turn' | 'run' | 'caller']: Ambient[K] | undefined;
};

/** Without what the process's own environment says. */
export const nobody: RecordedIdentity = {
  conversation: undefined,
  turn: undefined,
  run: undefined,
  caller: undefined,
};

/** Calls made inside `work` belong to this conversation, turn, run and caller, and to no other. */
export function runAs<T>(
  identity: RecordedIdentity & { readonly [K in 'at' | 'weak']?: Ambient[K] | undefined },
  work: () => T,
): T {
  const { permissions } = ambient();
  const isNobody = identity === nobody && permissions === undefined;
  return surrounding.run(changed({ identity: isNobody ? noAmbient : { permissions, ...identity } }), work);
}

/** Returns a digest: the caller may be a name or a token. */
export function readCaller({ caller }: Pick<Ambient, 'caller'>): string | undefined {
  if (caller === undefined) return undefined;
  if (typeof caller === 'string' && caller.trim() !== '' && caller.isWellFormed())
    return digestCaller({ id: caller });
  throw new SemelError('INVALID_ARGS', '`caller` must be a non-empty string.', {
    path: 'caller',
    next: "Pass the user's id, or leave it out.",
  });
}

/** A field set to undefined counts as missing. */
export function withoutUndefined<T extends object>(
  fields: {
    readonly [K in keyof T]?: T[K] | undefined;
  },
): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
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
  // One wrong character would make another identity, and a second effect.
  return `${version}${body}.${signHandoff(body)}`;
}

/**
 * Without SEMEL_HANDOFF_KEY this only detects damage, and strangers can forge hand-offs. With it, only holders of the key
 * can make them.
 */
function signHandoff(text: string): string {
  const { SEMEL_HANDOFF_KEY: key } = process.env;
  if (key === undefined || key === '') return shortDigest(version, text);
  if (key.length >= minKeyLength)
    return createHmac('sha256', key)
      .update(version + text)
      .digest('base64url');
  throw new SemelError('INVALID_ARGS', `SEMEL_HANDOFF_KEY is shorter than ${minKeyLength} characters.`, {
    path: 'SEMEL_HANDOFF_KEY',
    next: 'Set it to a long random string, the same in all processes that hand off to each other.',
  });
}

const minKeyLength = 16;

function parseHandoff(text: string): Ambient {
  const bad = (why: string): never => {
    throw new SemelError('NO_IDENTITY', `This is not a valid semel hand-off: ${why}.`, {
      next: 'Pass what `semel.handoff()` returned, unchanged.',
    });
  };
  if (!text.startsWith(version))
    bad(text.startsWith('semel') ? 'it has another version' : `it does not start with "${version}"`);
  const [body = '', check] = text.slice(version.length).split('.');
  if (!isEqual(check ?? '', signHandoff(body)))
    bad('it is damaged, or was made with another SEMEL_HANDOFF_KEY');
  const parts = JSON.parse(Buffer.from(body, 'base64url').toString()) as unknown[];
  if (!['undefined', 'string'].includes(typeof parts[5])) bad('it is damaged');
  const [conversation, turn, run, at, weak, caller] = parts.map((part) => part ?? undefined);
  return withoutUndefined({ conversation, turn, run, at, weak, caller } as Ambient);
}

/** Compares in constant time. */
function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
