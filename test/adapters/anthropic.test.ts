// The adapter for the Anthropic SDK, against the real package with canned replies. Numbers name the facts about the SDK
// that a test stands on: 5.1 the shape of a tool, 5.2 what it may return, 5.3 tools that start while the reply streams,
// 5.4 sessions, 5.5 a loop of one's own, 5.6 what is thrown.

import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { ToolError } from '@anthropic-ai/sdk/lib/tools/ToolError';
import { createSemel, NotLanded, type Semel } from 'semel';
import { memoryStore } from 'semel/memory';
import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { currentAttempt, guard, isToolError, toolResults } from '../../src/adapters/anthropic/index.ts';
import {
  canned,
  eagerRunner,
  type LooseCall,
  ownLoop,
  question,
  schemas,
  settings,
  toolRunner,
} from './anthropic-harness.ts';
import { playContract } from './contract.ts';

playContract('Anthropic tool runner', toolRunner);
playContract('Anthropic tool runner, eager', eagerRunner);
playContract('Anthropic, a loop of one’s own', ownLoop);

const args = { order: 'o-17', amount: 4200, reason: 'it arrived broken' };
const refund: LooseCall = { tool: 'refund', args };
const policy = { effect: 'irreversible', per: 'ever', content: ['reason'] } as const;

let semel: Semel;
let runs: string[];
beforeEach(() => {
  semel = createSemel({ store: memoryStore(), namespace: 'anthropic', onWarning: () => {} });
  runs = [];
  return () => semel.close({ grace: '1s' });
});

const options = { name: 'refund', description: 'Refunds an order.', inputSchema: schemas.refund };
const run = async (_args: unknown, context?: { toolUse: { id: string } }) => {
  runs.push(context?.toolUse.id ?? 'no id');
  return `re_${runs.length}`;
};
const refunding = () => betaZodTool({ ...options, run });
const use = (id: string, input: object = args) => ({ type: 'tool_use', id, name: 'refund', input }) as const;

async function play(tools: readonly unknown[], script: readonly (readonly LooseCall[])[]) {
  const { client, sent } = canned(script);
  const params = { ...settings, messages: question, tools: tools as never, thread: false as const };
  await client.beta.messages.toolRunner(params).runUntilDone();
  const blocks = sent.at(-1)!.messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content));
  return { sent, results: blocks.filter(({ type }) => type === 'tool_result') };
}

describe('the shape of a tool', () => {
  test('5.1 all fields but `run` stay, and the definition that is sent is the same', async () => {
    const bare = betaZodTool({ ...options, run, cache_control: { type: 'ephemeral' }, close: () => {} });
    const { run: _, ...kept } = guard(semel, bare, policy);
    expect(bare).toMatchObject(kept);
    const toolsOf = async (tool: object) => (await play([tool], [])).sent.map((body) => JSON.stringify(body));
    expect(await toolsOf(guard(semel, bare, policy))).toEqual(await toolsOf(bare));
  });

  test('5.1 `run` gets the parsed args and the call, and the key is made of these args', async () => {
    const inputSchema = z.object({ order: z.string().trim() });
    const seen: unknown[] = [];
    const trimming = betaZodTool({
      ...options,
      inputSchema,
      run: async (input, context) => {
        seen.push(input, context?.toolUse.id, typeof currentAttempt()?.key);
        return 'ok';
      },
    });
    const call = (order: string, id: string) => ({ tool: 'refund', args: { order }, id });
    const guarded = guard(semel, trimming, { effect: 'irreversible', per: 'ever' });
    await play([guarded], [[call('o-1', 'toolu_a')], [call(' o-1 ', 'toolu_b')]]);
    expect(seen).toEqual([{ order: 'o-1' }, 'toolu_a', 'string']);
  });

  test('5.1 args that do not fit never reach the ledger: the SDK says so itself', async () => {
    const { results } = await play(
      [guard(semel, refunding(), policy)],
      [[{ ...refund, args: { order: 1 } }]],
    );
    expect(results).toMatchObject([{ is_error: true, content: expect.stringContaining('Error: ') }]);
    expect((await semel.records.list()).items).toEqual([]);
  });
});

