// An agent of LangChain with a scripted model: its tools guarded one by one, or all of them by the middleware.
import { randomBytes } from 'node:crypto';
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, type BaseMessage, ToolMessage } from '@langchain/core/messages';
import { Command, interrupt, MemorySaver } from '@langchain/langgraph';
import { type AgentMiddleware, createAgent, humanInTheLoopMiddleware, tool } from 'langchain';
import { z } from 'zod';
import { guard, guardMiddleware, resultOf } from '../../src/adapters/langchain/index.ts';
import {
  type AdapterHarness,
  type AgentReport,
  type AgentRun,
  contractPolicies,
} from '../support/adapter-contract/index.ts';

export interface ModelCall {
  readonly name: string;
  readonly args: object;
  readonly id?: string;
}

/** Makes the calls of its script, step by step, each with a new id; then it says that it is done. */
export class ScriptedModel extends BaseChatModel {
  readonly script: readonly (readonly ModelCall[])[];
  readonly onStep: (step: number) => void;
  /** What it was shown, each time that it was asked. */
  readonly prompts: BaseMessage[][] = [];

  constructor(script: readonly (readonly ModelCall[])[], onStep: (step: number) => void = () => undefined) {
    super({});
    this.script = script;
    this.onStep = onStep;
  }
  override _llmType(): string {
    return 'scripted';
  }
  override bindTools(): this {
    return this;
  }
  override async _generate(messages: BaseMessage[]) {
    const step = this.prompts.push(messages);
    this.onStep(step);
    const calls = this.script[step - 1] ?? [];
    const message = new AIMessage({
      content: calls.length === 0 ? 'It is done.' : '',
      tool_calls: calls.map(({ name, args, id }) => ({
        type: 'tool_call' as const,
        name,
        args,
        id: id ?? `call_${randomBytes(12).toString('hex')}`,
      })),
    });
    return { generations: [{ text: '', message }] };
  }
  get prompt(): string {
    return (this.prompts.at(-1) ?? []).map(({ content }) => JSON.stringify(content)).join('\n');
  }
}

export function modelOf({ script, onStep }: Pick<AgentRun, 'script' | 'onStep'>): ScriptedModel {
  const calls = script.map((step) => step.map(({ tool: name, args }) => ({ name, args })));
  return new ScriptedModel(calls, onStep);
}

const schemas = {
  refund: z.object({ order: z.string(), amount: z.number(), reason: z.string() }),
  mail: z.object({ to: z.string(), subject: z.string(), body: z.string() }),
  search: z.object({ query: z.string() }),
};

export const question = { messages: [{ role: 'user' as const, content: 'Refund order 17 and tell Ada.' }] };

export function toolMessages(messages: readonly BaseMessage[]): ToolMessage[] {
  return messages.filter((message) => ToolMessage.isInstance(message));
}

/** Where the guard stands. */
export type Guarding = 'by tool' | 'by middleware' | 'nowhere';

interface Setting {
  readonly asked: AgentRun;
  readonly model: ScriptedModel;
  readonly before?: () => unknown;
  readonly middleware?: readonly AgentMiddleware[];
  readonly checkpointer?: MemorySaver;
}

export function agentOf(
  guarding: Guarding,
  { asked, model, before, middleware = [], checkpointer }: Setting,
) {
  const { semel, effects } = asked;
  const bare = (Object.keys(schemas) as (keyof typeof schemas)[]).map((name) =>
    tool(
      async (args: Record<string, unknown>) => {
        await before?.();
        return effects[name](args);
      },
      { name, description: `Does a ${name}.`, schema: schemas[name] as typeof schemas.refund },
    ),
  );
  const isByTool = guarding === 'by tool';
  return createAgent({
    model,
    tools: isByTool
      ? bare.map((each) => guard(semel, each, contractPolicies[each.name as 'refund'] as never))
      : bare,
    middleware: [
      ...middleware,
      ...(guarding === 'by middleware' ? [guardMiddleware(semel, contractPolicies)] : []),
    ],
    ...(checkpointer === undefined ? {} : { checkpointer }),
  });
}

function harnessOf(guarding: Guarding): AdapterHarness {
  return {
    guesses: true,
    async run(asked): Promise<AgentReport> {
      const model = modelOf(asked);
      const agent = agentOf(guarding, { asked, model });
      const { signal } = asked;
      const { messages } = await agent.invoke(question, signal === undefined ? {} : { signal });
      return { outputs: toolMessages(messages).map(resultOf), prompt: model.prompt };
    },
    async approveTwice(asked, click) {
      const checkpointer = new MemorySaver();
      const middleware = [humanInTheLoopMiddleware({ interruptOn: { refund: true, mail: true } } as never)];
      const agent = agentOf(guarding, { asked, model: modelOf(asked), middleware, checkpointer });
      const config = { configurable: { thread_id: 'approvals' } };
      await agent.invoke(question, config);
      const waiting = (await agent.graph.getState(config)).config;
      const approve = (at: object) =>
        click(() => agent.invoke(new Command({ resume: { decisions: [{ type: 'approve' }] } }), at));
      await Promise.all([approve(config), approve(config)]);
      await approve(waiting);
    },
    async suspendAndResume(asked) {
      const model = modelOf(asked);
      const checkpointer = new MemorySaver();
      let suspended = 0;
      const before = () => {
        suspended += 1;
        interrupt('May it be done?');
      };
      const agent = agentOf(guarding, { asked, model, before, checkpointer });
      const config = { configurable: { thread_id: 'suspended' } };
      await agent.invoke(question, config);
      if (suspended !== 1) throw new Error('It was not suspended.');
      const { messages } = await agent.invoke(new Command({ resume: true }), config);
      return { outputs: toolMessages(messages).map(resultOf), prompt: model.prompt };
    },
  };
}

export const langchainByTool: AdapterHarness = harnessOf('by tool');
export const langchainByMiddleware: AdapterHarness = harnessOf('by middleware');
export const langchainUnguarded: AdapterHarness = harnessOf('nowhere');
