// What is asked again after its answer was lost, at the store itself: found by the wire that fails at each message.
import { randomBytes } from 'node:crypto';
import { describe, expect, inject, test } from 'vitest';
import { take } from '../../src/testing/store-contract/attempt.ts';
import { hurtLedger } from './ledgers.ts';

describe.each(['postgres', 'redis'] as const)('%s', (kind) => {
  const url = inject(kind === 'postgres' ? 'postgresUrl' : 'redisUrl');
  const name = () => `lost_${randomBytes(4).toString('hex')}`;

  test.skipIf(url === '')('a success that was not answered is no news from a stranger', async () => {
    await using ledger = await hurtLedger(kind, url, name(), 10_000);
    const { store, proxy } = ledger;
    const holder = await take(store, { crossing: true });
    proxy.next('request', 'cut-before');
    await expect(holder.succeed()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    // What was remembered of the record went with the connection; that is no sign that the record is gone.
    await expect
      .poll(() => holder.succeed().catch(() => undefined))
      .toMatchObject({ settled: true, fenced: false });
  });
});
