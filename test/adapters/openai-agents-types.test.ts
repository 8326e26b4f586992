// What the compiler knows of guarded tools of the OpenAI Agents SDK. Nothing here is run.
import { Agent, tool, webSearchTool } from '@openai/agents';
import type { ErrorValue, Semel } from 'semel';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { guard } from '../../src/adapters/openai-agents/index.ts';
import { schemas } from './openai-agents-harness.ts';

const options = { name: 'refund', description: 'Refunds an order.', parameters: schemas.refund };
type Refund = { order: string; amount: number; reason: string };

function check(semel: Semel): unknown {
  const made = tool({ ...options, execute: async ({ order }) => order });
  const guarded = guard(semel, made, { effect: 'irreversible', per: 'ever', content: ['reason'] });
  expectTypeOf(guarded.invoke).returns.resolves.toEqualTypeOf<string | ErrorValue>();
  expectTypeOf(guarded.invoke).parameters.toEqualTypeOf<Parameters<typeof made.invoke>>();
  // @ts-expect-error: there is no such field
  guard(semel, made, { effect: 'write-non-idempotent', content: ['reasn'] });

  // @ts-expect-error: there is no such field
  guard(semel, { made }, { made: { effect: 'write-non-idempotent', content: ['reasn'] } });
  // @ts-expect-error: it has no policy
  guard(semel, { made }, {});

  const inner = guard(
    semel,
    {
      ...options,
      needsApproval: true,
      execute: async (input) => {
        expectTypeOf(input).toEqualTypeOf<Refund>();
        return input.order;
      },
    },
    { effect: 'irreversible', per: 'ever', content: ['reason'] },
  );
  expectTypeOf(inner.execute).returns.resolves.toEqualTypeOf<string | ErrorValue>();
  const checked = guard(
    semel,
    { ...options, outputSchema: z.object({ id: z.string() }), execute: async () => ({ id: 're_1' }) },
    { effect: 'irreversible', per: 'ever' },
  );
  expectTypeOf(checked.execute).returns.resolves.toEqualTypeOf<{ id: string }>();
  // @ts-expect-error: there is no such field
  guard(semel, { ...options, execute: async () => 1 }, { effect: 'irreversible', content: ['reasn'] });

  const own = semel.tool({
    name: 'mail',
    description: 'Sends a mail.',
    effect: 'write-non-idempotent',
    per: 'turn',
    input: schemas.mail,
    run: async () => ({ sent: true }),
  });
  expectTypeOf(guard(semel, own).invoke).returns.resolves.toEqualTypeOf<{ sent: boolean } | ErrorValue>();

  const tools = guard(semel, { made, own, web: webSearchTool() }, { made: 'write-idempotent' });
  return new Agent({
    name: 'clerk',
    tools: [tool(inner), tool(checked), guarded, guard(semel, own), ...tools],
  });
}

test('types are checked by the compiler', () => {
  expectTypeOf(check).toBeFunction();
});
