// What becomes of a tool of LangChain when it is guarded: it stays what it is, for its types, its agent and its streams.
import { DynamicStructuredTool, StructuredTool } from '@langchain/core/tools';
import { MemorySaver } from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import {
  AIMessage,
  createAgent,
  createMiddleware,
  HumanMessage,
  ToolMessage,
  type ToolRuntime,
  tool,
} from 'langchain';
import { createSemel, NotLanded, Rejected, type Semel } from 'semel';
import { afterEach, beforeEach, describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  currentAttempt,
  guard,
  guardMiddleware,
  isToolError,
  resultOf,
  toolFrom,
} from '../../src/adapters/langchain/index.ts';
import { type ModelCall, ScriptedModel, toolMessages } from './langchain-harness.ts';

let semel: Semel;
let warnings: string[];
let done: unknown[];

beforeEach(() => {
  warnings = [];
  done = [];
  semel = createSemel({
    store: 'memory:',
    namespace: 'tools',
    onWarning: (warning) => warnings.push(warning),
  });
});
afterEach(() => semel.close({ grace: 0 }));

const ever = { effect: 'write-non-idempotent', per: 'ever' } as const;
const schema = z.object({ order: z.string(), amount: z.number() });
const args = { order: 'o-17', amount: 4200 };
const call: ModelCall = { name: 'refund', args };
const question = { messages: [{ role: 'user' as const, content: 'Refund it.' }] };

function refundTool(effect: (args: { order: string; amount: number }) => unknown = () => ({ id: 're-1' })) {
  return tool(
    async (given: { order: string; amount: number }) => {
      done.push(given);
      return effect(given);
    },
    { name: 'refund', description: 'Refunds an order.', schema },
  );
}

const callOf = (id: string) => ({ type: 'tool_call' as const, name: 'refund', args, id });

