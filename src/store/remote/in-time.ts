// A server that stands still must not keep its callers for ever; what it does after all is found by the token.

import type { Clock } from '../../core/clock.ts';

export function withTimeout<T>(answer: Promise<T>, clock: Clock, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimeout(
      () => reject(new Error(`no answer within ${timeoutMs} ms`)),
      timeoutMs,
      'background',
    );
    answer.then(resolve, reject).finally(() => clock.clearTimeout(timer));
  });
}
