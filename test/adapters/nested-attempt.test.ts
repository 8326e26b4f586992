// Tools called from inside another tool's run: each has its own attempt.

import { currentAttempt, guard } from 'semel/ai-sdk';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { quick } from '../library/support.ts';

test('a tool of semel that a guarded tool calls does not find the key of the outer attempt', async () => {
  const semel = quick();
  const inputSchema = z.object({ id: z.number() });
  const options = { toolCallId: 'call', messages: [] };
  const keys: (string | undefined)[] = [];
  const item = semel.tool({
    name: 'order.item',
    effect: 'irreversible',
    per: 'ever',
    input: inputSchema,
    run: (_, ctx) => {
      keys.push(currentAttempt()?.key);
      return ctx.key;
    },
  });
  const inner = guard(semel, { item });
  const execute = async ({ id }: { id: number }, _: object) => {
    keys.push(currentAttempt()?.key);
    for (const part of [1, 2]) await inner.item.execute({ id: id + part }, options);
    keys.push(currentAttempt()?.key);
    return 'ordered';
  };
  const { order } = guard(
    semel,
    { order: { inputSchema, execute } },
    { order: { effect: 'irreversible', per: 'ever' } },
  );
  expect(await order.execute({ id: 10 }, options)).toBe('ordered');
  const [outer, first, second, after] = keys;
  expect(outer).toEqual(expect.any(String));
  expect([first, second]).toEqual([undefined, undefined]);
  expect(after).toBe(outer);
});