describe('a guarded tool', () => {
  test('keeps the class, name, schema and description of the original, which is not changed', async () => {
    const bare = refundTool();
    const refund = guard(semel, bare, ever);
    expect(refund).toBeInstanceOf(DynamicStructuredTool);
    expect({ ...refund }).toMatchObject({ name: 'refund', description: 'Refunds an order.', schema });
    await refund.invoke(args);
    await refund.invoke(args);
    expect(done).toHaveLength(1);
    await bare.invoke(args);
    expect(done).toHaveLength(2);
  });

  test('gives a program its value, equal on replay, and an error as a value', async () => {
    const refund = guard(
      semel,
      refundTool(({ amount }) => {
        if (amount === 0) throw new Rejected('nothing to refund');
        return { id: 're-1', at: new Date(0) };
      }),
      ever,
    );
    const first = await refund.invoke(args);
    expect(await refund.invoke(args)).toEqual(first);
    const error: unknown = await refund.invoke({ ...args, amount: 0 });
    expect(isToolError(error) && error.code).toBe('FAILED');
    expect(done).toHaveLength(2);
  });

  test('answers a tool call with a message of that call, by whatever way it is called', async () => {
    const refund = guard(semel, refundTool(), ever);
    const first = await refund.invoke(callOf('call_1'));
    const second = await refund.invoke(callOf('call_2'));
    expect([first.tool_call_id, second.tool_call_id]).toEqual(['call_1', 'call_2']);
    expect(first.content).toBe('{"id":"re-1"}');
    expect(second.content).toMatch(
      /^{"id":"re-1"}\n\nAlready done on .* To repeat on purpose, ask the user\.$/,
    );
    expect(resultOf(second)).toEqual({ id: 're-1' });
    expect(await refund.func(args)).toEqual({ id: 're-1' });
    const { _call } = refund as unknown as { _call(given: typeof args): Promise<unknown> };
    expect(await _call(args)).toEqual({ id: 're-1' });
    const [third] = await refund.batch([callOf('call_3')]);
    expect((third as ToolMessage).tool_call_id).toBe('call_3');
    expect(done).toHaveLength(1);
  });

  test('checks the args by its schema before anything is recorded', async () => {
    const refund = guard(semel, refundTool(), ever);
    await expect(refund.invoke({ order: 'o-17' } as never)).rejects.toThrow('did not match expected schema');
    expect((await semel.records.list()).items).toEqual([]);
  });

  test('may be of a class of its own, with private parts', async () => {
    class Refund extends StructuredTool<typeof schema> {
      override name = 'refund';
      override description = 'Refunds.';
      override schema = schema;
      readonly #prefix = 're';
      protected override async _call({ order }: { order: string }): Promise<string> {
        done.push(order);
        return `${this.#prefix}-${order}`;
      }
    }
    const refund = guard(semel, new Refund(), ever);
    expect(refund).toBeInstanceOf(Refund);
    expect(await refund.invoke(args)).toBe('re-o-17');
    expect(await refund.invoke(args)).toBe('re-o-17');
    expect(done).toHaveLength(1);
  });

  /** Its tool returns a message of its own. */
  const returning = (status: 'success' | 'error', policy: Parameters<typeof guard>[2]) =>
    guard(
      semel,
      tool(
        (given: { order: string }, { toolCallId }: ToolRuntime) => {
          done.push(given);
          const content = `No refund for ${given.order}.`;
          return new ToolMessage({ content, artifact: { why: 'late' }, status, tool_call_id: toolCallId });
        },
        { name: 'refund', description: 'Refunds.', schema },
      ),
      policy as typeof ever,
    );
  const answerOf = async (refund: ReturnType<typeof returning>) => {
    const agent = createAgent({ model: new ScriptedModel([[call]]), tools: [refund] });
    return toolMessages((await agent.invoke(question)).messages)[0]!;
  };

  test('may return a message: a replay has its content, artifact and status, and the new call id', async () => {
    const refund = returning('success', ever);
    const [first, second] = [await answerOf(refund), await answerOf(refund)];
    expect(done).toHaveLength(1);
    expect(first.content).toBe('No refund for o-17.');
    expect(second.content).toMatch(/^No refund for o-17\.\n\nAlready done on/);
    expect(second).toMatchObject({ artifact: { why: 'late' }, status: 'success', name: 'refund' });
    expect(second.tool_call_id).not.toBe(first.tool_call_id);
  });

  test('that returns a message with status error has failed: in doubt, never replayed as done', async () => {
    const refund = returning('error', ever);
    for (const message of [await answerOf(refund), await answerOf(refund)]) {
      expect(message.status).toBe('error');
      expect(message.content).toContain('No refund for o-17.');
      expect(message.content).toContain('IN_DOUBT');
      expect(message.content).not.toContain('Already done');
    }
    expect(done).toHaveLength(1);
  });

  test('whose error message its classify understands is decided by it', async () => {
    const classify = (error: unknown) =>
      (error as { artifact?: { why: string } }).artifact?.why === 'late' ? 'rejected' : undefined;
    const message = await answerOf(returning('error', { ...ever, classify } as never));
    expect(message.content).toContain('"code":"FAILED"');
    expect((await semel.doubts.list()).items).toEqual([]);
  });

  test('may return blocks of content: the line is one block more', async () => {
    const blocks = [{ type: 'text', text: 'Refunded.' }];
    const refund = guard(
      semel,
      refundTool(() => blocks),
      ever,
    );
    await refund.invoke(callOf('call_1'));
    const { content, ...message } = await refund.invoke(callOf('call_2'));
    expect(content).toEqual([...blocks, { type: 'text', text: expect.stringMatching(/^Already done/) }]);
    expect(resultOf({ ...message, content })).toEqual(blocks);
  });

  test('hears the key of its attempt, and the signal of the agent that runs it', async () => {
    const heard: unknown[] = [];
    const refund = guard(
      semel,
      tool(
        (_given: { order: string }, { signal }: ToolRuntime) => {
          heard.push(currentAttempt()?.key, signal);
          return 'done';
        },
        { name: 'refund', description: 'Refunds.', schema },
      ),
      ever,
    );
    await createAgent({ model: new ScriptedModel([[call]]), tools: [refund] }).invoke(question);
    expect(heard).toEqual([expect.any(String), expect.any(AbortSignal)]);
  });

  test('that did not land says so, and may be called again', async () => {
    let isUp = false;
    const refund = guard(
      semel,
      refundTool(() => {
        if (!isUp) throw new NotLanded('The bank is closed.');
        return 'refunded';
      }),
      ever,
    );
    const closed = await refund.invoke(callOf('call_1'));
    expect(closed.status).toBe('error');
    expect(resultOf(closed)).toMatchObject({ code: 'NOT_LANDED', retriable: true });
    isUp = true;
    expect((await refund.invoke(callOf('call_2'))).content).toBe('refunded');
  });

  test('that returns directly ends the run with its result, also on replay, but not with an error', async () => {
    let isPaid = false;
    const refund = guard(
      semel,
      tool(
        (given: { order: string }) => {
          done.push(given);
          if (!isPaid) throw new NotLanded('not paid');
          return 'refunded';
        },
        { name: 'refund', description: 'Refunds.', schema, returnDirect: true },
      ),
      ever,
    );
    const run = async () => {
      const model = new ScriptedModel([[call]]);
      await createAgent({ model, tools: [refund] }).invoke(question);
      return model.prompts.length;
    };
    expect(await run()).toBe(2);
    isPaid = true;
    expect([await run(), await run()]).toEqual([1, 1]);
    expect(done).toHaveLength(2);
  });

  test('works in the ToolNode of LangGraph', async () => {
    const node = new ToolNode([guard(semel, refundTool(), ever)]);
    const run = async (id: string) => {
      const { messages } = await node.invoke({
        messages: [new HumanMessage('Refund it.'), new AIMessage({ content: '', tool_calls: [callOf(id)] })],
      });
      return messages[0] as ToolMessage;
    };
    await run('call_1');
    const second = await run('call_2');
    expect(second.tool_call_id).toBe('call_2');
    expect(resultOf(second)).toEqual({ id: 're-1' });
    expect(done).toHaveLength(1);
  });

  test('is guarded once, and only where it runs here', () => {
    const refund = guard(semel, refundTool(), ever);
    expect(() => guard(semel, refund, ever)).toThrow(/refund is guarded already/);
    expect(() => guard(semel, { type: 'web_search' } as never, ever)).toThrow(
      /not a LangChain tool that runs here/,
    );
    const read = refundTool();
    expect(guard(semel, read, 'read')).toBe(read);
    const keyed = tool(() => 'x', {
      name: 'keyed',
      description: 'x',
      schema: z.object({ idempotency_key: z.string() }),
    });
    expect(() => guard(semel, keyed, ever)).toThrow(/the model would supply the key/);
  });
});

