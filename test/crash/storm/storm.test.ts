// The short storm of CI. `npm run chaos -- kill` has the long one.
import { expect, test } from 'vitest';
import { formatViolation, shortfalls } from '../../../src/testing/checker/index.ts';
import { storeNames } from './ledger.ts';
import { minimumOf } from './minimum.ts';
import { storm } from './storm.ts';

test.each(storeNames)(
  'a short storm of kills and stops on %s: nothing is doubled, nothing is lost',
  async (store) => {
    let missing: string[] = [];
    // A storm in which too little happened proves nothing. Chance decides, so it is made again; a violation never is.
    for (let round = 1; round <= 3; round += 1) {
      const seed = Math.floor(Math.random() * 2 ** 32);
      const faults = { kill: 25, stop: 8 };
      const report = await storm({ store, seed, workers: 8, faults, maxMs: 60_000, faultEveryMs: 120 });
      const { logs: _logs, violations, notOnce, ...counts } = report;
      console.log(JSON.stringify({ store, seed, ...counts }));
      expect(violations.map(formatViolation).join('\n\n')).toBe('');
      expect(notOnce).toEqual([]);
      missing = shortfalls(report.effort, minimumOf(faults.kill));
      if (missing.length === 0) return;
    }
    expect(missing).toEqual([]);
  },
  240_000,
);
