// A tool that its framework or the caller of `begin` executes: a sweep asks its `verify`, and never calls its `run`.

import { landed, notLanded, type Semel } from 'semel';
import { guard } from 'semel/ai-sdk';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type Rig, rest, rig } from './support.ts';

const provider = { name: 'ann.pay', window: '24h', hosts: ['pay.example'] } as const;
const terms = { effect: 'irreversible', per: 'ever', lease: '30s', timeout: '1m', window: '12h' } as const;
const inputSchema = z.object({ id: z.number() });
const options = { toolCallId: 'call', messages: [] };

type Terms = Partial<typeof terms> & { provider?: typeof provider; verify?: () => ReturnType<typeof landed> };

/** An agent's tools in one process: a refund whose reply never comes, and one that settles what is open. */
function agent(semel: Semel, sent: unknown[], more: Terms) {
  const execute = (args: { id: number }, _: object) => {
    sent.push(args);
    return new Promise<string>(() => undefined);
  };
  const settle = { inputSchema: z.object({}), execute: (_: object, __: object) => semel.doubts.sweep() };
  return guard(
    semel,
    { refund: { inputSchema, execute }, settle },
    { refund: { ...terms, ...more }, settle: { effect: 'write-non-idempotent', per: 'ever' } },
  );
}

async function dies({ store, clock }: Rig): Promise<void> {
  await rest();
  store.break('renew');
  await clock.advance(31_000);
  store.repair();
}

test('a sweep inside a run of another tool does not execute that tool in place of the one in doubt', async () => {
  const made = rig();
  const sent: unknown[] = [];
  void agent(made.another(), sent, { provider }).refund.execute({ id: 1 }, options);
  await dies(made);
  const { settle, refund } = agent(made.semel, sent, { provider });
  const swept = await made.clock.until(settle.execute({}, options) as Promise<unknown>);
  expect(swept).toEqual({ landed: 0, notLanded: 0, open: 1 });
  // The framework still has the call: it sends the refund again, under the provider's key.
  void refund.execute({ id: 1 }, options);
  await made.clock.advance(10);
  expect(sent).toEqual([{ id: 1 }, { id: 1 }]);
});

test('a sweep asks `verify` of a framework tool, also if its provider would take the key again', async () => {
  const made = rig();
  const sent: unknown[] = [];
  const verified = { provider, verify: () => landed('re_1') };
  void agent(made.another(), sent, verified).refund.execute({ id: 1 }, options);
  await dies(made);
  const { refund } = agent(made.semel, sent, verified);
  expect(await made.clock.until(made.semel.doubts.sweep())).toEqual({ landed: 1, notLanded: 0, open: 0 });
  expect(await refund.execute({ id: 1 }, options)).toBe('re_1');
  expect(sent).toHaveLength(1);
});

test('a sweep does not change records of framework tools', async () => {
  const made = rig();
  void agent(made.another(), [], { provider }).refund.execute({ id: 1 }, options);
  await dies(made);
  agent(made.semel, [], { provider });
  const open = async () => (await made.semel.records.list({ inDoubt: true })).items;
  const before = await open();
  expect(before).toHaveLength(1);
  await made.clock.until(made.semel.doubts.sweep());
  expect(await open()).toEqual(before);
});

test.each(['before', 'after'])(
  'a sweep does not take a stub for the effect that a caller of `begin` executes (defined again %s)',
  async (when) => {
    const made = rig();
    const definition = {
      ...terms,
      name: 'refund',
      verifyAfter: '1s',
      verify: () => notLanded(),
      run: (_: { id: number }) => 'a stub',
    } as const;
    if (when === 'before') made.semel.tool(definition);
    const begun = await made.semel.begin(made.semel.tool(definition), { id: 1 });
    if (!begun.execute) return expect.fail('not executed');
    await begun.attempt.unknown(new Error('socket hang up'));
    if (when === 'after') made.semel.tool(definition);
    await made.clock.advance(120_000);
    expect(await made.clock.until(made.semel.doubts.sweep())).toEqual({ landed: 0, notLanded: 1, open: 0 });
    // It is free now, and its caller executes it.
    const again = await made.semel.begin(made.semel.tool(definition), { id: 1 });
    expect(again.execute).toBe(true);
    if (again.execute) await again.attempt.succeed('re_1');
  },
);
