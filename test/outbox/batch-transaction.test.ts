// A batch in transactions of the caller's own function, where that function is wrong.

import { expect, test } from 'vitest';
import { places } from './places.ts';

test.each(places)(
  '$name: a `transaction` that forgets its result stops the batch, and its item is in doubt',
  async (place) => {
    await using at = await place.open({ cache: false });
    const ran: number[] = [];
    const forgets = async (work: (tx: unknown) => Promise<unknown>) => {
      await at.transaction(work as never);
    };
    const report = await at.semel.batch(
      'mail',
      [1, 2, 3],
      {
        effect: 'irreversible',
        id: (item) => item,
        run: 'r1',
        concurrency: 1,
        transaction: forgets as never,
      },
      async (item: number) => {
        ran.push(item);
      },
    );
    expect(ran).toEqual([1]);
    expect(report).toMatchObject({ done: 0, failed: 0, inDoubt: 1 });
    expect(report.problems[0]).toMatchObject({ error: { code: 'CONTRACT_INVALID', path: 'transaction' } });
  },
);
