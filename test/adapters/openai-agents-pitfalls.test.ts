// Where tools of the OpenAI Agents SDK go wrong, and what the guard makes of it: fact 3.3, against the real package.
import { Agent, RunContext, tool, webSearchTool } from '@openai/agents';
import { createSemel, Rejected, type Semel } from 'semel';
import { memoryStore } from 'semel/memory';
import { beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { guard, isToolError } from '../../src/adapters/openai-agents/index.ts';
import { type LooseCall, modelOf, play, schemas } from './openai-agents-harness.ts';

const args = { order: 'o-17', amount: 4200, reason: 'it arrived broken' };
const refund: LooseCall = { tool: 'refund', args };
const policy = { effect: 'irreversible', per: 'ever', content: ['reason'] } as const;
const options = { name: 'refund', description: 'Refunds an order.', parameters: schemas.refund };

let semel: Semel;
let warnings: string[];
let runs: string[];
beforeEach(() => {
  warnings = [];
  const onWarning = (warning: string) => warnings.push(warning);
  semel = createSemel({ store: memoryStore(), namespace: 'openai-agents', onWarning });
  runs = [];
  return () => semel.close({ grace: '1s' });
});

const effect = async (_input: unknown, _context?: unknown, details?: { toolCall?: { callId: string } }) => {
  runs.push(details?.toolCall?.callId ?? 'no id');
  return { id: `re_${runs.length}` };
};

const records = async () => (await semel.records.list()).items.map(({ status }) => status);

const failing = { ...options, execute: async () => Promise.reject(new Rejected('the order is not paid')) };

test('3.3 bare, every error is an invitation; guarded before `tool` made it, the model reads what happened', async () => {
  const bare = await play([tool(failing)], [[refund]]);
  expect(bare.prompt).toContain('Please try again');
  const { prompt, outputs } = await play([tool(guard(semel, failing, policy))], [[refund]]);
  expect(prompt).toContain('the order is not paid');
  expect(prompt).not.toContain('try again');
  expect(outputs.every(isToolError)).toBe(true);
});

test('3.3 a finished tool hides its error: it is in doubt, and never a value; errorFunction: null shows it', async () => {
  const { outputs, prompt } = await play([guard(semel, tool(failing), policy)], [[refund], [refund]]);
  expect(outputs).toMatchObject([{ code: 'IN_DOUBT' }, { code: 'IN_DOUBT' }]);
  expect(warnings.filter((warning) => warning.includes('errorFunction: null'))).toHaveLength(1);
  expect(prompt).not.toContain('errorFunction');
  expect(prompt).not.toContain('try again');
  const open = guard(semel, tool({ ...failing, errorFunction: null }), policy);
  const other = { ...refund, args: { ...args, order: 'o-18' } };
  expect((await play([open], [[other]])).outputs).toMatchObject([{ code: 'FAILED' }]);
});

test('3.3 the text of an errorFunction is not a value: a finished tool that threw is in doubt, in that text', async () => {
  const worded = { ...failing, errorFunction: () => 'It went wrong.' };
  const { outputs } = await play([guard(semel, tool(worded), policy)], [[refund], [refund]]);
  const inDoubt = { code: 'IN_DOUBT', message: expect.stringContaining('It went wrong') };
  expect(outputs).toMatchObject([inDoubt, inDoubt]);
  expect(warnings.filter((warning) => warning.includes('errorFunction: null'))).toHaveLength(1);
  const byHand = guard(semel, tool({ ...worded, name: 'refund2' }), policy);
  const input = JSON.stringify(args);
  expect(await byHand.invoke(new RunContext(), input)).toMatchObject(inDoubt);
  const other = { ...refund, args: { ...args, order: 'o-18' } };
  expect((await play([tool(guard(semel, worded, policy))], [[other]])).outputs.every(isToolError)).toBe(true);
});

test.each(['before', 'after'])(
  '3.3 timeoutMs answers while the tool still runs (%s): the claim stays, and what it says later is recorded',
  async (made) => {
    const { promise, resolve } = Promise.withResolvers<object>();
    const slow = {
      ...options,
      timeoutMs: 40,
      execute: async () => {
        runs.push('started');
        return promise;
      },
    };
    const guarded = made === 'before' ? tool(guard(semel, slow, policy)) : guard(semel, tool(slow), policy);
    const { outputs } = await play([guarded], [[refund], [refund]]);
    expect(outputs).toEqual(Array(2).fill("Tool 'refund' timed out after 40ms."));
    expect(await records()).toEqual(['running']);
    resolve({ id: 're_late' });
    await expect.poll(records).toEqual(['succeeded']);
    expect((await play([guarded], [[refund]])).outputs).toEqual([{ id: 're_late' }]);
    expect(runs).toEqual(['started']);
  },
);

test.each([
  ['in the words of the SDK', {}],
  ['in words of its own', { timeoutErrorFunction: () => 'It takes longer than usual.' }],
])(
  '3.3 a finished tool that is invoked by hand answers %s when its time is over: that is no value',
  async (_, more) => {
    const slow = { ...options, ...more, timeoutMs: 20, execute: () => new Promise<object>(() => undefined) };
    const guarded = guard(semel, tool(slow), policy);
    for (const _ of [1, 2]) {
      const output = await guarded.invoke(new RunContext(), JSON.stringify(args));
      expect(output).toMatchObject({ code: 'IN_DOUBT', message: expect.stringContaining('timed out') });
    }
    expect(await records()).toEqual(['unknown']);
  },
);

test('3.3 objects reach the model as JSON text; on a replay the line is beside it, and the code has the value', async () => {
  const refunding = tool(guard(semel, { ...options, execute: effect }, policy));
  const { result, outputs } = await play([refunding], [[refund], [refund]]);
  expect(outputs).toEqual([{ id: 're_1' }, { id: 're_1' }]);
  expect(JSON.stringify(outputs[1])).toBe('{"id":"re_1"}');
  const shown = result.newItems.flatMap((item) =>
    item.type === 'tool_call_output_item' ? [(item.rawItem as { output: unknown }).output] : [],
  );
  expect(shown).toEqual([
    { type: 'text', text: '{"id":"re_1"}' },
    [
      {
        type: 'input_text',
        text: expect.stringMatching(/^{"id":"re_1"}\n\nAlready done on .*ask the user\.$/),
      },
    ],
  ]);
  const kept = JSON.parse(result.state.toString()) as { generatedItems: { output?: unknown }[] };
  expect(kept.generatedItems.flatMap(({ output }) => output ?? [])).toEqual(Array(2).fill({ id: 're_1' }));
});

test.each([
  ['a text', 're_1', expect.stringMatching(/^re_1\n\nAlready done/)],
  ['an image', { type: 'image', image: 'https://example.com/1.png' }, [{ type: 'image' }, { type: 'text' }]],
  [
    'a list',
    [1, 2],
    [
      { type: 'text', text: '[1,2]' },
      { type: 'text', text: expect.stringMatching(/^\n\nAlready done/) },
    ],
  ],
  ['a type of its own', { type: 'a', n: 1 }, [{ text: '{"type":"a","n":1}' }, { type: 'text' }]],
  ['nothing', undefined, expect.stringMatching(/^Already done/)],
])('3.3 with %s there is one channel: the line comes after the value', async (_kind, value, expected) => {
  const giving = tool(guard(semel, { ...options, execute: async () => value as never }, policy));
  const { outputs } = await play([giving], [[refund], [refund]]);
  expect(outputs[0]).toEqual(value);
  if (Array.isArray(expected)) expect(outputs[1]).toMatchObject(expected);
  else expect(outputs[1]).toEqual(expected);
  expect((outputs[1] as unknown[]).length).toBeGreaterThan(0);
});

test('3.3 an output schema leaves room for the value alone: no line, and an error goes to the errorFunction', async () => {
  const outputSchema = z.object({ id: z.string() });
  const typed = { ...options, outputSchema, execute: effect };
  const { prompt } = await play([tool(guard(semel, typed, policy))], [[refund], [refund]]);
  expect(prompt).not.toContain('Already done');
  const worded = { ...options, name: 'worded', outputSchema: z.string(), execute: async () => 're_1' };
  const text = guard(semel, worded, policy);
  for (const _ of [1, 2]) expect(await text.execute(args)).toBe('re_1');
  const refusing = {
    ...typed,
    execute: () => Promise.reject(new Rejected('not paid')) as Promise<{ id: string }>,
  };
  const other = { ...refund, args: { ...args, order: 'o-18' } };
  const errorFunction = (_context: unknown, error: unknown) => ({ id: (error as { code: string }).code });
  const soft = { ...refusing, errorFunction };
  expect((await play([tool(guard(semel, soft, policy))], [[other]])).outputs).toEqual([{ id: 'FAILED' }]);
  const after = guard(semel, tool({ ...soft, errorFunction }), policy);
  expect((await play([after], [[other]])).outputs).toEqual([{ id: 'FAILED' }]);
  await expect(play([tool(guard(semel, refusing, policy))], [[other]])).rejects.toThrow('not paid');
});

test('3.3 a tool of a nested agent is guarded where it is, also under a callId that the outer run has used', async () => {
  const refunding = tool(guard(semel, { ...options, execute: effect }, policy));
  const nested = () => {
    const model = modelOf([[{ ...refund, id: 'call_1' }]]);
    return new Agent({ name: 'cashier', model, tools: [refunding] }).asTool({
      toolName: 'cashier',
      toolDescription: 'Refunds.',
    });
  };
  const ask = { tool: 'cashier', args: { input: 'Refund order 17.' }, id: 'call_1' };
  await play([guard(semel, nested(), 'read')], [[ask]]);
  await play([guard(semel, nested(), 'read'), refunding], [[ask], [refund]]);
  expect(runs).toEqual(['call_1']);
  expect(() => guard(semel, nested(), { effect: 'write-non-idempotent' })).toThrow(/cashier is an agent/);
});

test('3.3 a tool that is not a function tool passes: a hosted tool needs no policy', () => {
  const search = webSearchTool();
  const tools = guard(semel, { search, refund: tool({ ...options, execute: effect }) }, { refund: policy });
  expect(tools[0]).toBe(search);
  expect(tools[1]).toMatchObject({ name: 'refund' });
});
