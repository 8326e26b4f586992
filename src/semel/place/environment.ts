// Variables of the environment that name a ledger or a part of it.

import { SemelError } from '../../core/errors.ts';

/**
 * Undefined where it is not set, or empty. Node.js puts U+FFFD in place of bytes that are not UTF-8: two different names
 * would become one.
 */
export function readEnvironment(name: 'SEMEL_MODE' | 'SEMEL_NAMESPACE' | 'SEMEL_STORE'): string | undefined {
  const value = process.env[name] || undefined;
  if (value?.includes('\u{fffd}') !== true) return value;
  throw new SemelError('INVALID_ARGS', `\`${name}\` is not valid UTF-8.`, {
    path: name,
    next: 'Set it in a UTF-8 locale.',
  });
}
