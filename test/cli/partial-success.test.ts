// A tool of several steps that is half done: every caller, the model, `semel show` and `semel export` are told the same.

import { NotLanded, Rejected, type Semel } from 'semel';
import { expect, test } from 'vitest';
import { errorForModel } from '../../src/guard/model-text.ts';
import { operator } from './operator.ts';

const action = 'Refund the charge in Stripe.';
const told = 'charge landed, mail did not land';

function placeOrder(semel: Semel, thrown: Error) {
  return semel.tool({
    name: 'order.place',
    effect: 'write-non-idempotent',
    per: 'ever',
    via: 'steps',
    async run(_: { order: number }, ctx) {
      await ctx.step('charge', { correctiveAction: action }, () => 'ch_1');
      await ctx.step('mail', () => {
        throw thrown;
      });
    },
  });
}

test.each([
  ['a refused step', new Rejected('no such address')],
  ['a step that may be tried again', new NotLanded('the server is away')],
  // More than a record keeps of a message.
  ['a long reason', new Rejected(`no such address ${'x'.repeat(900)}`)],
])('%s: what landed, what did not, and what its author says to do', async (_, thrown) => {
  const desk = operator();
  const errors = await desk.by(async (semel) => {
    const place = placeOrder(semel, thrown);
    const results = [await place.try({ order: 1 }), await place.try({ order: 1 })];
    return results.map((result) => (result.ok ? undefined : errorForModel(result.error)));
  });
  // The second caller may be another process.
  errors.push(
    await desk.by(async (semel) => {
      const result = await placeOrder(semel, thrown).try({ order: 1 });
      return result.ok ? undefined : errorForModel(result.error);
    }),
  );
  for (const error of errors) {
    expect(error).toMatchObject({ code: 'PARTIAL_SUCCESS', message: expect.stringContaining(told) });
    expect(error?.correctiveAction).toMatch(/^Part of it is done\. /);
    expect(error?.correctiveAction).toContain(action);
  }
  const exported = (await desk.semel(['export'])).stdout;
  const record = exported
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
    .find(({ contract }) => contract === 'order.place');
  expect(record.error).toMatchObject({ code: 'PARTIAL_SUCCESS', next: action });
  expect(record.error.message).toContain(told);
  const shown = await desk.semel(['show', record.id]);
  expect(shown.stdout.replace(/\s+/g, ' ')).toContain(told);
  expect(shown.stdout).toContain(action);
});

test('what its author says is taken along to another ledger', async () => {
  const [desk, other] = [operator(), operator()];
  await desk.by((semel) => placeOrder(semel, new Rejected('no such address')).try({ order: 1 }));
  const { stdout } = await desk.semel(['export']);
  const errors = await other.by(async (semel) => {
    for (const line of stdout.split('\n').filter(Boolean)) await semel.records.import(JSON.parse(line));
    const { items } = await semel.doubts.list();
    return items.map(({ error }) => error);
  });
  expect(errors).toMatchObject([{ code: 'PARTIAL_SUCCESS', next: action }]);
});
