// What is wrong with a file that somebody gave, and where.

import type { SemelError } from '../../../core/errors.ts';
import { usageError } from '../../usage.ts';

export function malformed(line: number, what: string, next?: string): SemelError {
  return usageError(
    'resolve',
    `line ${line} ${what}`,
    `Nothing was settled. ${next ?? 'Correct the file and try again.'}`,
  );
}
