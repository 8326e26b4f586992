// Reads the ids that an identity is made of, and puts them into one text. Refuses what is missing or empty: half an
// identity would be the same for two intents.

import { SemelError } from '../core/errors.ts';
import { digest } from '../core/key/key.ts';

/** A turn of a conversation: for contracts `per: 'turn'` and `per: 'conversation'`. */
export interface TurnIdentity {
  readonly conversation: string;
  readonly turn: string;
}

/** A run of a schedule: for contracts `per: 'run'` and for calendar periods. */
export interface RunIdentity {
  readonly run: string;
  /** The scheduled instant, not the one of a late start. */
  readonly at: Date;
}

/** Text, or a number that stands for an id. */
export function needed(engine: string, path: string, value: unknown, hint: string): string {
  if (typeof value === 'string' && value.trim() !== '' && value.isWellFormed()) return value;
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value);
  const found = value === undefined || value === null ? 'is missing' : `is ${shown(value)}`;
  throw new SemelError('NO_IDENTITY', `${engine}: \`${path}\` ${found}, so there is nothing to go by.`, {
    path,
    next: hint,
  });
}

/** Absent is fine, empty is not: somebody meant to name something. */
export function optional(engine: string, path: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  return fitting(needed(engine, path, value, `Leave \`${path}\` out, or give it a name.`));
}

export function instantOf(engine: string, path: string, text: string, hint: string): Date {
  const at = new Date(text);
  if (/^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(at.getTime())) return at;
  throw new SemelError('NO_IDENTITY', `${engine}: \`${path}\` is ${shown(text)}, which is no instant.`, {
    path,
    next: hint,
  });
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : typeof value;
}

/** The library takes 500 characters for a name. */
const longest = 400;

/** One text for a list of ids: no two lists give the same, whatever is in them. */
export function joined(engine: string, ...ids: readonly string[]): string {
  return fitting(`${engine}:${ids.map(encodeURIComponent).join('/')}`);
}

/** A long one keeps its beginning, for people, and a digest of the whole; only such a one is of the full length. */
export function fitting(text: string): string {
  return text.length < longest ? text : `${text.slice(0, longest - 33).toWellFormed()}~${digest(text)}`;
}
