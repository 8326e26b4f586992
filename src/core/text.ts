// Names, keys and ids that a caller passes. Refuses what people could not read or a store could not keep.

import { SemelError } from './errors.ts';
import { isBlank, kindOf } from './plain.ts';

const maxTextLength = 500;

export function text(path: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const refuse = (why: string, next: string): never => {
    throw new SemelError('INVALID_ARGS', `\`${path}\` ${why}.`, { path, next });
  };
  if (typeof value !== 'string') refuse(`is ${kindOf(value)}, not a string`, 'Pass a string.');
  if (value === '') refuse('is empty', 'Leave it out, or pass what it stands for.');
  if (isBlank(value)) refuse('consists of spaces', 'Leave it out, or pass what it stands for.');
  if (value.length > maxTextLength)
    refuse(
      `has ${value.length} characters; ${maxTextLength} is the most`,
      'Shorten it, or pass a digest of it.',
    );
  if (/\p{Cc}/u.test(value)) refuse('holds control characters', 'Remove them.');
  if (!value.isWellFormed()) refuse('holds half of a surrogate pair', 'Pass well-formed text.');
  if (value === '__proto__') refuse('is `__proto__`', 'Use another name.');
  return value;
}
