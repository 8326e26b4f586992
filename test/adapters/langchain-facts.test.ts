// What LangChain and LangGraph do to calls of tools, seen in the real packages, and that an effect lands once through it.
// The numbers are those of the list that the adapter was built from.
import {
  Command,
  GraphBubbleUp,
  interrupt,
  MemorySaver,
  NodeInterrupt,
  ParentCommand,
} from '@langchain/langgraph';
import {
  type AgentMiddleware,
  createAgent,
  createMiddleware,
  type ToolMessage,
  type ToolRuntime,
  tool,
  toolRetryMiddleware,
} from 'langchain';
import { createSemel, Rejected, type Semel } from 'semel';
import { memoryStore } from 'semel/memory';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { guard, guardMiddleware, inOrder, resultOf } from '../../src/adapters/langchain/index.ts';
import { ScriptedModel, toolMessages } from './langchain-harness.ts';

let semel: Semel;
let warnings: string[];
/** What was done in the world. */
let sent: string[];
/** Each time that a body was entered. */
let entered: { id: string | undefined; task: unknown }[];

beforeEach(() => {
  warnings = [];
  sent = [];
  entered = [];
  semel = createSemel({
    store: memoryStore(),
    namespace: 'facts',
    onWarning: (warning) => warnings.push(warning),
  });
});
afterEach(() => semel.close({ grace: 0 }));

const policy = { effect: 'write-non-idempotent' } as const;
const policies = { mail: policy, note: policy };
const to = (name: string) => ({ name: 'mail', args: { to: name } });
const thread = (id: string, more: object = {}) => ({ configurable: { thread_id: id, ...more } });
const says = (content: string, id?: string) => ({
  messages: [{ role: 'user' as const, content, ...(id === undefined ? {} : { id }) }],
});

function mailTool(before: () => unknown = () => undefined, effect: () => unknown = () => undefined) {
  return tool(
    async (args: { to: string }, runtime: ToolRuntime) => {
      const { executionInfo } = runtime as { executionInfo?: { taskId?: unknown } };
      entered.push({ id: runtime.toolCallId, task: executionInfo?.taskId });
      await before();
      sent.push(args.to);
      await effect();
      return { number: sent.length };
    },
    { name: 'mail', description: 'Sends a mail.', schema: z.object({ to: z.string() }) },
  );
}

type Guarding = 'by tool' | 'by middleware' | 'not at all';
const guarded = ['by tool', 'by middleware'] as const;

interface Stage {
  readonly script: ScriptedModel['script'];
  readonly checkpointer?: MemorySaver;
  readonly mail?: ReturnType<typeof mailTool>;
  readonly outside?: readonly AgentMiddleware[];
}

function stage(
  guarding: Guarding,
  { script, mail = mailTool(), outside = [], checkpointer = new MemorySaver() }: Stage,
) {
  const model = new ScriptedModel(script);
  const agent = createAgent({
    model,
    tools: [guarding === 'by tool' ? guard(semel, mail, policy) : mail],
    middleware: [...outside, ...(guarding === 'by middleware' ? [guardMiddleware(semel, policies)] : [])],
    checkpointer,
  });
  return { model, agent };
}

/** The process dies when the tool is done, before its result is written down: once for each that is named. */
function crashAfter(...names: string[]) {
  const left = [...names];
  const ids: (string | undefined)[] = [];
  const middleware = createMiddleware({
    name: 'crash',
    wrapToolCall: async (request, handler) => {
      ids.push(request.toolCall.id);
      const result = await handler(request);
      const at = left.indexOf(String(request.toolCall.args.to));
      if (at < 0) return result;
      left.splice(at, 1);
      throw new Error('The process died.');
    },
  });
  return { middleware, ids };
}