describe('what a tool may return', () => {
  test('5.2 a text stays a text; on a replay it is the first block, and the line the second', async () => {
    const { results } = await play([guard(semel, refunding(), policy)], [[refund], [refund]]);
    expect(results.map(({ content }) => content)).toEqual([
      're_1',
      [
        { type: 'text', text: 're_1' },
        { type: 'text', text: expect.stringMatching(/^Already done on .*ask the user\.$/) },
      ],
    ]);
  });

  test('5.2 blocks stay blocks; the line comes after them', async () => {
    const image = { type: 'image', source: { type: 'url', url: 'https://example.com/1.png' } } as const;
    const drawing = betaZodTool({ ...options, run: () => [image] });
    const { results } = await play([guard(semel, drawing, policy)], [[refund], [refund]]);
    expect(results.map(({ content }) => content)).toEqual([
      [image],
      [image, expect.objectContaining({ type: 'text' })],
    ]);
  });

  test('5.2 a tool of semel.tool returns any value: the SDK gets it as JSON, and needs no policy', async () => {
    const own = semel.tool({
      name: 'refund',
      description: 'Refunds an order.',
      effect: 'irreversible',
      per: 'ever',
      input: schemas.refund,
      content: ['reason'],
      run: async () => ({ id: 're_own', amount: 42n }),
    });
    const [made] = guard(semel, { refund: own }, {});
    expect(made).toMatchObject({
      type: 'custom',
      input_schema: { type: 'object', required: expect.any(Array) },
    });
    const wrong = { ...refund, args: { order: 17 } };
    const { results } = await play([guard(semel, own)], [[refund], [wrong]]);
    expect(results[0]).toMatchObject({ content: '{"id":"re_own","amount":"42"}' });
    expect(JSON.parse(results[1]!.content as string)).toMatchObject({ code: 'INVALID_ARGS' });
  });
});

describe('tools that start while the reply streams', () => {
  async function eagerly(tool: object, cut?: number) {
    const { client } = canned([[refund, { tool: 'search', args: {} }]], undefined, cut);
    const runner = client.beta.messages.toolRunner({
      ...{ ...settings, messages: question, tools: [tool] as never, thread: false as const },
      stream: true,
      runToolsEagerly: true,
    });
    await runner.runUntilDone();
  }

  test('5.3 the tool has run when the reply breaks off: bare, the next run does it again, guarded it does not', async () => {
    await expect(eagerly(refunding(), 1)).rejects.toThrow();
    await eagerly(refunding());
    expect(runs).toHaveLength(2);
    runs = [];
    const guarded = guard(semel, refunding(), policy);
    await expect(eagerly(guarded, 1)).rejects.toThrow();
    await eagerly(guarded);
    await eagerly(guarded);
    expect(runs).toHaveLength(1);
  });
});

test('5.4 a session that reconnects brings the event again, under its id: it is replayed', async () => {
  const guarded = guard(semel, refunding(), policy);
  const event = { type: 'agent.custom_tool_use', id: 'sevt_1', name: 'refund', input: args } as never;
  const context = { toolUse: event, toolUseBlock: event };
  expect(await guarded.run(args, context)).toBe('re_1');
  expect(await guarded.run(args, context)).toMatchObject([{ text: 're_1' }, { type: 'text' }]);
  expect(runs).toEqual(['sevt_1']);
});

