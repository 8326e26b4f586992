// What a caller hears, in one word, and the value that came with it.

import type { ErrorCode, Result } from '../../src/index.ts';

export type Word = 'run' | 'replay' | 'busy' | 'doubt' | ErrorCode;

export interface Heard {
  readonly word: Word;
  readonly value: unknown;
  readonly acceptedRepeat: boolean;
  readonly key: string;
  readonly message?: string;
}

export function heard(result: Result): Heard {
  const { receipt } = result;
  return {
    word: wordOf(result),
    value: result.ok ? result.value : undefined,
    acceptedRepeat: receipt.acceptedRepeat,
    key: receipt.key,
    ...(result.ok ? {} : { message: result.error.message }),
  };
}

function wordOf(result: Result): Word {
  if (result.ok) return result.receipt.replayed ? 'replay' : 'run';
  if (result.error.code === 'IN_FLIGHT') return 'busy';
  return result.error.code === 'IN_DOUBT' ? 'doubt' : result.error.code;
}