describe('4.1 a call that is made again from a checkpoint', () => {
  test.each([...guarded, 'not at all'] as const)(
    '4.1 keeps its tool_call_id after a crash, and is replayed when the run is resumed (guarded %s)',
    async (guarding) => {
      const { middleware, ids } = crashAfter('ada');
      const { agent } = stage(guarding, { script: [[to('ada')]], outside: [middleware] });
      await expect(agent.invoke(says('Write to Ada.'), thread('t'))).rejects.toThrow('The process died.');
      const { messages } = await agent.invoke(null as never, thread('t'));
      expect(new Set(ids).size).toBe(1);
      expect(ids).toHaveLength(2);
      if (guarding === 'not at all') return expect(sent).toEqual(['ada', 'ada']);
      expect(sent).toEqual(['ada']);
      const [message] = toolMessages(messages);
      expect(message?.tool_call_id).toBe(ids[0]);
      expect(resultOf(message!)).toEqual({ number: 1 });
      expect(message?.text).toMatch(/nothing was sent again/);
      expect(warnings.join('\n')).not.toMatch(/guessed/);
    },
  );

  test.each(guarded)(
    '4.1 keeps tool_call_id and task over an interrupt, so the body is the same call twice (guarded %s)',
    async (guarding) => {
      const mail = mailTool(() => interrupt('May it?'));
      const { agent } = stage(guarding, { script: [[to('ada')]], mail });
      await agent.invoke(says('Write to Ada.'), thread('t'));
      expect(sent).toEqual([]);
      await agent.invoke(new Command({ resume: true }), thread('t'));
      expect(entered).toHaveLength(2);
      expect(entered[1]).toEqual(entered[0]);
      expect(entered[0]?.task).toBeTypeOf('string');
      expect(sent).toEqual(['ada']);
    },
  );

  test.each([...guarded, 'not at all'] as const)(
    '4.1 has the same tool_call_id in time travel, and gets the stored result by design (guarded %s)',
    async (guarding) => {
      const { agent } = stage(guarding, { script: [[to('ada')]] });
      const first = await agent.invoke(says('Write to Ada.'), thread('t'));
      const past: string[] = [];
      for await (const { next, config } of agent.graph.getStateHistory(thread('t')))
        if (next.includes('tools')) past.push(config.configurable?.checkpoint_id);
      expect(past).toHaveLength(1);
      const again = await agent.invoke(null as never, thread('t', { checkpoint_id: past[0] }));
      if (guarding === 'not at all') {
        expect(entered[1]?.id).toBe(entered[0]?.id);
        return expect(sent).toEqual(['ada', 'ada']);
      }
      expect(sent).toEqual(['ada']);
      const [before, after] = [first, again].map(({ messages }) => toolMessages(messages)[0]!);
      expect(after?.tool_call_id).toBe(before?.tool_call_id);
      expect(resultOf(after!)).toEqual(resultOf(before!));
    },
  );

  test.each([...guarded, 'not at all'] as const)(
    '4.1 has a new id and a new task when the model plans again, and is still the same intent (guarded %s)',
    async (guarding) => {
      const { agent } = stage(guarding, { script: [[to('ada')], [to('ada')]] });
      await agent.invoke(says('Write to Ada.'), thread('t'));
      if (guarding !== 'not at all') return expect(sent).toEqual(['ada']);
      expect(sent).toEqual(['ada', 'ada']);
      expect(entered[1]?.id).not.toBe(entered[0]?.id);
      expect(entered[1]?.task).not.toBe(entered[0]?.task);
    },
  );

  test.each(guarded)(
    '4.1 belongs to the thread and to the user’s message there: another of either is another intent (guarded %s)',
    async (guarding) => {
      const { agent } = stage(guarding, { script: [[to('ada')], [], [to('ada')], [], [to('ada')], []] });
      await agent.invoke(says('Write to Ada.', 'm-1'), thread('one'));
      await agent.invoke(says('Write to Ada.', 'm-1'), thread('two'));
      await agent.invoke(says('Once more.', 'm-2'), thread('one'));
      expect(sent).toEqual(['ada', 'ada', 'ada']);
      expect(warnings.join('\n')).not.toMatch(/guessed/);
    },
  );

  test.each(guarded)(
    '4.1 is the same intent where the message comes again under its own id (guarded %s)',
    async (guarding) => {
      const { agent } = stage(guarding, { script: [[to('ada')], [], [to('ada')], []] });
      await agent.invoke(says('Write to Ada.', 'm-1'), thread('one'));
      await agent.invoke(says('Write to Ada.', 'm-1'), thread('one'));
      expect(sent).toEqual(['ada']);
    },
  );

  test.each([...guarded, 'not at all'] as const)(
    '4.1 is the same intent where the run is made again on its thread before it was answered; after the answer it is another (guarded %s)',
    async (guarding) => {
      const script = [[to('ada')], [to('ada')], [], [to('ada')], []];
      const { middleware } = crashAfter('ada');
      const { agent } = stage(guarding, { script, outside: [middleware] });
      await expect(agent.invoke(says('Write to Ada.'), thread('t'))).rejects.toThrow('The process died.');
      const { messages } = await agent.invoke(says('Write to Ada.'), thread('t'));
      expect(messages.filter(({ type }) => type === 'human')).toHaveLength(2);
      expect(sent).toHaveLength(guarding === 'not at all' ? 2 : 1);
      await agent.invoke(says('Write to Ada.'), thread('t'));
      expect(sent).toHaveLength(guarding === 'not at all' ? 3 : 2);
      expect(warnings.join('\n')).not.toMatch(/guessed/);
    },
  );

  test.each(guarded)(
    '4.1 is another intent where the user says something else before the answer (guarded %s)',
    async (guarding) => {
      const { middleware } = crashAfter('ada');
      const { agent } = stage(guarding, { script: [[to('ada')], [to('ada')]], outside: [middleware] });
      await expect(agent.invoke(says('Write to Ada.'), thread('t'))).rejects.toThrow('The process died.');
      await agent.invoke(says('Write to her twice.'), thread('t'));
      expect(sent).toEqual(['ada', 'ada']);
    },
  );

  test('4.1 is seen by wrapToolCall without executionInfo: the guard stands at the tool and reads thread and message there', async () => {
    let seen: string[] = [];
    const look = createMiddleware({
      name: 'look',
      wrapToolCall: (request, handler) => {
        seen = Object.keys(request.runtime);
        return handler(request);
      },
    });
    const { agent } = stage('by middleware', { script: [[to('ada')]], outside: [look] });
    await agent.invoke(says('Write to Ada.'), thread('t'));
    expect(seen).toContain('configurable');
    expect(seen).not.toContain('executionInfo');
    const [record] = (await semel.records.list()).items;
    expect(record?.conversation).toBe('t');
  });
});

