import type { Clock } from '../core/clock.ts';

/** Sleeps until the timeout or the first abort. */
export function pause(
  clock: Clock,
  ms: number,
  signals: readonly (AbortSignal | undefined)[] = [],
  background?: 'background',
): Promise<void> {
  return new Promise((resolve) => {
    if (signals.some((signal) => signal?.aborted)) return resolve();
    const end = () => {
      clock.clearTimeout(timer);
      for (const signal of signals) signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.setTimeout(end, ms, background);
    for (const signal of signals) signal?.addEventListener('abort', end);
  });
}
