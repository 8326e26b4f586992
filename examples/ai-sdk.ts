// An agent of the AI SDK whose whole run is made three times: the model plans anew, with new ids and new words. The bank is
// a list in this program; what is in it really happened. The model is a script, so that this runs offline.

import { generateText, stepCountIs, tool } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { createSemel } from 'semel';
import { guard } from 'semel/ai-sdk';
import { z } from 'zod';

await using semel = createSemel({ store: 'memory:', namespace: 'example', onWarning: () => {} });
const bank: string[] = [];

const refund = tool({
  description: 'Refunds an order.',
  inputSchema: z.object({ order: z.string(), amount: z.number(), reason: z.string() }),
  execute: async ({ order, amount }) => {
    bank.push(`${order} ${amount}`);
    return { refunded: amount };
  },
});

const tools = guard(
  semel,
  { refund },
  { refund: { effect: 'irreversible', per: 'ever', content: ['reason'] } },
);

const reasons = ['it arrived broken', 'The item was damaged.', 'damaged on arrival'];
for (const [attempt, reason] of reasons.entries()) {
  const model = modelThatRefunds(attempt, reason);
  const { text } = await semel.within({ conversation: 'chat-7', turn: 'message-3' }, () =>
    generateText({ model, tools, prompt: 'Please refund order 17.', stopWhen: stepCountIs(5) }),
  );
  console.log(`run ${attempt + 1}: "${text}" · refunds at the bank: ${bank.length}`);
  const shown = JSON.stringify(model.doGenerateCalls.at(-1)?.prompt.at(-1));
  const line = /Already done[^"]*/.exec(shown)?.[0];
  if (line !== undefined)
    console.log(`       the model was told: ${line.replace(/ on [\d-]+ at [\d:]+ UTC/, '')}`);
}

function modelThatRefunds(attempt: number, reason: string): MockLanguageModelV4 {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }) =>
      prompt.at(-1)?.role === 'tool'
        ? {
            content: [{ type: 'text', text: 'Order 17 is refunded.' }],
            finishReason: { unified: 'stop', raw: undefined },
            usage,
            warnings: [],
          }
        : {
            content: [
              {
                type: 'tool-call',
                toolCallId: `call_${attempt}`,
                toolName: 'refund',
                input: JSON.stringify({ order: '17', amount: 4200, reason }),
              },
            ],
            finishReason: { unified: 'tool-calls', raw: undefined },
            usage,
            warnings: [],
          },
  });
}
