// The adapter for the OpenAI Agents SDK, against the real package with a scripted model. Numbers name the facts about the
// SDK that a test stands on: 3.1 who asks, 3.2 what a wrapper keeps, 3.4 what people met; 3.3 is in
// openai-agents-pitfalls.test.ts.
import { Agent, type FunctionTool, RunContext, RunState, run, tool } from '@openai/agents';
import { createSemel, type Semel } from 'semel';
import { memoryStore } from 'semel/memory';
import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { currentAttempt, guard } from '../../src/adapters/openai-agents/index.ts';
import { playContract } from './contract.ts';
import {
  afterTool,
  beforeTool,
  type LooseCall,
  modelOf,
  play,
  question,
  schemas,
  streamedTool,
} from './openai-agents-harness.ts';

playContract('OpenAI Agents SDK', beforeTool);
playContract('OpenAI Agents SDK, finished tools', afterTool);
playContract('OpenAI Agents SDK, streamed', streamedTool);

const args = { order: 'o-17', amount: 4200, reason: 'it arrived broken' };
const refund: LooseCall = { tool: 'refund', args };
const policy = { effect: 'irreversible', per: 'ever', content: ['reason'] } as const;
const options = { name: 'refund', description: 'Refunds an order.', parameters: schemas.refund };

let semel: Semel;
let runs: string[];
beforeEach(() => {
  semel = createSemel({ store: memoryStore(), namespace: 'openai-agents', onWarning: () => {} });
  runs = [];
  return () => semel.close({ grace: '1s' });
});

const effect = async (_input: unknown, _context?: unknown, details?: { toolCall?: { callId: string } }) => {
  runs.push(details?.toolCall?.callId ?? 'no id');
  return { id: `re_${runs.length}` };
};

const records = async () => (await semel.records.list()).items.map(({ status }) => status);

describe('who asks', () => {
  const approved = (execute: typeof effect) =>
    ({ ...options, execute, needsApproval: true }) satisfies Parameters<typeof tool>[0];

  async function resumeTwice(refunding: unknown): Promise<void> {
    const { result } = await play([refunding], [[{ ...refund, id: 'call_1' }]]);
    const kept = result.state.toString();
    for (const _ of [1, 2]) {
      const agent = new Agent({ name: 'clerk', model: modelOf([]), tools: [refunding] as never });
      const state = await RunState.fromString(agent, kept);
      for (const each of state.getInterruptions()) state.approve(each);
      await run(agent, state);
    }
  }

  test('3.1 a state that is resumed twice brings the same callId twice: bare it runs twice, guarded once', async () => {
    await resumeTwice(tool(approved(effect)));
    expect(runs).toEqual(['call_1', 'call_1']);
    runs = [];
    await resumeTwice(tool(guard(semel, approved(effect), policy)));
    await resumeTwice(guard(semel, tool(approved(effect)), policy));
    expect(runs).toEqual(['call_1']);
    expect((await semel.records.list()).items).toMatchObject([{ toolCallId: 'call_1' }]);
  });

  test('3.1 the conversation of a run does not reach its tools, so per turn there has to be a within()', async () => {
    const mail = { ...options, name: 'mail', execute: effect };
    const perTurn = { effect: 'write-non-idempotent', per: 'turn' } as const;
    const tools = [tool(guard(semel, mail, perTurn))];
    const call = { ...refund, tool: 'mail' };
    const { outputs } = await play(tools, [[call]], { conversationId: 'conv_1' });
    expect(outputs).toMatchObject([{ code: 'NO_IDENTITY' }]);
    await semel.within({ conversation: 'conv_1', turn: '1' }, () => play(tools, [[call]]));
    expect(runs).toHaveLength(1);
  });
});

