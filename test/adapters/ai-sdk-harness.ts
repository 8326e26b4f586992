// An agent of the AI SDK, version 6 or 7, with a scripted model.
import { randomBytes } from 'node:crypto';
import * as ai7 from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import * as ai6 from 'ai6';
import { MockLanguageModelV3 } from 'ai6/test';
import { z } from 'zod';
import { guard } from '../../src/adapters/ai-sdk/index.ts';
import {
  type AdapterHarness,
  type AgentReport,
  type AgentRun,
  contractPolicies,
} from '../support/adapter-contract/index.ts';

const newId = () => `call_${randomBytes(12).toString('hex')}`;

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** What the model answers when it is asked for the nth time. */
export function answerOf({ script, onStep }: Pick<AgentRun, 'script' | 'onStep'>, step: number) {
  onStep?.(step);
  const calls = script[step - 1];
  if (calls === undefined)
    return {
      content: [{ type: 'text' as const, text: 'It is done.' }],
      finishReason: { unified: 'stop' as const, raw: 'stop' },
      usage,
      warnings: [],
    };
  return {
    content: calls.map(({ tool, args }) => ({
      type: 'tool-call' as const,
      toolCallId: newId(),
      toolName: tool,
      input: JSON.stringify(args),
    })),
    finishReason: { unified: 'tool-calls' as const, raw: 'tool_calls' },
    usage,
    warnings: [],
  };
}

const schemas = {
  refund: z.object({ order: z.string(), amount: z.number(), reason: z.string() }),
  mail: z.object({ to: z.string(), subject: z.string(), body: z.string() }),
  search: z.object({ query: z.string() }),
};

function toolsOf({ semel, effects }: AgentRun, more: object = {}) {
  const { refund, mail, search } = effects;
  const tools = {
    refund: { description: 'Refunds an order.', inputSchema: schemas.refund, execute: refund, ...more },
    mail: { description: 'Sends a mail.', inputSchema: schemas.mail, execute: mail, ...more },
    search: { description: 'Searches.', inputSchema: schemas.search, execute: search },
  };
  return guard(semel, tools, contractPolicies as never);
}

const question = [{ role: 'user' as const, content: 'Refund order 17 and tell Ada.' }];

/** Both versions have the same functions; their types differ in parts that do not matter here. */
function harnessOf(ai: typeof ai7, Model: typeof MockLanguageModelV4): AdapterHarness {
  const modelOf = (asked: AgentRun) => {
    let step = 0;
    return new Model({
      doGenerate: (async () => {
        step += 1;
        return answerOf(asked, step);
      }) as never,
    });
  };
  const go = (asked: AgentRun, model: InstanceType<typeof Model>, messages: unknown, tools: unknown) =>
    ai.generateText({
      model,
      tools,
      messages,
      stopWhen: ai.stepCountIs(10),
      abortSignal: asked.signal,
    } as never);
  return {
    guesses: true,
    absent: { suspension: 'a tool of the AI SDK cannot suspend itself' },
    async run(asked): Promise<AgentReport> {
      const model = modelOf(asked);
      const { steps } = await go(asked, model, question, toolsOf(asked));
      return {
        outputs: steps.flatMap((step) => step.toolResults.map((result) => result.output)),
        prompt: JSON.stringify(model.doGenerateCalls.at(-1)?.prompt),
      };
    },
    async approveTwice(asked, click) {
      const tools = toolsOf(asked, { needsApproval: true });
      const first = await go(asked, modelOf(asked), question, tools);
      const request = first.content.find((part) => part.type === 'tool-approval-request') as
        | { approvalId: string }
        | undefined;
      if (request === undefined) throw new Error('Nobody asked for an approval.');
      const approval = { type: 'tool-approval-response', approvalId: request.approvalId, approved: true };
      const messages = [...question, ...first.response.messages, { role: 'tool', content: [approval] }];
      const rest = { ...asked, script: [] };
      const approve = () => click(async () => go(rest, modelOf(rest), messages, tools));
      await Promise.all([approve(), approve()]);
      await approve();
    },
  };
}

export const aiSdk7: AdapterHarness = harnessOf(ai7, MockLanguageModelV4);
export const aiSdk6: AdapterHarness = harnessOf(
  ai6 as unknown as typeof ai7,
  MockLanguageModelV3 as unknown as typeof MockLanguageModelV4,
);
