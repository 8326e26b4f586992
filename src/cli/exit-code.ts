// What an error means to a shell. docs/cli.md lists the codes.

import { isSemelError } from '../core/errors.ts';

export function exitCodeOf(error: unknown): number {
  if (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')) return 64;
  if (isSemelError(error, 'INVALID_ARGS')) return 64;
  if (isSemelError(error) && error.code.startsWith('STORE_')) return 69;
  return 70;
}