describe('4.2 calls of one step are tasks of their own', () => {
  test.each([...guarded, 'not at all'] as const)(
    '4.2 a sibling that was done is not run again on resume, the one that failed is (guarded %s)',
    async (guarding) => {
      const { middleware, ids } = crashAfter('ada');
      const { agent } = stage(guarding, { script: [[to('bob'), to('ada')]], outside: [middleware] });
      await expect(agent.invoke(says('Write.'), thread('t'))).rejects.toThrow('The process died.');
      const { messages } = await agent.invoke(null as never, thread('t'));
      expect(ids).toHaveLength(3);
      expect(ids[2]).toBe(ids[1]);
      if (guarding === 'not at all') return expect(sent.sort()).toEqual(['ada', 'ada', 'bob']);
      const numbers = toolMessages(messages).map((each) => (resultOf(each) as { number: number }).number);
      expect(numbers.sort()).toEqual([1, 2]);
      expect(sent.sort()).toEqual(['ada', 'bob']);
    },
  );

  test.each([...guarded, 'not at all'] as const)(
    '4.2 a checkpoint written only at the exit loses the whole run: it is planned again with new ids (guarded %s)',
    async (guarding) => {
      const script = [[to('bob'), to('ada')]];
      const { middleware, ids } = crashAfter('ada');
      // Nothing of the first process is left but the ledger: its checkpoints were never written.
      const before = stage(guarding, { script, outside: [middleware] });
      const config = { ...thread('t'), durability: 'exit' as const };
      await expect(before.agent.invoke(says('Write.', 'm-1'), config)).rejects.toThrow('The process died.');
      const after = stage(guarding, { script });
      const { messages } = await after.agent.invoke(says('Write.', 'm-1'), config);
      expect(toolMessages(messages).map((each) => ids.includes(each.tool_call_id))).toEqual([false, false]);
      if (guarding === 'not at all') return expect(sent).toHaveLength(4);
      expect(sent.sort()).toEqual(['ada', 'bob']);
    },
  );
});

