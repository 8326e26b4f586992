// Crashes of the server under load. `npm run chaos -- server-crash` has more of them.
import { expect, test } from 'vitest';
import { formatViolation, shortfalls } from '../../../src/testing/checker/index.ts';
import { kinds } from './kinds.ts';
import { farStoreNames } from './ledger.ts';
import { storm } from './storm.ts';

const kind = kinds['server-crash'];
const crashes = 3;

test.each(farStoreNames)(
  '%s crashes under load: nothing is doubled, nothing is lost',
  async (store) => {
    let missing: string[] = [];
    for (let round = 1; round <= 3; round += 1) {
      const seed = Math.floor(Math.random() * 2 ** 32);
      const { workers, faultEveryMs } = kind;
      const report = await storm({
        store,
        seed,
        workers,
        faultEveryMs,
        faults: kind.faults(crashes),
        maxMs: 60_000,
      });
      const { logs: _logs, violations, notOnce, ...counts } = report;
      console.log(JSON.stringify({ store, seed, ...counts }));
      expect(violations.map(formatViolation).join('\n\n')).toBe('');
      expect(notOnce).toEqual([]);
      expect(report.faults.crash).toBe(crashes);
      missing = shortfalls(report.effort, kind.minimum(crashes));
      if (missing.length === 0) return;
    }
    expect(missing).toEqual([]);
  },
  240_000,
);