describe('streams', () => {
  const run = () =>
    createAgent({ model: new ScriptedModel([[call]]), tools: [guard(semel, refundTool(), ever)] });

  test('a replay streams like a first run: updates and messages', async () => {
    const seen = async (streamMode: 'updates' | 'messages') => {
      const parts: string[] = [];
      for await (const part of await run().stream(question, { streamMode })) parts.push(JSON.stringify(part));
      return parts.filter((part) => part.includes('re-1'));
    };
    const first = await seen('updates');
    const second = await seen('updates');
    expect(first).toHaveLength(1);
    expect(second).toHaveLength(1);
    expect(second[0]).toMatch(/nothing was sent again/);
    expect((await seen('messages'))[0]).toMatch(/nothing was sent again/);
    expect(done).toHaveLength(1);
  });

  test('what a generator yields is shown while it works, its return is kept, and a replay is the result alone', async () => {
    const slow = guard(
      semel,
      tool(
        async function* (given: { order: string }) {
          yield 'asking the bank';
          done.push(given);
          yield 'asked';
          return { id: 're-1' };
        },
        { name: 'refund', description: 'Refunds.', schema },
      ),
      ever,
    );
    const watched = async (id: string) => {
      const events: unknown[] = [];
      const callbacks = [{ handleToolEvent: (part: unknown) => void events.push(part) }];
      const message = (await slow.invoke(callOf(id), { callbacks })) as ToolMessage;
      return { events, result: resultOf(message) };
    };
    expect(await watched('call_1')).toEqual({ events: ['asking the bank', 'asked'], result: { id: 're-1' } });
    expect(await watched('call_2')).toEqual({ events: [], result: { id: 're-1' } });
    expect(done).toHaveLength(1);
  });

  test('a message is read the same after it went through a checkpoint', async () => {
    await run().invoke(question);
    const checkpointer = new MemorySaver();
    const agent = createAgent({
      model: new ScriptedModel([[call]]),
      tools: [guard(semel, refundTool(), ever)],
      checkpointer,
    });
    const config = { configurable: { thread_id: 't' } };
    await agent.invoke(question, config);
    const { values } = await agent.graph.getState(config);
    const [message] = toolMessages(values.messages);
    expect(message?.text).toMatch(/nothing was sent again/);
    expect(resultOf(message!)).toEqual({ id: 're-1' });
  });
});

