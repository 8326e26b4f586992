// What the error of a call says when an error of semel was thrown inside its `run`: the advice of what is really in doubt.
import { createSemel, NotLanded, PartialSuccess, type Semel } from 'semel';
import { memoryStore } from 'semel/memory';
import { afterEach, beforeEach, expect, test } from 'vitest';

let semel: Semel;
beforeEach(() => {
  semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: () => undefined });
});
afterEach(() => semel.close({ grace: 0 }));

const hangUp = () => {
  throw new Error('socket hang up');
};
const once = { effect: 'write-non-idempotent', per: 'ever' } as const;

test('a step in doubt: its own record is named, then the call is made again', async () => {
  let charge: () => string = hangUp;
  const order = semel.tool({
    ...once,
    name: 'order',
    via: 'steps',
    run: async (_: { id: number }, ctx) => ctx.step('charge', () => charge()),
  });
  const { error } = (await order.try({ id: 1 })) as { error: Error };
  const step = (await semel.doubts.list({ contract: 'order.charge' })).items[0];
  expect(error).toMatchObject({ code: 'IN_DOUBT', retriable: false });
  expect(error.message).toMatch(
    /^order: order\.charge: socket hang up\. It may have landed, so nothing was done again\. Decide order\.charge first: check whether it landed, then /,
  );
  expect(error.message).toContain(`'${step?.ref}'`);
  expect(error.message).toMatch(/Then call again: the steps that landed are not repeated\. More: /);

  // What it says helps.
  charge = () => 'ch_1';
  await semel.doubts.resolve(step?.ref ?? '', { landed: 'ch_0' }, { by: 'test' });
  expect(await order({ id: 1 })).toBe('ch_0');
});

test('another tool in doubt inside a tool: first that one, then the call itself, explained once', async () => {
  const mail = semel.tool({ ...once, name: 'mail', run: (_: { id: number }) => hangUp() });
  const order = semel.tool({
    ...once,
    name: 'order',
    run: async ({ id }: { id: number }) => {
      await mail({ id }).catch((error) => {
        throw new Error('the mail failed', { cause: error });
      });
    },
  });
  const { error } = (await order.try({ id: 1 })) as { error: Error };
  const refs = new Map((await semel.doubts.list()).items.map(({ contract, ref }) => [contract, ref]));
  const [first, second] = error.message.split(' Then order: ');
  expect(first).toContain('Decide mail first: check whether it landed');
  expect(first).toContain(`'${refs.get('mail')}'`);
  expect(second).toContain(`'${refs.get('order')}'`);
  expect(error.message.match(/It may have landed/g)).toHaveLength(1);
});

test('a misuse inside a tool keeps its advice', async () => {
  const order = semel.tool({
    ...once,
    name: 'order',
    run: ({ id }: { id: number }) => semel.once('mail', { id }, { per: 'turn' }, () => 1),
  });
  const { error } = (await order.try({ id: 1 })) as { error: Error };
  expect(error.message).toMatch(
    /Wrap the call in `semel\.within.* Then check whether order landed, and call semel/,
  );
});

test('part of it landed: do the rest, and no word of requests on their way', async () => {
  const batch = semel.tool({
    ...once,
    name: 'batch',
    run: (_: { id: number }) => {
      throw new PartialSuccess(['m-1'], '1 of 2 mails is out');
    },
  });
  const { error } = (await batch.try({ id: 1 })) as { error: Error };
  expect(error.message).toMatch(
    /^batch: 1 of 2 mails is out\. Only part of it landed, so nothing was done again\. Do the rest by hand, then call /,
  );
  expect(error.message).not.toMatch(/on its way|may have landed/);

  const order = semel.tool({
    ...once,
    name: 'order',
    via: 'steps',
    async run(_: { id: number }, ctx) {
      await ctx.step('charge', () => 'ch_1');
      await ctx.step('ship', () => {
        throw new NotLanded('no stock');
      });
    },
  });
  const partial = (await order.try({ id: 1 })) as { error: Error };
  expect(partial.error.message).toMatch(
    /^order: charge landed, ship did not land: no stock\. Call again: .* Or do the rest by hand/,
  );
  expect(partial.error.message).not.toMatch(/on its way|may have landed/);
});
