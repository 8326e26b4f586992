// What each test runner plays: one right tool, whose table is printed, and one wrong one, whose fix is in the error.
// Without `expect` and without imports at run time, so that any runner can take it.

import type { createSemel } from 'semel';
import type { landsOnce } from 'semel/testing';

export interface Package {
  readonly createSemel: typeof createSemel;
  readonly landsOnce: typeof landsOnce;
}

interface Order {
  readonly item: string;
  readonly reason: string;
}

export async function rightTool({ createSemel, landsOnce }: Package): Promise<void> {
  await using semel = createSemel({ store: 'memory:', namespace: 'smoke', onWarning: () => undefined });
  const orders: Order[] = [];
  const order = semel.tool({
    name: 'order',
    effect: 'irreversible',
    per: 'turn',
    content: ['reason'],
    run(given: Order) {
      orders.push(given);
      return { number: orders.length, at: new Date(), lines: [given] };
    },
  });
  const args = { item: 'desk', reason: 'the old one broke' };
  const table = await landsOnce(order, args, {
    effects: () => orders.length,
    reword: (given) => ({ ...given, reason: 'a new desk is needed' }),
    otherArgs: { ...args, item: 'chair' },
  });
  console.log(String(table));
  if (table.rows.some(({ status }) => status === 'failed')) throw new Error('A failed row must throw.');
}

/** Rejects with the table: the runner must show it. */
export async function wrongTool({ createSemel, landsOnce }: Package): Promise<void> {
  await using semel = createSemel({ store: 'memory:', namespace: 'smoke', onWarning: () => undefined });
  const orders: Order[] = [];
  const order = semel.tool({
    name: 'order',
    effect: 'irreversible',
    per: 'turn',
    run: (given: Order) => orders.push(given),
  });
  const args = { item: 'desk', reason: 'the old one broke' };
  await landsOnce(order, args, {
    effects: () => orders.length,
    reword: (given) => ({ ...given, reason: 'a new desk is needed' }),
  });
}