describe('who asks', () => {
  const perTurn = { effect: 'write-non-idempotent' } as const;

  test('an agent inside a tool is asked again with each plan: its turn is a guess, and the words count', async () => {
    const inner = () =>
      createAgent({ model: new ScriptedModel([[call]]), tools: [guard(semel, refundTool(), perTurn)] });
    const delegate = tool(
      async () => {
        const { messages } = await inner().invoke({ messages: [new HumanMessage('Refund o-17.')] });
        return messages.at(-1)?.text;
      },
      { name: 'delegate', description: 'Asks another agent.', schema: z.object({}) },
    );
    const again = { name: 'delegate', args: {} };
    const outer = createAgent({
      model: new ScriptedModel([[again], [again]]),
      tools: [delegate],
      checkpointer: new MemorySaver(),
    });
    await outer.invoke(question, { configurable: { thread_id: 't' } });
    expect(done).toHaveLength(1);
    expect(warnings.join('\n')).toMatch(/refund: the turn was guessed/);
    const [record] = (await semel.records.list()).items;
    expect(record?.conversation).toBe('t');
  });

  test('a thread that nobody keeps: an id of the program’s own is the turn, a random one is not', async () => {
    const run = (id?: string) =>
      createAgent({
        model: new ScriptedModel([[call]]),
        tools: [guard(semel, refundTool(), perTurn)],
      }).invoke(
        { messages: [{ role: 'user', content: 'Refund it.', ...(id === undefined ? {} : { id }) }] },
        { configurable: { thread_id: 't' } },
      );
    await run('m-1');
    await run('m-1');
    expect(done).toHaveLength(1);
    expect(warnings.join('\n')).not.toMatch(/guessed/);
    await run('m-2');
    expect(done).toHaveLength(2);
    await run();
    await run();
    expect(done).toHaveLength(3);
    expect(warnings.join('\n')).toMatch(/refund: the turn was guessed/);
  });

  test('what the program says takes precedence over the thread', async () => {
    const refund = guard(semel, refundTool(), perTurn);
    for (const thread_id of ['one', 'two'])
      await semel.within({ conversation: 'c', turn: '1' }, () =>
        createAgent({ model: new ScriptedModel([[call]]), tools: [refund] }).invoke(question, {
          configurable: { thread_id },
        }),
      );
    expect(done).toHaveLength(1);
  });

  test('nobody: the call is refused as a value, and nothing is run', async () => {
    const refund = guard(semel, refundTool(), perTurn);
    const message = await refund.invoke(callOf('call_1'));
    expect(resultOf(message)).toMatchObject({ code: 'NO_IDENTITY' });
    expect(done).toEqual([]);
  });
});

