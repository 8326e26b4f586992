// An agent on the Anthropic SDK that refunds an order: by its tool runner, again because the answer was lost, and in a loop
// of one's own. The replies of the model are canned, so no network is needed. The bank is a list.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { createSemel } from 'semel';
import { guard, toolResults } from 'semel/anthropic';
import { z } from 'zod';

const folder = mkdtempSync(join(tmpdir(), 'semel-anthropic-'));
const semel = createSemel({ store: `sqlite:${join(folder, 'ledger.db')}`, namespace: 'shop' });
const bank: string[] = [];

const refund = betaZodTool({
  name: 'refund',
  description: 'Refunds an order.',
  inputSchema: z.object({ order: z.string(), amount: z.number(), reason: z.string() }),
  run: async ({ order, amount }) => {
    bank.push(`${order} ${amount}`);
    return `refunded as re_${bank.length}`;
  },
});
const tools = guard(
  semel,
  { refund },
  { refund: { effect: 'irreversible', per: 'ever', content: ['reason'] } },
);

const turn = { conversation: 'chat-7', turn: 'message-1' };
const settings = { model: 'claude', max_tokens: 1_000 };
const question = { role: 'user' as const, content: 'Please refund order o-17, it is broken.' };

title('1. The tool runner refunds an order');
await semel.within(turn, () => byRunner('it arrived broken'));

title('2. The answer was lost: the whole run is made again, with new ids');
await semel.within(turn, () => byRunner('it arrived broken'));

title('3. A loop of one’s own; the model words the reason differently');
await semel.within(turn, () => byHand('The customer says that the parcel was damaged.'));

title('What the bank saw');
for (const line of bank) say(line);
say(`effects: ${bank.length}`);
await semel.close();
rmSync(folder, { recursive: true });

async function byRunner(reason: string): Promise<void> {
  const client = canned(reason);
  await client.beta.messages.toolRunner({ ...settings, messages: [question], tools, thread: false });
}

async function byHand(reason: string): Promise<void> {
  const client = canned(reason);
  const messages: Anthropic.MessageParam[] = [question];
  for (;;) {
    const { content } = await client.messages.create({ ...settings, messages });
    messages.push({ role: 'assistant', content });
    const results = await toolResults(tools, content);
    if (results.length === 0) return;
    messages.push({ role: 'user', content: results });
  }
}

/** Calls the tool once, then says that it is done. It tells what it reads of the call. */
function canned(reason: string): Anthropic {
  const id = `toolu_${Math.random().toString(36).slice(2)}`;
  const call = { type: 'tool_use', id, name: 'refund', input: { order: 'o-17', amount: 42, reason } };
  const fetch = async (_url: unknown, { body }: { body?: unknown } = {}) => {
    const { messages } = JSON.parse(String(body)) as { messages: { content: unknown }[] };
    const isAnswered = messages.length > 1;
    if (isAnswered) say(`the model reads: ${textOf(messages.at(-1)?.content)}`);
    return Response.json({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'claude',
      content: isAnswered ? [{ type: 'text', text: 'It is done.' }] : [call],
      stop_reason: isAnswered ? 'end_turn' : 'tool_use',
      usage: { input_tokens: 1, output_tokens: 1 },
    });
  };
  return new Anthropic({ apiKey: 'none', fetch: fetch as typeof globalThis.fetch });
}

function textOf(blocks: unknown): string {
  const [{ content }] = blocks as [{ content: string | { text: string }[] }];
  return typeof content === 'string' ? content : content.map(({ text }) => text).join(' | ');
}

function title(text: string): void {
  console.log(`\n${text}`);
}

function say(text: string): void {
  console.log(`   ${text}`);
}
