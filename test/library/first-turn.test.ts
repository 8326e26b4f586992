// One call of a model that is dispatched again in another turn: its tool_call_id tells in which turn it belongs.

import { describe, expect, test } from 'vitest';
import { isCallsNamespace, isUnique } from '../../src/call/modes/original-turn.ts';
import type { ClaimRequest } from '../../src/store/store.ts';
import { hookedStore } from '../processes/hooked-store.ts';
import { gate, rest, rig } from './support.ts';

const id = 'call_Vn3eXzK8pQ2mWb7RtYcL4s9D';
const other = 'toolu_01A09q90qw90lq917835lq9X';
const refund = { name: 'refund', effect: 'write-non-idempotent', per: 'turn' } as const;
const at = (turn: string, toolCallId = id, conversation = 'c1') => ({ conversation, turn, toolCallId });

function refunds(options: Parameters<typeof rig>[0] = {}) {
  const made = rig(options);
  const ran: unknown[] = [];
  const run = async (args: { charge: string }) => {
    ran.push(args);
    return { id: `r-${ran.length}` };
  };
  return { ...made, ran, run, tool: made.semel.tool({ ...refund, run }) };
}

test('the same call in another turn replays: an approval that is sent twice lands once', async () => {
  const { tool, ran } = refunds();
  const first = await tool({ charge: 'ch_1' }, at('request 1'));
  const second = await tool.try({ charge: 'ch_1' }, at('request 2'));
  expect(second).toMatchObject({ ok: true, value: first, receipt: { replayed: true } });
  expect(ran).toHaveLength(1);
});

test('it belongs to its first turn: a new plan in that turn replays too', async () => {
  const { tool, ran } = refunds();
  await tool({ charge: 'ch_1' }, at('1'));
  await tool({ charge: 'ch_1' }, at('2'));
  await tool({ charge: 'ch_1' }, at('1', other));
  expect(ran).toHaveLength(1);
});

test.each<[string, Parameters<ReturnType<typeof refunds>['tool']>]>([
  ['other args', [{ charge: 'ch_2' }, at('2')]],
  ['another conversation', [{ charge: 'ch_1' }, at('2', id, 'c2')]],
  ['another call', [{ charge: 'ch_1' }, at('2', other)]],
  ['a further time on purpose', [{ charge: 'ch_1' }, { ...at('2'), again: 'the customer asked' }]],
])('%s is an intent of its own', async (_what, call) => {
  const { tool, ran } = refunds();
  await tool({ charge: 'ch_1' }, at('1'));
  await tool(...call);
  expect(ran).toHaveLength(2);
});

test('an id that a provider uses twice, for other args, moves nothing into the turn of the first', async () => {
  const { tool, ran } = refunds();
  await tool({ charge: 'ch_1' }, at('1'));
  await tool({ charge: 'ch_2' }, at('1', other));
  await tool({ charge: 'ch_2' }, at('5'));
  expect(ran).toHaveLength(3);
});

test('an id that a model counts says nothing: the same wish in a later turn runs', async () => {
  const { tool, ran } = refunds();
  for (const turn of ['1', '5']) await tool({ charge: 'ch_1' }, at(turn, 'call_0'));
  expect(ran).toHaveLength(2);
});

test('two processes that dispatch it at once, each in a turn of its own, run it once', async () => {
  const made = refunds();
  const end = gate();
  const slow = async (args: { charge: string }) => {
    await end.promise;
    return made.run(args);
  };
  const calls = ['1', '2', '3'].map((turn) =>
    made
      .another()
      .tool({ ...refund, run: slow })
      .try({ charge: 'ch_1' }, at(turn)),
  );
  await rest();
  end.resolve();
  const results = await made.clock.until(Promise.all(calls));
  expect(results.map(({ ok }) => ok)).toEqual([true, true, true]);
  expect(made.ran).toHaveLength(1);
});

test('what is in doubt stays in doubt in another turn', async () => {
  const { semel, ran } = refunds();
  const tool = semel.tool({
    ...refund,
    name: 'refund.lost',
    run: () => {
      ran.push('sent');
      throw new Error('socket hang up');
    },
  });
  await tool.try({ charge: 'ch_1' }, at('1'));
  expect(await tool.try({ charge: 'ch_1' }, at('2'))).toMatchObject({ error: { code: 'IN_DOUBT' } });
  expect(ran).toHaveLength(1);
});

test('what is in doubt for longer than the window stays in doubt in another turn', async () => {
  const { semel, ran, clock } = refunds();
  const tool = semel.tool({
    ...refund,
    name: 'refund.lost',
    window: '1h',
    run: () => {
      ran.push('sent');
      throw new Error('socket hang up');
    },
  });
  await tool.try({ charge: 'ch_1' }, at('1'));
  clock.jump(72 * 3_600_000);
  expect(await tool.try({ charge: 'ch_1' }, at('2'))).toMatchObject({ error: { code: 'IN_DOUBT' } });
  expect(ran).toHaveLength(1);
});