describe('a loop of one’s own', () => {
  test('5.5 the same reply answered twice, and the same call under a new id, run once; only calls are answered', async () => {
    const tools = guard(semel, { refund: refunding() }, { refund: policy });
    const reply = [{ type: 'text', text: 'I refund it.' }, use('toolu_1')];
    const first = await toolResults(tools, reply);
    expect(first).toEqual([{ type: 'tool_result', tool_use_id: 'toolu_1', content: 're_1' }]);
    await toolResults(tools, reply);
    const [again] = await toolResults(tools, [use('toolu_2', { ...args, reason: 'broken' })]);
    expect(again).toMatchObject({
      tool_use_id: 'toolu_2',
      content: [{ text: 're_1' }, { text: expect.stringContaining('your `reason` was not used') }],
    });
    expect(runs).toEqual(['toolu_1']);
    expect((await semel.records.list()).items).toMatchObject([{ toolCallId: 'toolu_1' }]);
  });

  test('5.5 one id for two intents is two calls, each with its own record', async () => {
    const tools = [guard(semel, refunding(), policy)];
    await toolResults(tools, [use('toolu_1'), use('toolu_1', { ...args, order: 'o-18' })]);
    expect(runs).toEqual(['toolu_1', 'toolu_1']);
  });

  test('5.5 tools written by hand need no helper; a missing tool or a call that does not fit is an error', async () => {
    const byHand = { name: 'refund', input_schema: { type: 'object' as const }, run };
    const tools = guard(
      semel,
      { byHand, web: { type: 'web_search_20250305', name: 'web_search' } },
      {
        byHand: policy as never,
      },
    );
    const results = await toolResults(tools, [use('toolu_1'), { ...use('toolu_2'), name: 'refnd' } as never]);
    expect(results).toEqual([
      { type: 'tool_result', tool_use_id: 'toolu_1', content: 're_1' },
      {
        type: 'tool_result',
        tool_use_id: 'toolu_2',
        content: "Error: Tool 'refnd' not found",
        is_error: true,
      },
    ]);
    const [unfit] = await toolResults([refunding()], [use('toolu_3', { order: 1 })]);
    expect(unfit).toMatchObject({ is_error: true });
  });
});

describe('what is thrown', () => {
  const throwing = (error: Error) => betaTool({ ...json, run: () => Promise.reject(error) });
  const json = { ...options, inputSchema: { type: 'object' } } as const;

  test('5.6 bare, the model gets the message alone, with is_error; guarded, data that says what to do', async () => {
    const lost = Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    const bare = await play([throwing(lost)], [[refund]]);
    expect(bare.results).toMatchObject([{ content: 'Error: socket hang up', is_error: true }]);
    const tool = guard(semel, throwing(lost), policy as never);
    const { results } = await play([tool], [[refund]]);
    expect(isToolError(JSON.parse(results[0]!.content as string))).toBe(true);
    expect(results[0]).not.toHaveProperty('is_error');
    const [result] = await toolResults([tool], [use('toolu_1')]);
    expect(result).toMatchObject({ is_error: true, content: expect.stringContaining('IN_DOUBT') });
  });

  test('5.6 a ToolError of the SDK says nothing about the effect: it is in doubt, unless the tool or its policy says more', async () => {
    const refused = () => new ToolError([{ type: 'text', text: 'no such order' }]);
    const codeOf = async (tool: object) => {
      const [result] = await toolResults([tool], [use('toolu_1')]);
      return JSON.parse(result!.content as string).code;
    };
    const named = (name: string, error: Error, more: object = {}) => ({
      ...(guard(semel, { ...throwing(error), name }, { ...policy, ...more } as never) as object),
      name: 'refund',
    });
    expect(await codeOf(named('one', refused()))).toBe('IN_DOUBT');
    expect(await codeOf(named('two', refused(), { classify: () => 'rejected' }))).toBe('FAILED');
    expect(await codeOf(named('three', new NotLanded('no such order')))).toBe('NOT_LANDED');
  });

  test('5.6 of a read nothing is remembered, and what it throws stays its own, also in a loop of one’s own', async () => {
    const content = [{ type: 'text' as const, text: 'no such order' }];
    const reading = throwing(new ToolError(content));
    expect(guard(semel, reading, 'read')).toBe(reading);
    const [result] = await toolResults([reading], [use('toolu_1')]);
    expect(result).toEqual({ type: 'tool_result', tool_use_id: 'toolu_1', content, is_error: true });
    const { results } = await play([reading], [[refund]]);
    expect(results[0]).toMatchObject({ content, is_error: true });
  });
});

test('misspelt policies, missing ones and keys are refused when the tools are made', () => {
  const search = refunding();
  expect(() => guard(semel, { search }, { serch: 'read' } as never)).toThrow(/`serch`, but no such tool/);
  expect(() => guard(semel, { search }, {} as never)).toThrow(/refund has no policy/);
  const inputSchema = z.object({ idempotency_key: z.string() });
  expect(() => guard(semel, betaZodTool({ ...options, inputSchema, run }), policy as never)).toThrow(
    /the model would supply the key/,
  );
});
