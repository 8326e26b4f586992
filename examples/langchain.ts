// A refund by an agent of LangChain that lands once, although its whole run is made again. The model is a script
// and needs no network; the bank is a list that semel does not read, so it shows what really landed.

import { AIMessage, createAgent, fakeModel, ToolMessage, tool } from 'langchain';
import { createSemel } from 'semel';
import { guard, resultOf } from 'semel/langchain';
import { z } from 'zod';

const bank: string[] = [];

const refund = tool(
  ({ order, amount }: { order: string; amount: number; reason: string }) => {
    bank.push(`${order} ${amount}`);
    return { id: `re_${bank.length}` };
  },
  {
    name: 'refund',
    description: 'Refunds an order.',
    schema: z.object({ order: z.string(), amount: z.number(), reason: z.string() }),
  },
);

const semel = createSemel({ store: 'memory:', namespace: 'langchain', onWarning: () => undefined });

// The one line: how often it may run.
const guarded = guard(semel, refund, { effect: 'irreversible', per: 'turn', content: ['reason'] });

title('1. The refund is made, then the model is down, and the run fails');
await run('call_1', 'it arrived broken', new Error('503: the model is overloaded'));

title('2. The whole run is made again: a new tool_call_id, the reason in other words');
await run('call_2', 'The customer says that it was damaged.', new AIMessage('Your refund is on its way.'));

title('What the bank saw');
for (const line of bank) say(line);
say(`refunds: ${bank.length}`);
await semel.close();

async function run(id: string, reason: string, ending: AIMessage | Error): Promise<void> {
  const args = { order: 'o-17', amount: 4200, reason };
  const model = fakeModel()
    .respondWithTools([{ name: 'refund', args, id }])
    .respond(ending);
  const agent = createAgent({ model, tools: [guarded] });
  const messages = [{ role: 'user' as const, content: 'Please refund order 17.' }];
  try {
    // Who asks: the same turn, however often it is tried.
    const state = await semel.within({ conversation: 'chat-7', turn: 'message-1' }, () =>
      agent.invoke({ messages }),
    );
    for (const message of state.messages.filter((each) => ToolMessage.isInstance(each))) {
      say(`the program gets of ${message.tool_call_id}: ${JSON.stringify(resultOf(message))}`);
      for (const line of message.text.split('\n\n')) say(`the model reads: ${line}`);
    }
  } catch (error) {
    say(`the run failed: ${(error as Error).message}`);
  }
}

function title(text: string): void {
  console.log(`\n${text}`);
}

function say(text: string): void {
  console.log(`   ${text}`);
}
