// Variables of the environment that name a ledger or a part of it.

import { isAbsolute } from 'node:path';
import { SemelError } from '../../core/errors.ts';

/**
 * Undefined where it is not set, or empty. Node.js puts U+FFFD in place of bytes that are not UTF-8: two different names
 * would become one.
 */
export function readEnvironment(name: 'SEMEL_MODE' | 'SEMEL_NAMESPACE' | 'SEMEL_STORE'): string | undefined {
  const value = process.env[name] || undefined;
  if (value?.includes('\u{fffd}'))
    throw new SemelError('INVALID_ARGS', `\`${name}\` is not valid UTF-8.`, {
      path: name,
      next: 'Set it in a UTF-8 locale.',
    });
  // The variable applies in every folder, and each may have another file of that name.
  if (name === 'SEMEL_STORE' && value?.startsWith('module:') && !isAbsolute(value.slice('module:'.length)))
    throw new SemelError('INVALID_ARGS', '`SEMEL_STORE` names a module by a relative path.', {
      path: name,
      next: 'Write its absolute path: semel does not load code from the current folder.',
    });
  return value;
}
