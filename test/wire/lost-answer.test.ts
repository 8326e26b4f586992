// What is asked again after its answer was lost, at the store itself: found by the wire that fails at each message.
import { randomBytes } from 'node:crypto';
import { describe, expect, inject, test } from 'vitest';
import { take } from '../../src/testing/store-contract/attempt.ts';
import { hurtLedger } from './ledgers.ts';

const dataRow = 'D'.charCodeAt(0);

describe.each(['postgres', 'redis'] as const)('%s', (kind) => {
  const url = inject(kind === 'postgres' ? 'postgresUrl' : 'redisUrl');
  const name = () => `lost_${randomBytes(4).toString('hex')}`;

  test.skipIf(url === '')(
    "a repeated success whose reply was lost is not a stranger's late success",
    async () => {
      await using ledger = await hurtLedger(kind, url, name(), 10_000);
      const { store, proxy } = ledger;
      const holder = await take(store, { crossing: true });
      proxy.next('request', 'cut-before');
      await expect(holder.succeed()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      // What was remembered of the record went with the connection; that is no sign that the record is gone.
      await expect
        .poll(() => holder.succeed().catch(() => undefined))
        .toMatchObject({ settled: true, fenced: false });
    },
  );

  test.skipIf(url === '')(
    'a connection that ends under a question fails that question, and no program',
    async () => {
      await using ledger = await hurtLedger(kind, url, name(), 10_000);
      const { store, proxy } = ledger;
      const unheard: unknown[] = [];
      const hear = (error: unknown) => unheard.push(error);
      process.on('unhandledRejection', hear);
      await take(store);
      proxy.next('reply', 'cut-before');
      await expect(store.read('shop', 'key')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      await new Promise((resolve) => setTimeout(resolve, 50));
      process.off('unhandledRejection', hear);
      expect(unheard).toEqual([]);
    },
  );

  test.skipIf(url === '')('a server that falls silent is found again on another connection', async () => {
    await using ledger = await hurtLedger(kind, url, name(), 700);
    const { store, proxy } = ledger;
    await take(store);
    // More often than there are connections; of Postgres only what a query answers, so that each finds another one.
    for (let times = 0; times < 5; times += 1) {
      proxy.rule(({ direction, bytes }) =>
        direction === 'reply' && (kind === 'redis' || bytes[0] === dataRow) ? 'black-hole' : undefined,
      );
      await store.read('shop', 'key').catch(() => undefined);
      proxy.calm();
    }
    await expect.poll(() => store.read('shop', 'key').then(() => 'answered', String)).toBe('answered');
  });
});