describe('the middleware', () => {
  const agentOf = (policies: Parameters<typeof guardMiddleware>[1], calls: ModelCall[] = [call]) =>
    createAgent({
      model: new ScriptedModel([calls, calls]),
      tools: [refundTool()],
      middleware: [guardMiddleware(semel, policies)],
    });

  test('refuses a tool without a policy before it runs', async () => {
    await expect(agentOf({}).invoke(question)).rejects.toThrow(/refund has no policy/);
    expect(done).toEqual([]);
  });

  test('refuses a wrong policy when it is made', () => {
    expect(() => guardMiddleware(semel, { refund: { effect: 'irreversible' } as never })).toThrow(
      /within what two equal calls are one/,
    );
  });

  test('tells the model that there is no such tool', async () => {
    const agent = agentOf({ refund: ever }, [{ name: 'refunds', args: {} }]);
    const { messages } = await agent.invoke(question);
    expect(toolMessages(messages)[0]?.text).toBe('There is no tool refunds here, and nothing was run.');
  });

  test('guards a tool that a middleware outside of it brings, and lets none in that one inside would bring', async () => {
    const bring = createMiddleware({
      name: 'bring',
      wrapToolCall: (request, handler) =>
        handler({ ...request, tool: request.tool ?? (refundTool() as never) }),
    });
    const run = async (isOutside: boolean) => {
      const guarding = guardMiddleware(semel, { refund: ever });
      const middleware = isOutside ? [bring, guarding] : [guarding, bring];
      const model = new ScriptedModel([[call], [call]]);
      return createAgent({ model, tools: [], middleware }).invoke(question);
    };
    await run(false);
    expect(done).toHaveLength(0);
    await run(true);
    expect(done).toHaveLength(1);
  });

  test('leaves a tool alone that is guarded already', async () => {
    const agent = createAgent({
      model: new ScriptedModel([[call], [call]]),
      tools: [guard(semel, refundTool(), ever)],
      middleware: [guardMiddleware(semel, { refund: ever })],
    });
    const { messages } = await agent.invoke(question);
    expect(toolMessages(messages).map(resultOf)).toEqual([{ id: 're-1' }, { id: 're-1' }]);
    expect(done).toHaveLength(1);
  });
});

describe('a tool that semel made', () => {
  const input = z.object({ order: z.string().transform((order) => `${order}!`), amount: z.number() });
  const made = () =>
    semel.tool({
      ...ever,
      name: 'orders.refund',
      description: 'Refunds an order.',
      input,
      run: (given) => {
        done.push(given);
        return { id: `re-${given.order}` };
      },
    });

  test('is a tool of LangChain by LangChain’s own `tool`', async () => {
    const refund = toolFrom(semel, made(), tool);
    const one = { name: 'orders_refund', args };
    const agent = createAgent({ model: new ScriptedModel([[one], [one]]), tools: [refund] });
    const { messages } = await agent.invoke(question);
    expect(toolMessages(messages).map(resultOf)).toEqual([{ id: 're-o-17!' }, { id: 're-o-17!' }]);
    expect(done).toEqual([{ order: 'o-17!', amount: 4200 }]);
  });

  test('needs a schema that LangChain can read', () => {
    const bare = semel.tool({ ...ever, name: 'bare', run: () => 1 });
    expect(() => toolFrom(semel, bare, tool)).toThrow(/no schema that LangChain can read/);
  });

  test('says so where LangChain’s `tool` was forgotten', () => {
    const forgotten = undefined as unknown as typeof tool;
    expect(() => toolFrom(semel, made(), forgotten)).toThrow(/as its third argument\. Write toolFrom\(/);
  });
});

describe('types', () => {
  test('a guarded tool has the type that it had, and its policy knows its fields', () => {
    const bare = refundTool();
    const refund = guard(semel, bare, { ...ever, identity: ['order', 'amount'] });
    expectTypeOf(refund).toEqualTypeOf(bare);
    // @ts-expect-error there is no such field
    void (() => guard(semel, bare, { ...ever, identity: ['orders'] }));
    // @ts-expect-error the effect has to be said
    void (() => guard(semel, bare, { per: 'ever' }));
    // @ts-expect-error a policy is needed
    void (() => guard(semel, bare));
  });

  test('the middleware fits into an agent, and the agent keeps its types', () => {
    const agent = createAgent({
      model: new ScriptedModel([]),
      tools: [refundTool()],
      middleware: [guardMiddleware(semel, { refund: 'read' })],
    });
    expectTypeOf(agent.invoke).returns.resolves.toHaveProperty('messages');
  });
});
