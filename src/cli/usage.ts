// Errors in a command line.

import { SemelError } from '../core/errors.ts';

/** Exit code 64. */
export function usageError(command: string, happened: string, next?: string): SemelError {
  return new SemelError('INVALID_ARGS', `${happened}.`, {
    next: next ?? `See \`semel ${command} --help\`.`,
  });
}
