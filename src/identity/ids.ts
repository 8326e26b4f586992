// Reads and joins the ids that make an identity. Refuses missing and empty ones: half an identity would merge two intents.

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
export function requireId(engine: string, path: string, value: unknown, hint: string): string {
  if (typeof value === 'string' && value.trim() !== '' && value.isWellFormed()) return value;
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value);
  const found = value === undefined || value === null ? 'is missing' : `is ${describeValue(value)}`;
  throw new SemelError('NO_IDENTITY', `${engine}: \`${path}\` ${found}, so the identity is incomplete.`, {
    path,
    next: hint,
  });
}

/** May be absent but not empty: an empty name is a mistake. */
export function optionalId(engine: string, path: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  return shortenId(requireId(engine, path, value, `Leave \`${path}\` out, or give it a name.`));
}

export function parseInstant(engine: string, path: string, text: string, hint: string): Date {
  const at = new Date(text);
  if (/^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(at.getTime())) return at;
  throw new SemelError(
    'NO_IDENTITY',
    `${engine}: \`${path}\` is ${describeValue(text)}, which is not a valid time.`,
    {
      path,
      next: hint,
    },
  );
}

function describeValue(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : typeof value;
}

/** The library takes 500 characters for a name. */
const maxLength = 400;

/** Injective: no two lists of ids give the same text. */
export function joinIds(engine: string, ...ids: readonly string[]): string {
  return shortenId(`${engine}:${ids.map(encodeURIComponent).join('/')}`);
}

/** A long id keeps its beginning, for people, and gets a digest of the whole. Only shortened ids have the full length. */
export function shortenId(text: string): string {
  return text.length < maxLength ? text : `${text.slice(0, maxLength - 33).toWellFormed()}~${digest(text)}`;
}
