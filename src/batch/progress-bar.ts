// Shows the progress of a batch: one line that is redrawn on a terminal, now and then a line elsewhere.

import { systemClock } from '../core/clock.ts';
import type { BatchProgress } from './report.ts';

interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** For `onProgress`. Writes to stderr, so that the program's output stays its own. */
export function progressBar(output: Output = process.stderr): (progress: BatchProgress) => void {
  const startedAt = systemClock.mono();
  const pauseMs = output.isTTY ? 100 : 10_000;
  let drawnAt = output.isTTY ? Number.NEGATIVE_INFINITY : startedAt;
  return (progress) => {
    const now = systemClock.mono();
    if (!progress.isOver && now - drawnAt < pauseMs) return;
    drawnAt = now;
    const line = describeProgress(progress, now - startedAt);
    if (!output.isTTY) output.write(`${line}\n`);
    // Clears what a longer line left behind.
    else output.write(`\r${line.slice(0, (output.columns ?? 80) - 1)}\u001b[K${progress.isOver ? '\n' : ''}`);
  };
}

const barWidth = 24;

export function describeProgress(progress: BatchProgress, elapsedMs: number): string {
  const { total, done, failed, inDoubt, skipped } = progress;
  const ended = done + failed + inDoubt + skipped;
  const perSecond = elapsedMs > 0 ? Math.round((ended * 1_000) / elapsedMs) : 0;
  // A source may have more items than it said.
  const share = total === undefined || total === 0 ? 1 : Math.min(1, ended / total);
  const filled = Math.floor(share * barWidth);
  const parts = [
    ...(total === undefined ? [] : [`[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}]`]),
    total === undefined ? count(ended) : `${count(ended)} of ${count(total)}`,
    ...(failed > 0 ? [`${count(failed)} failed`] : []),
    ...(inDoubt > 0 ? [`${count(inDoubt)} in doubt`] : []),
    ...(skipped > 0 ? [`${count(skipped)} skipped`] : []),
    `${count(perSecond)}/s`,
  ];
  return parts.join('  ');
}

function count(value: number): string {
  return value.toLocaleString('en');
}