describe('what a wrapper keeps', () => {
  test('3.2 all fields but one stay: approval, guardrails, availability, timeout, strictness', async () => {
    const given = {
      ...options,
      execute: effect,
      needsApproval: true,
      isEnabled: () => true,
      timeoutMs: 5_000,
      inputGuardrails: [{ name: 'in', run: async () => ({ behavior: { type: 'allow' as const } }) }],
    };
    const bare = tool(given as never) as object;
    const { invoke: _, ...kept } = guard(semel, bare as never, policy as never) as Record<string, unknown>;
    expect(bare).toMatchObject(kept);
    const { execute: __, ...rest } = guard(semel, given as never, policy as never) as typeof given;
    expect(given).toMatchObject(rest);
  });

  test('3.2 a guardrail that refuses the input leaves no record; one that allows it is asked every time', async () => {
    let asked = 0;
    const guardrail = (type: 'allow' | 'rejectContent') => ({
      ...options,
      inputGuardrails: [
        {
          name: 'limit',
          run: async () => {
            asked += 1;
            return { behavior: type === 'allow' ? { type } : { type, message: 'too much' } };
          },
        },
      ],
      execute: effect,
    });
    const { prompt } = await play(
      [tool(guard(semel, guardrail('rejectContent') as typeof options & { execute: typeof effect }, policy))],
      [[refund]],
    );
    expect(prompt).toContain('too much');
    expect(await records()).toEqual([]);
    await play([guard(semel, tool(guardrail('allow') as never), policy as never)], [[refund], [refund]]);
    expect([asked, runs.length]).toEqual([3, 1]);
  });

  test.each(['{"order": "o-17",', '[]', '{"order": 17}'])(
    '3.2 the SDK answers what does not fit (%s) in its own words, and nothing is claimed',
    async (text) => {
      const call = { tool: 'refund', args: text };
      const bare = await play([tool({ ...options, execute: effect })], [[call]]);
      const before = await play([tool(guard(semel, { ...options, execute: effect }, policy))], [[call]]);
      const after = await play([guard(semel, tool({ ...options, execute: effect }), policy)], [[call]]);
      expect(before.outputs).toEqual(bare.outputs);
      expect(after.outputs).toEqual(bare.outputs);
      expect(runs).toEqual([]);
      expect((await semel.doubts.list()).items).toEqual([]);
      await play([guard(semel, tool({ ...options, execute: effect }), policy)], [[refund]]);
      expect(runs).toHaveLength(1);
    },
  );

  test('3.2 input that is not JSON never reaches the ledger, whichever way the tool is called', async () => {
    const bare = tool({ ...options, execute: effect });
    const said = (each: Pick<FunctionTool, 'invoke'>) => each.invoke(new RunContext(), '{"order": "o-17",');
    expect(await said(guard(semel, bare, policy))).toEqual(await said(bare));
    expect(await records()).toEqual([]);
  });

  test('3.2 an approval sees the checked args, of a finished tool what the model wrote; a rejected call claims nothing', async () => {
    const seen: unknown[] = [];
    const asking = {
      ...options,
      parameters: z.object({ order: z.string(), amount: z.coerce.number() }),
      needsApproval: async (_context: unknown, input: { amount: number }) => {
        seen.push(input.amount);
        return true;
      },
      execute: effect,
    };
    const once = { effect: 'irreversible', per: 'ever' } as const;
    const call = { tool: 'refund', args: { order: 'o-17', amount: '42' } };
    const { agent, result } = await play([tool(guard(semel, asking, once))], [[call]]);
    for (const each of result.interruptions) result.state.reject(each);
    await run(agent, result.state);
    await play([guard(semel, tool(asking), once)], [[call]]);
    expect(new Set(seen)).toEqual(new Set([42, '42']));
    expect([runs, await records()]).toEqual([[], []]);
  });

  test('3.2 hooks hear of a replay as of any call, and of the value alone', async () => {
    const heard: unknown[] = [];
    const agent = new Agent({
      name: 'clerk',
      model: modelOf([[refund], [refund]]),
      tools: [tool(guard(semel, { ...options, execute: effect }, policy))],
    });
    agent.on('agent_tool_end', (_context, { name }, output) => heard.push([name, output]));
    await run(agent, question);
    expect(heard).toEqual(Array(2).fill(['refund', '{"id":"re_1"}']));
  });
});

test('3.4 a run that fails after its tool has run is made again: the tool is not', async () => {
  const refunding = guard(semel, tool({ ...options, execute: effect }), policy);
  for (const _ of [1, 2, 3]) {
    const model = modelOf([[refund]], (step) => {
      if (step === 2) throw new Error('The connection was reset.');
    });
    const agent = new Agent({ name: 'clerk', model, tools: [refunding] });
    await expect(run(agent, question)).rejects.toThrow('reset');
  }
  expect(runs).toHaveLength(1);
});

test('a tool of semel.tool is a function tool without a policy, and checks its args itself', async () => {
  const own = semel.tool({
    ...{ name: 'refund', description: 'Refunds an order.', effect: 'irreversible', per: 'ever' },
    input: schemas.refund,
    content: ['reason'],
    run: async () => {
      runs.push('own');
      return { id: 're_own' };
    },
  } as never);
  const [made] = guard(semel, { refund: own }, {});
  expect(made).toMatchObject({ name: 'refund', parameters: { properties: { order: { type: 'string' } } } });
  const wrong = { tool: 'refund', args: { order: 17 } };
  const { outputs, prompt } = await play([guard(semel, own)], [[refund], [refund], [wrong]]);
  expect(outputs).toMatchObject([{ id: 're_own' }, { id: 're_own' }, { code: 'INVALID_ARGS' }]);
  expect(prompt).toContain('Already done');
  expect(runs).toEqual(['own']);
  const bare = semel.tool({ name: 'bare', effect: 'write-non-idempotent', per: 'ever', run: () => 1 });
  expect(() => guard(semel, bare)).toThrow(/bare has no schema/);
});

test('the running attempt is available; a read passes unchanged; misspelt policies and keys are refused', async () => {
  const keyed = async () => ({ key: currentAttempt()?.key });
  const { outputs } = await play([tool(guard(semel, { ...options, execute: keyed }, policy))], [[refund]]);
  expect(outputs).toEqual([{ key: expect.any(String) }]);
  const search = tool({ ...options, name: 'search', execute: effect });
  expect(guard(semel, search, 'read')).toBe(search);
  expect(() => guard(semel, { search }, { serch: 'read' } as never)).toThrow(/`serch`, but no such tool/);
  expect(() => guard(semel, { search }, {} as never)).toThrow(/search has no policy/);
  const parameters = z.object({ idempotencyKey: z.string() });
  expect(() => guard(semel, tool({ ...options, parameters, execute: effect }), policy as never)).toThrow(
    /the model would supply the key/,
  );
});