test('a late call in another turn gets the result of what ran in time', async () => {
  const { semel, tool, ran, clock } = refunds();
  await tool({ charge: 'ch_1' }, at('1'));
  const late = { ...at('2'), notAfter: clock.now() - 1 };
  expect(await tool.try({ charge: 'ch_1' }, late)).toMatchObject({ ok: true, receipt: { replayed: true } });
  expect(await semel.begin(tool, { charge: 'ch_1' }, late)).toMatchObject({ result: { ok: true } });
  expect(ran).toHaveLength(1);
});

test('a tool that has another name and other fields since then finds it too', async () => {
  const { semel, run, tool, ran } = refunds();
  await tool({ charge: 'ch_1' }, at('1'));
  const content = ['note'] as never;
  const renamed = semel.tool({ ...refund, name: 'refund.new', content, was: [{ name: 'refund' }], run });
  expect(await renamed.try({ charge: 'ch_1' }, at('2'))).toMatchObject({ receipt: { replayed: true } });
  expect(ran).toHaveLength(1);
});

test('`begin` knows it too', async () => {
  const { semel, tool, ran } = refunds();
  await tool({ charge: 'ch_1' }, at('1'));
  expect(await semel.begin(tool, { charge: 'ch_1' }, at('2'))).toMatchObject({ execute: false });
  expect(ran).toHaveLength(1);
});

test('a call that cannot look it up does not run it', async () => {
  const made = refunds();
  const store = hookedStore(made.store, {
    before: async (method, request) => {
      if (method === 'claim' && isCallsNamespace((request as ClaimRequest).namespace))
        throw new Error('connection lost');
    },
  });
  const tool = made.another({ store }).tool({ ...refund, run: made.run });
  const result = await made.clock.until(tool.try({ charge: 'ch_1' }, at('1')));
  expect(result).toMatchObject({ error: { code: 'STORE_UNAVAILABLE' } });
  expect(made.ran).toHaveLength(0);
});

test('a mark whose settlement was lost still names the first turn', async () => {
  const made = refunds();
  const store = hookedStore(made.store, {
    before: async (method, request) => {
      if (method === 'settle' && isCallsNamespace((request as ClaimRequest).namespace))
        throw new Error('connection lost');
    },
  });
  const tool = made.another({ store }).tool({ ...refund, run: made.run });
  await made.clock.until(tool({ charge: 'ch_1' }, at('1')));
  await made.clock.advance(3_600_000);
  await made.clock.until(tool({ charge: 'ch_1' }, at('2')));
  expect(made.ran).toHaveLength(1);
});

test('it answers as long as the record of the call, and no longer', async () => {
  const { semel, run, ran, clock } = refunds();
  const tool = semel.tool({ ...refund, window: '1h', name: 'refund.short', run });
  await tool({ charge: 'ch_1' }, at('1'));
  clock.jump(59 * 60_000);
  await tool({ charge: 'ch_1' }, at('2'));
  expect(ran).toHaveLength(1);
  clock.jump(2 * 60_000);
  await tool({ charge: 'ch_1' }, at('3'));
  expect(ran).toHaveLength(2);
});

test('the mark is not an effect: it is not listed, counted or reported', async () => {
  const { semel, tool } = refunds();
  const heard: string[] = [];
  for (const name of ['claimed', 'settled', 'dispatched', 'replayed'] as const)
    semel.on(name, ({ namespace }) => heard.push(`${name} ${namespace}`));
  await tool({ charge: 'ch_1' }, at('1'));
  await tool({ charge: 'ch_1' }, at('2'));
  expect(heard).toEqual(['claimed test', 'dispatched test', 'settled test', 'replayed test']);
  expect((await semel.records.list()).items).toHaveLength(1);
  expect(await semel.records.namespaces()).toEqual(['test']);
});

describe('which ids tell one call from every other', () => {
  test.each([
    'call_Vn3eXzK8pQ2mWb7RtYcL4s9D',
    'toolu_01A09q90qw90lq917835lq9',
    'chatcmpl-tool-9c1f4b7a2d8e4f60a1b2c3d4e5f60718',
    'fc_68a1b2c3d4e5f60718293a4b5c6d7e8f',
    '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
    'aB3dE6gH9jK2mN5p',
  ])('%s does', (each) => expect(isUnique(each, 'refund')).toBe(true));

  test.each([
    'call_0',
    'call_1',
    '1',
    'functions.refund:0',
    'refund',
    'refundTheWholeCharge2',
    '1763287441123456789',
    'thesameforeverycall',
    'D681PevKs',
    'toolcall000000000017',
    '00000000-0000-0000-0000-000000000000',
    'c6437ef1-5b86-3a4e-a071-c2d4ad414e65',
    'cfbff0d1-9375-5685-968c-48ce8b15ae17',
  ])('%s does not', (each) => expect(isUnique(each, 'billing.refund')).toBe(false));
});
