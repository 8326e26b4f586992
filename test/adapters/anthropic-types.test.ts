// What the compiler knows of guarded tools of the Anthropic SDK. Nothing here is run.
import type Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import type { Semel } from 'semel';
import { expectTypeOf, test } from 'vitest';
import { guard, toolResults } from '../../src/adapters/anthropic/index.ts';
import { schemas, settings } from './anthropic-harness.ts';

async function check(semel: Semel, client: Anthropic): Promise<void> {
  const refund = betaZodTool({
    name: 'refund',
    description: 'Refunds an order.',
    inputSchema: schemas.refund,
    run: async ({ order }) => order,
  });
  const json = betaTool({
    name: 'mail',
    description: 'Sends a mail.',
    inputSchema: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
    run: ({ to }) => to,
  });
  const guarded = guard(semel, refund, { effect: 'irreversible', per: 'ever', content: ['reason'] });
  expectTypeOf(guarded).toEqualTypeOf<typeof refund>();
  // @ts-expect-error: there is no such field
  guard(semel, refund, { effect: 'irreversible', per: 'ever', content: ['reasn'] });
  // @ts-expect-error: there is no such field
  guard(semel, { refund }, { refund: { effect: 'write-non-idempotent', content: ['reasn'] } });
  // @ts-expect-error: one has no policy
  guard(semel, { refund, json }, { refund: 'write-idempotent' });

  const own = semel.tool({
    name: 'note',
    description: 'Makes a note.',
    effect: 'write-non-idempotent',
    per: 'turn',
    input: schemas.search,
    run: async () => ({ noted: true }),
  });
  expectTypeOf(guard(semel, own).run).parameter(0).toEqualTypeOf<{ query: string }>();

  const web = { type: 'web_search_20250305', name: 'web_search' } as const;
  const tools = guard(
    semel,
    { refund, json, own, web },
    { refund: 'write-idempotent', json: { effect: 'read' } },
  );
  await client.beta.messages.toolRunner({ ...settings, messages: [], tools });

  const messages: Anthropic.MessageParam[] = [];
  const reply = await client.messages.create({ ...settings, messages, tools: [guard(semel, own)] });
  messages.push({ role: 'user', content: await toolResults(tools, reply.content) });
  const byHand = {
    name: 'note',
    input_schema: { type: 'object' as const },
    run: (_: { text: string }) => ({}),
  };
  const [made] = guard(semel, { byHand }, { byHand: { effect: 'write-non-idempotent', content: ['text'] } });
  await client.messages.create({ ...settings, messages, tools: [made!] });
}

test('types are checked by the compiler', () => {
  expectTypeOf(check).toBeFunction();
});
