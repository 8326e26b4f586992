// What the compiler knows of guarded tools of the OpenAI Agents SDK. Nothing here is run.
import { Agent, tool, webSearchTool } from '@openai/agents';
import type { Semel } from 'semel';
import { expectTypeOf, test } from 'vitest';
import { guard } from '../../src/adapters/openai-agents/index.ts';
import { schemas } from './openai-agents-harness.ts';

const options = { name: 'refund', description: 'Refunds an order.', parameters: schemas.refund };
type Refund = { order: string; amount: number; reason: string };

function check(semel: Semel): unknown {
  const made = tool({ ...options, execute: async ({ order }) => order });
  expectTypeOf(
    guard(semel, made, { effect: 'irreversible', per: 'ever', content: ['reason'] }),
  ).toEqualTypeOf<typeof made>();
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
  expectTypeOf(guard(semel, own).invoke).returns.resolves.toEqualTypeOf<{ sent: boolean }>();

  const tools = guard(semel, { made, own, web: webSearchTool() }, { made: 'write-idempotent' });
  return new Agent({ name: 'clerk', tools: [tool(inner), guard(semel, own), ...tools] });
}

test('types are checked by the compiler', () => {
  expectTypeOf(check).toBeFunction();
});
