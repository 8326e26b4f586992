// What the compiler knows of guarded tools of the AI SDK, versions 6 and 7. Nothing here is run.
import * as ai7 from 'ai';
import * as ai6 from 'ai6';
import type { ErrorValue, Semel } from 'semel';
import { guard, isToolError } from 'semel/ai-sdk';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';

const inputSchema = z.object({ order: z.string(), amount: z.number() });
const definition = { inputSchema, execute: async ({ amount }: { amount: number }) => ({ ok: amount }) };
const once = { effect: 'irreversible', per: 'ever' } as const;
type Refunded = { ok: number } | ErrorValue;

function checkPolicies(semel: Semel): void {
  const refund = ai7.tool(definition);
  const search = ai7.tool({ inputSchema: z.object({ query: z.string() }), execute: async () => ['hit'] });
  guard(semel, { refund, search }, { refund: { ...once, content: ['order'] }, search: 'read' });
  // @ts-expect-error: `reason` is not a field of the input.
  guard(semel, { refund }, { refund: { effect: 'irreversible', per: 'ever', content: ['reason'] } });
  // @ts-expect-error: an irreversible effect needs `per`.
  guard(semel, { refund }, { refund: { effect: 'irreversible' } });
  // @ts-expect-error: search has no policy.
  guard(semel, { refund, search }, { refund: 'read' });
  // @ts-expect-error: neither has a policy.
  guard(semel, { refund, search });
  // @ts-expect-error: there is no tool of this name.
  guard(semel, { refund }, { refund: once, refnud: 'read' });
  // @ts-expect-error: a policy has no such field.
  guard(semel, { refund }, { refund: { effect: 'irreversible', per: 'ever', windwo: '1h' } });
  const six = ai6.tool(definition);
  guard(semel, { six }, { six: { effect: 'irreversible', per: 'ever', content: ['order'] } });
  // @ts-expect-error: `reason` is not a field of the input, in version 6 too.
  guard(semel, { six }, { six: { effect: 'irreversible', per: 'ever', content: ['reason'] } });
}

async function checkResults(semel: Semel) {
  const search = ai7.tool({ inputSchema: z.object({ query: z.string() }), execute: async () => ['hit'] });
  const ask = ai7.tool({ inputSchema });
  const tools = guard(
    semel,
    { refund: ai7.tool(definition), search, look: ai7.tool(definition) },
    { refund: once, search: 'read', look: { effect: 'read' } },
  );
  // Reads, and tools that do not run here, are not guarded.
  expectTypeOf(tools.search).toEqualTypeOf<typeof search>();
  expectTypeOf(guard(semel, { ask }).ask).toEqualTypeOf<typeof ask>();
  expectTypeOf<ai7.InferToolOutput<typeof tools.look>>().toEqualTypeOf<{ ok: number }>();

  const { toolResults } = await ai7.generateText({ model: {} as never, tools, prompt: '' });
  for (const result of toolResults) {
    if (result.dynamic || result.toolName !== 'refund') continue;
    expectTypeOf(result.output).toEqualTypeOf<Refunded>();
    // @ts-expect-error: it may be an error.
    result.output.ok;
    if (isToolError(result.output)) expectTypeOf(result.output.correctiveAction).toBeString();
    else expectTypeOf(result.output).toEqualTypeOf<{ ok: number }>();
  }
  expectTypeOf<ai7.InferUITools<typeof tools>['refund']['output']>().toEqualTypeOf<Refunded>();
  return new ai7.ToolLoopAgent({ model: {} as never, tools });
}

async function checkShapes(semel: Semel) {
  const shown = ai7.tool({
    ...definition,
    toModelOutput: ({ output }) => ({ type: 'text', value: String(output.ok) }),
  });
  const shapes = guard(
    semel,
    {
      plain: { inputSchema, execute: ({ amount }: { amount: number }) => amount },
      streamed: {
        inputSchema,
        execute: async function* (_: { order: string }) {
          yield 'working';
        },
      },
      shown,
    },
    { plain: once, streamed: once, shown: once },
  );
  expectTypeOf(shapes.plain.execute).returns.resolves.toEqualTypeOf<number | ErrorValue>();
  expectTypeOf(shapes.streamed.execute).returns.toEqualTypeOf<AsyncIterable<string | ErrorValue>>();
  expectTypeOf<ai7.InferToolOutput<typeof shapes.shown>>().toEqualTypeOf<Refunded>();
  await ai7.generateText({ model: {} as never, tools: shapes, prompt: '' });

  const six = guard(semel, { refund: ai6.tool(definition) }, { refund: once });
  expectTypeOf<ai6.InferToolOutput<typeof six.refund>>().toEqualTypeOf<Refunded>();
  return ai6.generateText({ model: {} as never, tools: six, prompt: '' });
}

test('types are checked by the compiler', () => {
  expectTypeOf(checkPolicies).toBeFunction();
  expectTypeOf(checkResults).toBeFunction();
  expectTypeOf(checkShapes).toBeFunction();
});