test.each(
  guarded.flatMap((guarding) => [
    [guarding, { durability: 'exit' as const }] as const,
    [guarding, { checkpointDuring: false }] as const,
  ]),
)(
  '4.2 a run that was lost with its checkpoints, made again with the same words, repeats nothing (guarded %s, %o)',
  async (guarding, lost) => {
    const config = { ...thread('t'), ...lost };
    const { middleware } = crashAfter('ada');
    const before = stage(guarding, { script: [[to('ada')]], outside: [middleware] });
    await expect(before.agent.invoke(says('Write.'), config)).rejects.toThrow('The process died.');
    const after = stage(guarding, { script: [[to('ada')]] });
    await after.agent.invoke(says('Write.'), config);
    expect(sent).toEqual(['ada']);
    expect(warnings.join('\n')).toMatch(/guessed/);
  },
);

/** Nothing is saved before `open` is called. */
class SlowSaver extends MemorySaver {
  open: () => void = () => undefined;
  readonly #isOpen = new Promise<void>((resolve) => {
    this.open = resolve;
  });
  /** The checkpoints that were looked for. */
  readonly wanted: unknown[] = [];

  override async getTuple(config: Parameters<MemorySaver['getTuple']>[0]) {
    this.wanted.push(config.configurable?.checkpoint_id);
    return super.getTuple(config);
  }
  override async put(...args: Parameters<MemorySaver['put']>) {
    await this.#isOpen;
    return super.put(...args);
  }
}

test.each(guarded)(
  '4.2 LangGraph runs a tool while its step is still being saved: the effect waits for it (guarded %s)',
  async (guarding) => {
    const checkpointer = new SlowSaver();
    const { agent } = stage(guarding, { script: [[to('ada')]], checkpointer });
    const running = agent.invoke(says('Write.'), thread('t'));
    await expect.poll(() => checkpointer.wanted.at(-1)).toEqual(expect.any(String));
    // A process that died here would get the same words back as another message.
    expect(sent).toEqual([]);
    checkpointer.open();
    await running;
    expect(sent).toEqual(['ada']);
  },
);

test('4.2 a turn that the program names does not wait for a checkpoint', async () => {
  const checkpointer = new SlowSaver();
  const { agent } = stage('by tool', { script: [[to('ada')]], checkpointer });
  const running = semel.within({ conversation: 'c', turn: '1' }, () =>
    agent.invoke(says('Write.'), thread('t')),
  );
  await expect.poll(() => sent).toEqual(['ada']);
  checkpointer.open();
  await running;
});

describe('4.3 a replay is a message of the call that is answered now', () => {
  test.each(guarded)('4.3 with its tool_call_id, and not with the old one (guarded %s)', async (guarding) => {
    const run = async () => {
      const { agent } = stage(guarding, { script: [[to('ada')]] });
      const { messages } = await semel.within({ conversation: 'c', turn: '1' }, () =>
        agent.invoke(says('Write.'), thread('t')),
      );
      const [call] = messages.flatMap((each) => (each as { tool_calls?: { id: string }[] }).tool_calls ?? []);
      return { call: call?.id, message: toolMessages(messages)[0]! };
    };
    const [first, second] = [await run(), await run()];
    expect(first.call).not.toBe(second.call);
    expect(second.message.tool_call_id).toBe(second.call);
    expect(second.message.name).toBe('mail');
    expect(second.message.status).toBe('success');
    expect(resultOf(second.message)).toEqual(resultOf(first.message));
    expect(sent).toEqual(['ada']);
  });

  test.each(guarded)('4.3 a Command is passed on and never stored (guarded %s)', async (guarding) => {
    const note = tool(
      (args: { text: string }, { toolCallId }: ToolRuntime) => {
        sent.push(args.text);
        const answer = { type: 'tool', content: 'Noted.', tool_call_id: toolCallId };
        return new Command({ update: { messages: [answer] } });
      },
      { name: 'note', description: 'Notes.', schema: z.object({ text: z.string() }) },
    );
    const call = { name: 'note', args: { text: 'x' } };
    const model = new ScriptedModel([[call], [call]]);
    const agent = createAgent({
      model,
      tools: [guarding === 'by tool' ? guard(semel, note, policy) : note],
      middleware: guarding === 'by tool' ? [] : [guardMiddleware(semel, policies)],
    });
    const { messages } = await semel.within({ conversation: 'c', turn: '1' }, () =>
      agent.invoke(says('Note it.')),
    );
    expect(sent).toEqual(['x']);
    const [first, second] = toolMessages(messages);
    expect(first?.text).toBe('Noted.');
    expect(second?.text).toMatch(/not changed again\.\n\nAlready done on/);
    const [record] = (await semel.records.list()).items;
    expect(record?.status).toBe('succeeded');
    expect(JSON.stringify(record)).not.toMatch(/Noted|lg_name/);
  });
});

