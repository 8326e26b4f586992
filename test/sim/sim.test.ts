// A short simulation with every test run; CI runs 60,000 histories in a step of its own (scripts/verify.ts).
import { describe, expect, test } from 'vitest';
import { newTally, runBlock } from './block.ts';
import { runHistory } from './history.ts';
import { isVoid } from './report.ts';
import { outside } from './scheduler.ts';

describe('the simulator', () => {
  test('finds no violation in 2,000 histories', { timeout: 180_000 }, async () => {
    const result = await outside(() => runBlock({ seed: 1, count: 2_000 }, false));
    expect(result.failures).toEqual([]);
    expect(isVoid(result)).toBe(false);
  });

  test('plays the same history again, event by event', async () => {
    const play = (seed: number) => {
      const { table, faults: faultCounts } = newTally();
      const lines: string[] = [];
      const outcome = runHistory({ seed, table, faultCounts, trace: (line) => lines.push(line) });
      return { lines, fingerprint: outcome.fingerprint };
    };
    const [first, second, other] = await outside(() => [play(7), play(7), play(8)]);
    expect(first?.lines.length).toBeGreaterThan(20);
    expect(first).toEqual(second);
    expect(first?.fingerprint).not.toBe(other?.fingerprint);
  });
});
