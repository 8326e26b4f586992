// Every store answers the same history as the reference does; `npm run chaos -- same-history` plays many more.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Ledger, ledgers, reference } from './ledgers.ts';
import { difference } from './play.ts';

/** Histories in which a store differed once. */
const regressions: readonly number[] = [];
/** Every request to these is one over HTTP; `cells` plays the others against the same code. */
const slow = ['dynamodb', 's3'];

describe.each(Object.keys(ledgers))('%s', (name) => {
  const runs = slow.includes(name) ? 25 : 200;
  let ledger: Ledger | undefined;
  beforeAll(async () => {
    ledger = await ledgers[name]?.();
  });
  afterAll(() => ledger?.end());

  test(`answers ${runs} histories as the reference does`, async (context) => {
    if (ledger === undefined) return context.skip('it is not to be had on this machine');
    for (const seed of [...regressions, ...Array.from({ length: runs }, (_, nth) => nth + 1)])
      expect(await difference(seed, ledger, reference())).toBeUndefined();
  });
});
