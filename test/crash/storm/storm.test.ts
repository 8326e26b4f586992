// The short storms of CI. `npm run chaos` has the long ones.
import { describe, expect, inject, test } from 'vitest';
import { formatViolation, shortfalls } from '../../support/checker/index.ts';
import type { FaultCounts } from './faults.ts';
import { cellStoreNames, type StoreName, storeNames } from './ledger.ts';
import { minimumOf } from './minimum.ts';
import { storm } from './storm.ts';

const faultsOf: Record<StoreName, FaultCounts & { kill: number }> = {
  // Without a server that crashes, only workers that were stopped come back too late.
  sqlite: { kill: 18, stop: 10 },
  postgres: { kill: 15, stop: 5, crash: 3 },
  redis: { kill: 15, stop: 5, crash: 3 },
};

describe.each(storeNames)('a short storm on %s', (store) => {
  const isMissing = store === 'redis' && inject('redisUrl') === '';
  test.skipIf(isMissing)(
    'nothing is doubled, nothing is lost',
    async () => {
      let missing: string[] = [];
      // A storm in which too little happened proves nothing. Chance decides, so it is made again; a violation never is.
      for (let round = 1; round <= 3; round += 1) {
        const seed = Math.floor(Math.random() * 2 ** 32);
        const faults = faultsOf[store];
        const report = await storm({
          store,
          seed,
          workers: 8,
          faults,
          maxMs: 60_000,
          leastEffects: 1_200,
          faultEveryMs: 120,
        });
        const { logs: _logs, violations, notOnce, ...counts } = report;
        console.log(JSON.stringify({ store, seed, ...counts }));
        expect(violations.map(formatViolation).join('\n\n')).toBe('');
        expect(notOnce).toEqual([]);
        missing = shortfalls(report.effort, minimumOf(faults.kill));
        if (report.faults.crash < (faults.crash ?? 0)) missing.push(`Only ${report.faults.crash} crashes.`);
        if (missing.length === 0) return;
      }
      expect(missing).toEqual([]);
    },
    // Three rounds, each with its calm.
    600_000,
  );
});

// Side by side: what takes time is waiting for leases.
test.concurrent.each(cellStoreNames)(
  'a small storm on %s: nothing is doubled, nothing is lost',
  async (store) => {
    const seed = Math.floor(Math.random() * 2 ** 32);
    // Few and small: every call is several requests, and afterwards each intent is called again and read.
    const faults = { kill: 4, stop: 1 };
    const report = await storm({
      store,
      seed,
      workers: 2,
      faults,
      maxMs: 90_000,
      leastEffects: 40,
      faultEveryMs: 300,
    });
    const { logs: _logs, violations, notOnce, ...counts } = report;
    console.log(JSON.stringify({ store, seed, ...counts }));
    expect(violations.map(formatViolation).join('\n\n')).toBe('');
    expect(notOnce).toEqual([]);
    expect(report.faults.kill).toBe(faults.kill);
  },
  600_000,
);
