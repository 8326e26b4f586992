// A wire that fails at each message of each operation. `npm run chaos -- wire` hurts each in every manner.
import { randomBytes } from 'node:crypto';
import { describe, expect, inject, test } from 'vitest';
import { hurtLedger } from './ledgers.ts';
import { operations } from './operations.ts';
import { faultEveryFrame, manners } from './wire.ts';

describe.each(['postgres', 'redis'] as const)('over a wire that fails, %s', (kind) => {
  const url = inject(kind === 'postgres' ? 'postgresUrl' : 'redisUrl');
  for (const [nth, operation] of operations.entries()) {
    test.skipIf(url === '').concurrent(`${operation.name} answers, or can be asked again`, async () => {
      const name = `wire_${nth}_${randomBytes(4).toString('hex')}`;
      await using ledger = await hurtLedger(kind, url, name, 700);
      const report = await faultEveryFrame({
        ...ledger,
        operation,
        // Each message in one manner, each manner at one message after the other.
        mannersOf: (frame) => [manners[(frame + nth) % manners.length] as (typeof manners)[number]],
      });
      expect(report.wrong).toEqual([]);
      expect(report.hits).toBeGreaterThan(0);
    });
  }
});
