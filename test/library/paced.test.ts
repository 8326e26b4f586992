// Every hundredth answer waits for the next turn of the event loop, so that timers are not starved.
import { createSemel, isSemelError } from 'semel';
import { expect, test } from 'vitest';
import { z } from 'zod';

test('a call that is refused while its answer waits for its turn leaves no rejection that nobody handles', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.prependListener('unhandledRejection', note);
  await using semel = createSemel({ store: 'memory:', namespace: 'paced', onWarning: () => {} });
  const tool = semel.tool({
    name: 'refund',
    effect: 'write-non-idempotent',
    per: 'ever',
    input: z.object({ order: z.string() }),
    run: () => 1,
  });
  for (let call = 0; call < 200; call += 1) {
    const result = await tool.try({ order: 17 } as never);
    expect(!result.ok && result.error.code).toBe('INVALID_ARGS');
    await expect(tool({ order: 17 } as never)).rejects.toSatisfy(isSemelError);
  }
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});
