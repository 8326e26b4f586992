// What may have landed is sent again as it was sent first, under the same key: a provider that honours the key compares the
// rest. Whatever framework asks again has other words for it by then.

import { tool as openAiTool, RunContext } from '@openai/agents';
import { tool as langChainTool } from 'langchain';
import { createSemel, MaybeLanded, type Semel } from 'semel';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { guard as guardAi } from '../../src/adapters/ai-sdk/index.ts';
import { guard as guardAnthropic } from '../../src/adapters/anthropic/index.ts';
import { guard as guardLangChain } from '../../src/adapters/langchain/index.ts';
import { guard as guardOpenAi } from '../../src/adapters/openai-agents/index.ts';
import { currentAttempt } from '../../src/guard/index.ts';
import { guard as guardMcp } from '../../src/mcp/handler.ts';

const parameters = z.object({ order: z.string(), reason: z.string() });
type Args = z.infer<typeof parameters>;
const options = { name: 'refund', description: 'Refunds an order.' };
const policy = {
  effect: 'write-non-idempotent',
  per: 'ever',
  identity: ['order'],
  window: '1h',
  provider: { name: 'acme', window: '24h', sentBy: 'tool' },
} as const;

let semel: Semel;
let sent: { readonly key: string | undefined; readonly reason: string }[];
beforeEach(() => {
  sent = [];
  semel = createSemel({ store: 'memory:', namespace: 'wording', onWarning: () => undefined });
});
afterEach(() => semel.close({ grace: 0 }));

/** The answer to the first request is lost. */
async function effect({ reason }: Args): Promise<string> {
  sent.push({ key: currentAttempt()?.key, reason });
  if (sent.length === 1) throw new MaybeLanded('the answer was lost');
  return 're_1';
}

const ways: Record<string, () => (args: Args) => unknown> = {
  'ai-sdk'() {
    const tools = { refund: { inputSchema: parameters, execute: effect } };
    const { refund } = guardAi(semel, tools, { refund: policy } as never);
    return (args) => refund.execute(args);
  },
  anthropic() {
    const bare = { name: 'refund', input_schema: { type: 'object' }, run: effect };
    return (args) => guardAnthropic(semel, bare, policy as never).run(args);
  },
  langchain() {
    const guarded = guardLangChain(
      semel,
      langChainTool(effect, { ...options, schema: parameters }),
      policy as never,
    );
    return (args) => guarded.invoke(args);
  },
  'openai-agents, before `tool`'() {
    const guarded = guardOpenAi(semel, { ...options, parameters, execute: effect }, policy as never);
    return (args) => openAiTool(guarded as never).invoke(new RunContext(), JSON.stringify(args));
  },
  'openai-agents, after `tool`'() {
    const made = openAiTool({ ...options, parameters, execute: effect, errorFunction: null });
    const guarded = guardOpenAi(semel, made as never, policy as never) as unknown as typeof made;
    return (args) => guarded.invoke(new RunContext(), JSON.stringify(args));
  },
  mcp() {
    const handler = async (args: Args, _extra: unknown) => ({
      content: [{ type: 'text', text: await effect(args) }],
    });
    const guarded = guardMcp(semel, 'refund', policy as never, handler);
    return (args) => guarded(args, {});
  },
};

test.each(Object.keys(ways))('%s', async (way) => {
  const call = ways[way]!();
  await call({ order: '1', reason: 'it arrived broken' });
  await call({ order: '1', reason: 'the customer says that it is broken' });
  expect(sent).toHaveLength(2);
  expect(sent[1]).toEqual(sent[0]);
});