describe('4.4 pitfalls', () => {
  test.each(guarded)(
    '4.4 what stands before interrupt() runs twice; the claim is given back in between, and the effect is one (guarded %s)',
    async (guarding) => {
      let before = 0;
      const mail = mailTool(() => {
        before += 1;
        interrupt('May it?');
      });
      const { agent } = stage(guarding, { script: [[to('ada')]], mail });
      const paused = await agent.invoke(says('Write to Ada.'), thread('t'));
      expect((paused as { __interrupt__?: unknown[] }).__interrupt__).toHaveLength(1);
      expect((await semel.records.list()).items.map(({ status }) => status)).toEqual(['released']);
      await agent.invoke(new Command({ resume: true }), thread('t'));
      expect(before).toBe(2);
      expect(sent).toEqual(['ada']);
      expect((await semel.records.list()).items.map(({ status }) => status)).toEqual(['succeeded']);
    },
  );

  test.each(guarded)(
    '4.4 two identical calls at once get an interrupt each, so that each can be resumed; the effect is one (guarded %s)',
    async (guarding) => {
      const mail = mailTool(() => interrupt('May it?'));
      const { agent } = stage(guarding, { script: [[to('ada'), to('ada')]], mail });
      const paused = await agent.invoke(says('Write to Ada.'), thread('t'));
      const ids = (paused as { __interrupt__?: { id: string }[] }).__interrupt__?.map(({ id }) => id) ?? [];
      expect(new Set(ids).size).toBe(2);
      const resume = Object.fromEntries(ids.map((id) => [id, true]));
      const { messages } = await agent.invoke(new Command({ resume }), thread('t'));
      expect(sent).toEqual(['ada']);
      expect(toolMessages(messages).map(resultOf)).toEqual([{ number: 1 }, { number: 1 }]);
    },
  );

  test.each([
    new NodeInterrupt('Wait.'),
    new ParentCommand(new Command({ goto: 'elsewhere' })),
    Object.assign(new GraphBubbleUp('Drained.'), { name: 'GraphDrained' }),
  ])('4.4 $name is control flow: it passes as it is, and nothing is in doubt', async (signal) => {
    const mail = guard(
      semel,
      mailTool(() => {
        throw signal;
      }),
      { ...policy, per: 'ever' },
    );
    await expect(mail.invoke({ to: 'ada' })).rejects.toBe(signal);
    expect((await semel.records.list()).items.map(({ status }) => status)).toEqual(['released']);
  });

  /** Between the retry and the tool: what it needs afterwards fails twice. */
  const flaky = () => {
    let failures = 0;
    return createMiddleware({
      name: 'flaky',
      wrapToolCall: async (request, handler) => {
        const result = await handler(request);
        failures += 1;
        if (failures < 3) throw new Error('The trace could not be written.');
        return result;
      },
    });
  };
  const attempts = (count: { now: number }) =>
    createMiddleware({
      name: 'attempts',
      wrapToolCall: (request, handler) => {
        count.now += 1;
        return handler(request);
      },
    });
  /** Its own type does not fit into a list of middleware where optional is exact. */
  const retry = () => toolRetryMiddleware({ initialDelayMs: 1, jitter: false }) as unknown as AgentMiddleware;

  test.each([
    ['by tool', () => guard(semel, mailTool(), policy), (): AgentMiddleware[] => [], 1],
    ['by middleware', mailTool, () => [guardMiddleware(semel, policies)], 1],
    ['not at all', mailTool, (): AgentMiddleware[] => [], 3],
  ] as const)(
    '4.4 inside of the retry, three attempts are one effect (guarded %s)',
    async (_, mail, inside, effects) => {
      const count = { now: 0 };
      const agent = createAgent({
        model: new ScriptedModel([[to('ada')]]),
        tools: [mail()],
        middleware: [retry(), flaky(), attempts(count), ...inside()],
      });
      const { messages } = await agent.invoke(says('Write.'), thread('t'));
      expect(count.now).toBe(3);
      expect(sent).toHaveLength(effects);
      if (effects === 1) expect(resultOf(toolMessages(messages)[0]!)).toEqual({ number: 1 });
    },
  );

  test('4.4 listed outside of the retry, the construction fails with the reason', () => {
    const guarding = guardMiddleware(semel, policies);
    expect(() => inOrder([guarding, retry()])).toThrow(
      /toolRetryMiddleware is listed after the guard, so it runs inside it: .* List the guard last\./,
    );
    expect(() => inOrder([retry()])).toThrow(/no guard among the middleware/);
    const list = [retry(), guarding] as const;
    expect(inOrder(list)).toBe(list);
  });

  test('4.4 listed outside by one who did not ask, every attempt meets the ledger all the same', async () => {
    const count = { now: 0 };
    const agent = createAgent({
      model: new ScriptedModel([[to('ada')]]),
      tools: [mailTool()],
      middleware: [guardMiddleware(semel, policies), retry(), flaky(), attempts(count)],
    });
    await agent.invoke(says('Write.'), thread('t'));
    expect(count.now).toBe(3);
    expect(sent).toEqual(['ada']);
  });

  test.each(guarded)(
    '4.4 an error that says nothing is in doubt: the retry has nothing to retry, and the model hears what to do (guarded %s)',
    async (guarding) => {
      const mail = mailTool(undefined, () => {
        throw Object.assign(new Error('The operation timed out.'), { code: 'ETIMEDOUT' });
      });
      const { agent, model } = stage(guarding, { script: [[to('ada')]], mail, outside: [retry()] });
      const { messages } = await agent.invoke(says('Write.'), thread('t'));
      expect(sent).toEqual(['ada']);
      const [message] = toolMessages(messages);
      expect(message?.status).toBe('error');
      expect(resultOf(message!)).toMatchObject({ code: 'IN_DOUBT', retriable: false });
      expect(model.prompt).not.toMatch(/failed after|try again|fix your mistakes/i);
    },
  );

  test.each(guarded)(
    '4.4 a failure that the tool classifies as safe may run again: the policy itself retries it (guarded %s)',
    async (guarding) => {
      let failures = 0;
      const mail = mailTool(() => {
        failures += 1;
        if (failures < 3) throw Object.assign(new Error('Refused.'), { code: 'ECONNREFUSED' });
      });
      const patient = {
        ...policy,
        classify: { ECONNREFUSED: 'notLanded' },
        retry: { tries: 3, backoff: '1ms' },
      } as const;
      const agent = createAgent({
        model: new ScriptedModel([[to('ada')]]),
        tools: [guarding === 'by tool' ? guard(semel, mail, patient) : mail],
        middleware: guarding === 'by tool' ? [] : [guardMiddleware(semel, { mail: patient })],
      });
      const { messages } = await agent.invoke(says('Write.'), thread('t'));
      expect(failures).toBe(3);
      expect(sent).toEqual(['ada']);
      expect(resultOf(toolMessages(messages)[0]!)).toEqual({ number: 1 });
    },
  );

  test.each(guarded)(
    '4.4 a result of two parts, content and artifact, is two parts again (guarded %s)',
    async (guarding) => {
      const mail = tool(
        ({ to }: { to: string }) => {
          sent.push(to);
          if (to === 'nobody') throw new Rejected('There is no such address.');
          return [`Sent to ${to}.`, { id: 'm-1', at: new Date(0) }];
        },
        {
          name: 'mail',
          description: 'Sends.',
          schema: z.object({ to: z.string() }),
          responseFormat: 'content_and_artifact',
        },
      );
      const script = [[to('ada')], [to('ada')], [to('nobody')]];
      const { agent } = stage(guarding, { script, mail: mail as never });
      const { messages } = await agent.invoke(says('Write.'), thread('t'));
      const [first, second, third] = toolMessages(messages) as [ToolMessage, ToolMessage, ToolMessage];
      expect(sent).toEqual(['ada', 'nobody']);
      expect(first.content).toBe('Sent to ada.');
      expect(second.content).toMatch(/^Sent to ada\.\n\nAlready done on/);
      expect(resultOf(second)).toEqual({ id: 'm-1', at: new Date(0) });
      expect(second.artifact).toEqual(first.artifact);
      expect(third).toMatchObject({ status: 'error', artifact: { code: 'FAILED' } });
      expect(JSON.parse(third.text)).toEqual(third.artifact);
    },
  );
});
