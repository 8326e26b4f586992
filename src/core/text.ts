// Names, keys and ids that a caller passes. Refuses what people could not read or a store could not keep.

import { SemelError } from './errors.ts';
import { describeKind, isBlank } from './plain.ts';

const maxTextLength = 500;

/** Visible ASCII: most ids are, and every call has some. */
function isSimple(value: unknown): boolean {
  if (typeof value !== 'string' || value === '' || value.length > 100 || value === '__proto__') return false;
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at);
    if (code <= 0x20 || code >= 0x7f) return false;
  }
  return true;
}

export function checkText(path: string, value: string | undefined): string | undefined {
  if (value === undefined || isSimple(value)) return value;
  const refuse = (why: string, next: string): never => {
    throw new SemelError('INVALID_ARGS', `\`${path}\` ${why}.`, { path, next });
  };
  if (typeof value !== 'string') refuse(`is ${describeKind(value)}, not a string`, 'Pass a string.');
  if (value === '') refuse('is empty', 'Leave it out, or pass a value.');
  if (isBlank(value)) refuse('consists of spaces', 'Leave it out, or pass a value.');
  if (value.length > maxTextLength)
    refuse(
      `has ${value.length} characters; ${maxTextLength} is the most`,
      'Shorten it, or pass a digest of it.',
    );
  if (/\p{Cc}/u.test(value)) refuse('holds control characters', 'Remove them.');
  if (!value.isWellFormed()) refuse('contains half of a surrogate pair', 'Pass well-formed text.');
  if (value === '__proto__') refuse('is `__proto__`', 'Use another name.');
  return value;
}
