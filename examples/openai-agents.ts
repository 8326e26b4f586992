// An agent of the OpenAI Agents SDK that refunds an order: asked once, asked again because the answer was lost, and asked
// by a model that says the same in other words. The model is a script, so no network is needed. The bank is a list.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, type Model, type ModelRequest, run, setTracingDisabled, tool, Usage } from '@openai/agents';
import { createSemel } from 'semel';
import { guard } from 'semel/openai-agents';
import { z } from 'zod';

setTracingDisabled(true);
const folder = mkdtempSync(join(tmpdir(), 'semel-openai-agents-'));
const semel = createSemel({ store: `sqlite:${join(folder, 'ledger.db')}`, namespace: 'shop' });
const bank: string[] = [];

const done = {
  type: 'message' as const,
  role: 'assistant' as const,
  status: 'completed' as const,
  content: [{ type: 'output_text' as const, text: 'It is done.' }],
};

const refund = tool(
  guard(
    semel,
    {
      name: 'refund',
      description: 'Refunds an order.',
      parameters: z.object({ order: z.string(), amount: z.number(), reason: z.string() }),
      execute: async ({ order, amount }) => {
        bank.push(`${order} ${amount}`);
        return { id: `re_${bank.length}` };
      },
    },
    { effect: 'irreversible', per: 'ever', content: ['reason'] },
  ),
);

title('1. The agent refunds an order');
await ask('it arrived broken');

title('2. The answer was lost: the whole run is made again, with new ids');
await ask('it arrived broken');

title('3. The model plans anew, and words the reason differently');
await ask('The customer says that the parcel was damaged.');

title('What the bank saw');
for (const line of bank) say(line);
say(`effects: ${bank.length}`);
await semel.close();
rmSync(folder, { recursive: true });

/** One turn of a conversation, from its first message. */
async function ask(reason: string): Promise<void> {
  const model = scripted(reason);
  const agent = new Agent({ name: 'clerk', model, tools: [refund] });
  const { newItems } = await semel.within({ conversation: 'chat-7', turn: 'message-1' }, () =>
    run(agent, 'Please refund order o-17, it is broken.'),
  );
  for (const item of newItems)
    if (item.type === 'tool_call_output_item') say(`the program gets: ${JSON.stringify(item.output)}`);
  say(`the model reads: ${model.read.join(' | ')}`);
}

/** Calls the tool once, then says that it is done. It remembers what it read of the call. */
function scripted(reason: string): Model & { readonly read: string[] } {
  const read: string[] = [];
  return {
    read,
    async getResponse({ input }: ModelRequest) {
      const items = typeof input === 'string' ? [] : input;
      const results = items.filter((item) => item.type === 'function_call_result');
      if (results.length === 0) return { usage: new Usage(), output: [callOf(reason)] };
      for (const { output } of results) read.push(textOf(output));
      return { usage: new Usage(), output: [done] };
    },
    getStreamedResponse() {
      throw new Error('This story is not streamed.');
    },
  };
}

function callOf(reason: string) {
  const args = JSON.stringify({ order: 'o-17', amount: 42, reason });
  const callId = `call_${Math.random().toString(36).slice(2)}`;
  return { type: 'function_call', callId, name: 'refund', arguments: args, status: 'completed' } as const;
}

function textOf(output: unknown): string {
  const parts = (Array.isArray(output) ? output : [output]) as (string | { readonly text?: string })[];
  return parts.map((part) => (typeof part === 'string' ? part : part.text)).join(' ');
}

function title(text: string): void {
  console.log(`\n${text}`);
}

function say(text: string): void {
  console.log(`   ${text.replaceAll(/\s*\n\s*/g, ' ')}`);
}
