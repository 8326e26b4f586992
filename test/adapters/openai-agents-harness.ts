// An agent of the OpenAI Agents SDK with a scripted model: tools guarded before `tool` made them, or after.
import { randomBytes } from 'node:crypto';
import {
  Agent,
  type AgentInputItem,
  type Model,
  type ModelRequest,
  type ModelResponse,
  RunState,
  type RunToolCallOutputItem,
  run,
  setTracingDisabled,
  tool,
  Usage,
} from '@openai/agents';
import { z } from 'zod';
import { guard } from '../../src/adapters/openai-agents/index.ts';
import {
  type AdapterHarness,
  type AgentReport,
  type AgentRun,
  contractPolicies,
  type Script,
} from '../support/adapter-contract/index.ts';

setTracingDisabled(true);

const newId = () => `call_${randomBytes(12).toString('hex')}`;

export interface ScriptedModel extends Model {
  /** What it was asked, in order. */
  readonly requests: ModelRequest[];
}

export interface LooseCall {
  readonly tool: string;
  readonly args: unknown;
  readonly id?: string;
}

/** Makes the calls of a script, step by step, then says that it is done. A text is sent as it is. */
export function modelOf(
  script: readonly (readonly LooseCall[])[] | Script,
  onStep?: (step: number) => void,
): ScriptedModel {
  const requests: ModelRequest[] = [];
  const answer = (request: ModelRequest): ModelResponse => {
    requests.push(structuredClone({ ...request, signal: undefined, tools: [] }) as never);
    onStep?.(requests.length);
    const calls = script[requests.length - 1] as readonly LooseCall[] | undefined;
    if (calls === undefined)
      return {
        usage: new Usage(),
        output: [
          {
            type: 'message',
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: 'It is done.' }],
          },
        ],
      };
    const output = calls.map(({ tool: name, args, id = newId() }) => ({
      type: 'function_call' as const,
      callId: id,
      name,
      arguments: typeof args === 'string' ? args : JSON.stringify(args),
      status: 'completed' as const,
    }));
    return { usage: new Usage(), output };
  };
  return {
    requests,
    getResponse: async (request) => answer(request),
    async *getStreamedResponse(request) {
      const { output } = answer(request);
      const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
      yield { type: 'response_done', response: { id: newId(), usage, output } } as never;
    },
  };
}

export const schemas = {
  refund: z.object({ order: z.string(), amount: z.number(), reason: z.string() }),
  mail: z.object({ to: z.string(), subject: z.string(), body: z.string() }),
  search: z.object({ query: z.string() }),
};

/** One run of an agent with these tools. */
export async function play(
  tools: readonly unknown[],
  script: readonly (readonly LooseCall[])[],
  over: object = {},
) {
  const model = modelOf(script);
  const agent = new Agent({ name: 'clerk', model, tools: tools as never });
  const result = await run(agent, question, over);
  return { agent, result, outputs: outputsOf(result.newItems), prompt: promptOf(model) };
}

type Made = 'before' | 'after';

function toolsOf({ semel, effects }: AgentRun, made: Made, more: object = {}) {
  const options = {
    refund: { name: 'refund', description: 'Refunds an order.', parameters: schemas.refund, ...more },
    mail: { name: 'mail', description: 'Sends a mail.', parameters: schemas.mail, ...more },
    search: { name: 'search', description: 'Searches.', parameters: schemas.search },
  };
  return (['refund', 'mail', 'search'] as const).map((name) => {
    const execute = async (args: object) => effects[name](args as never);
    const policy = contractPolicies[name] as never;
    if (made === 'before') return tool(guard(semel, { ...options[name], execute } as never, policy) as never);
    return guard(semel, tool({ ...options[name], execute, errorFunction: null } as never), policy);
  });
}

export const question = 'Refund order 17 and tell Ada.';

/** What the program has of each call. */
export function outputsOf(items: readonly { readonly type: string }[]): unknown[] {
  return items
    .filter((item): item is RunToolCallOutputItem => item.type === 'tool_call_output_item')
    .map(({ output }) => output);
}

export function promptOf({ requests }: ScriptedModel): string {
  return JSON.stringify(requests.at(-1)?.input as AgentInputItem[]);
}

function harnessOf(made: Made, stream: boolean): AdapterHarness {
  const agentOf = (asked: AgentRun, model: Model, more: object = {}) =>
    new Agent({ name: 'clerk', model, tools: toolsOf(asked, made, more) as never });
  const go = async (agent: Agent, input: string | RunState<undefined, Agent>, { signal }: AgentRun) => {
    const options = { maxTurns: 10, ...(signal === undefined ? {} : { signal }) };
    if (!stream) return run(agent, input as string, options);
    const streamed = await run(agent, input as string, { ...options, stream: true });
    for await (const _ of streamed);
    await streamed.completed;
    return streamed;
  };
  return {
    guesses: false,
    absent: {
      suspension: 'a function tool cannot suspend itself: only approvals interrupt a run',
      guess: 'a function tool is not shown what was said',
    },
    async run(asked): Promise<AgentReport> {
      const model = modelOf(asked.script, asked.onStep);
      const { newItems } = await go(agentOf(asked, model), question, asked);
      return { outputs: outputsOf(newItems), prompt: promptOf(model) };
    },
    async approveTwice(asked, click) {
      const agent = agentOf(asked, modelOf(asked.script), { needsApproval: true });
      const { state, interruptions } = await go(agent, question, asked);
      if (interruptions?.length !== 1) throw new Error('Nobody asked for an approval.');
      const kept = state.toString();
      const approve = async () => {
        const clerk = agentOf(asked, modelOf([]), { needsApproval: true });
        const resumed = await RunState.fromString(clerk, kept);
        for (const each of resumed.getInterruptions()) resumed.approve(each);
        await go(clerk, resumed as never, asked);
      };
      await Promise.all([click(approve), click(approve)]);
      await click(approve);
    },
  };
}

export const beforeTool: AdapterHarness = harnessOf('before', false);
export const afterTool: AdapterHarness = harnessOf('after', false);
export const streamedTool: AdapterHarness = harnessOf('before', true);
