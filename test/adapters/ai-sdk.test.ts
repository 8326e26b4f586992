// The adapter for the AI SDK, against the real packages of versions 6 and 7 with their offline models. Names that start with
// a number hold a fact about the SDK that the adapter depends on: `npm run facts` lists them.
import * as ai7 from 'ai';
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test';
import * as ai6 from 'ai6';
import { MockLanguageModelV3 } from 'ai6/test';
import { createSemel, type ErrorValue, type Semel } from 'semel';
import { currentAttempt, guard, isToolError } from 'semel/ai-sdk';
import { memoryStore } from 'semel/memory';
import { afterEach, beforeEach, describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { aiSdk6, aiSdk7, answerOf } from './ai-sdk-harness.ts';
import { playContract } from './contract.ts';

playContract('AI SDK 6', aiSdk6);
playContract('AI SDK 7', aiSdk7);

let semel: Semel;
let warnings: string[];
beforeEach(() => {
  warnings = [];
  semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: (text) => warnings.push(text) });
});
afterEach(() => semel.close({ grace: '1s' }));

const inputSchema = z.object({ order: z.string(), amount: z.number() });
const args = { order: 'o-17', amount: 4200 };
const policy = { refund: { effect: 'irreversible', per: 'ever' } } as const;
const refundCall = { tool: 'refund', args } as const;
const asked = (toolCallId: string) => ({ toolCallId, messages: [], context: {} as never });
const execute = (tool: { execute: unknown }, id: string, messages: unknown[] = []): Promise<unknown> =>
  (tool.execute as (...all: unknown[]) => Promise<unknown>)(args, { ...asked(id), messages });
const inTurn = <T>(work: () => T) => semel.within({ conversation: 'chat-7', turn: 'm-1' }, work);

type Ai = typeof ai7;
const versions: readonly (readonly [string, Ai, typeof MockLanguageModelV4])[] = [
  ['6', ai6 as unknown as Ai, MockLanguageModelV3 as unknown as typeof MockLanguageModelV4],
  ['7', ai7, MockLanguageModelV4],
];

/** A model that answers by a script, with and without streaming. */
function scripted(Model: typeof MockLanguageModelV4, script: Parameters<typeof answerOf>[0]['script']) {
  let step = 0;
  const next = () => {
    step += 1;
    return answerOf({ script }, step);
  };
  return new Model({
    doGenerate: (async () => next()) as never,
    doStream: (async () => {
      const { content, finishReason, usage } = next();
      const parts = (content as readonly { type: string; text: string }[]).flatMap((part): object[] =>
        part.type === 'text'
          ? [
              { type: 'text-start', id: '1' },
              { type: 'text-delta', id: '1', delta: part.text },
              { type: 'text-end', id: '1' },
            ]
          : [part],
      );
      const chunks = [
        { type: 'stream-start', warnings: [] },
        ...parts,
        { type: 'finish', finishReason, usage },
      ];
      return { stream: simulateReadableStream({ chunks: chunks as never[] }) };
    }) as never,
  });
}

describe.each(versions)('AI SDK %s', (_version, ai, Model) => {
  const generate = (model: unknown, tools: unknown, more: object = {}) =>
    ai.generateText({
      model,
      tools,
      prompt: 'Refund order 17.',
      stopWhen: ai.stepCountIs(5),
      ...more,
    } as never);

  test('1.1 a tool is called without its name: its place in the set names it, so that one function can be two tools', async () => {
    const done: string[] = [];
    const seen: object[] = [];
    const execute = (input: { order: string }, options: object) => {
      seen.push(options);
      done.push(input.order);
      return 'ok';
    };
    const tools = guard(
      semel,
      { refund: { inputSchema, execute }, credit: { inputSchema, execute } },
      { ...policy, credit: { effect: 'irreversible', per: 'ever' } },
    );
    const script = [[refundCall, { ...refundCall, tool: 'credit' as never }]];
    await inTurn(() => generate(scripted(Model, script), tools));
    await inTurn(() => generate(scripted(Model, script), tools));
    expect(done).toEqual(['o-17', 'o-17']);
    for (const options of seen) expect(options).not.toHaveProperty('toolName');
  });

  test('1.2 the key is made of what execute gets, after input repair', async () => {
    const done: unknown[] = [];
    const tools = guard(
      semel,
      { refund: { inputSchema, execute: (input: unknown) => done.push(input) } },
      policy,
    );
    const broken = [[{ tool: 'refund' as const, args: { order: 17, amount: 'all' } }]];
    const repair = async ({ toolCall }: { toolCall: object }) => ({
      ...toolCall,
      input: JSON.stringify(args),
    });
    const more = { experimental_repairToolCall: repair, repairToolCall: repair };
    await inTurn(() => generate(scripted(Model, broken), tools, more));
    await inTurn(() => generate(scripted(Model, [[refundCall]]), tools));
    expect(done).toEqual([args]);
  });

  test('1.3 a stream that dies after the call runs nothing; a caller who does it all again runs it once', async () => {
    let done = 0;
    const tools = guard(semel, { refund: { inputSchema, execute: () => ++done } }, policy);
    const [call] = answerOf({ script: [[refundCall]] }, 1).content;
    const dying = new Model({
      doStream: (async () => ({
        stream: new ReadableStream({
          start(controller) {
            controller.enqueue({ type: 'stream-start', warnings: [] });
            controller.enqueue(call);
            controller.error(new Error('connection reset'));
          },
        }),
      })) as never,
    });
    await inTurn(async () => {
      const { fullStream } = ai.streamText({
        model: dying,
        tools,
        prompt: 'Refund.',
        onError: () => {},
      } as never);
      for await (const _ of fullStream);
    }).catch(() => undefined);
    expect(done).toBe(0);
    const lost = new Model({
      doGenerate: (async (options: { prompt: readonly unknown[] }) => {
        if (options.prompt.length > 1) throw new Error('overloaded');
        return answerOf({ script: [[refundCall]] }, 1);
      }) as never,
    });
    for (let tries = 0; tries < 3; tries += 1)
      await expect(inTurn(() => generate(lost, tools, { maxRetries: 0 }))).rejects.toThrow('overloaded');
    expect(done).toBe(1);
  });

  test('1.4 what the SDK reads of a tool is kept: approval, title, strictness, options of providers', () => {
    const refund = {
      title: 'Refund',
      description: 'Refunds.',
      inputSchema,
      strict: true,
      needsApproval: () => true,
      providerOptions: { acme: { cache: true } },
      onInputAvailable: () => {},
      execute: () => 1,
    };
    const { refund: guarded } = guard(semel, { refund }, policy);
    const { execute: _, toModelOutput: _m, ...kept } = guarded as typeof guarded & { toModelOutput: unknown };
    const { execute: _e, ...own } = refund;
    expect(kept).toEqual(own);
  });

  test('1.5 a generator shows its parts while it works; its last word is kept, and a replay is that word alone', async () => {
    let done = 0;
    const execute = async function* () {
      done += 1;
      yield { state: 'asking the bank' };
      yield { state: 'refunded', id: 're_1' };
    };
    const tools = guard(semel, { refund: { inputSchema, execute } }, policy);
    const parts = async () => {
      const { fullStream } = ai.streamText({
        model: scripted(Model, [[refundCall]]),
        tools,
        prompt: 'Refund.',
        stopWhen: ai.stepCountIs(3),
      } as never);
      const seen: [unknown, unknown][] = [];
      for await (const part of fullStream)
        if (part.type === 'tool-result') seen.push([part.output, part.preliminary === true]);
      return seen;
    };
    expect(await inTurn(parts)).toEqual([
      [{ state: 'asking the bank' }, true],
      [{ state: 'refunded', id: 're_1' }, true],
      [{ state: 'refunded', id: 're_1' }, false],
    ]);
    const again = await inTurn(parts);
    expect(again.at(-1)).toEqual([{ state: 'refunded', id: 're_1' }, false]);
    expect(JSON.stringify(again)).not.toContain('asking');
    expect(done).toBe(1);
  });

  test('1.5 the code gets at first what it gets on a replay, also where JSON would lose something', async () => {
    const at = new Date(0);
    const value = { at, none: undefined, list: [1, undefined], big: 12n };
    const tools = guard(semel, { refund: { inputSchema, execute: () => value } }, policy);
    const call = (id: string) => inTurn(() => execute(tools.refund, id));
    expect(await call('call_a')).toEqual(value);
    expect(await call('call_b')).toEqual(value);
  });

  test('1.5 a tool’s own words for the model get the raw value, and the line stands after them', async () => {
    const outputs: unknown[] = [];
    const tools = guard(
      semel,
      {
        refund: {
          inputSchema,
          execute: () => ({ id: 're_1' }),
          toModelOutput: ({ output }: { output: unknown }) => {
            outputs.push(output);
            return { type: 'text', value: 'Refund re_1.' };
          },
        },
      },
      policy,
    );
    const model = scripted(Model, [[refundCall], [refundCall]]);
    await inTurn(() => generate(model, tools));
    expect(new Set(outputs.map((output) => JSON.stringify(output)))).toEqual(new Set(['{"id":"re_1"}']));
    const prompt = JSON.stringify(model.doGenerateCalls.at(-1)?.prompt);
    expect(prompt).toContain('"Refund re_1."');
    expect(prompt).toMatch(/Refund re_1\.\\n\\nAlready done on .* nothing was sent again\./);
  });

  test('two chats without ids are not treated as one', async () => {
    let refunds = 0;
    const terms = { effect: 'irreversible', per: 'conversation' } as const;
    const execution = async () => ({ refund: ++refunds });
    const tools = guard(semel, { refund: { inputSchema, execute: execution } }, { refund: terms });
    for (const content of ['I am Ann.', 'I am Bob.'])
      expect(await execute(tools.refund, 'c', [{ role: 'user', content }])).toMatchObject({
        code: 'NO_IDENTITY',
      });
    for (const conversation of ['a', 'b', 'b'])
      await semel.within({ conversation }, () => execute(tools.refund, 'c'));
    expect(refunds).toBe(2);
  });

  test('when call ids restart in each chat, an execution is not reported as a replay', async () => {
    let sent = 0;
    let result: () => object = () => ({ id: `m-${++sent}` });
    const mail = { inputSchema, execute: async () => result() };
    const note = { inputSchema, execute: async () => 'noted' };
    const once = 'write-non-idempotent';
    const tools = Object.values(guard(semel, { mail, note }, { mail: once, note: once }));
    const told = (conversation: string) =>
      semel.within({ conversation, turn: '1' }, async () => {
        const answers = tools.map(async (tool, place) => {
          const toolCallId = `functions:${place}`;
          const output = await execute(tool, toolCallId);
          const { toModelOutput } = tool as unknown as { toModelOutput: (asked: object) => Promise<unknown> };
          return JSON.stringify(await toModelOutput({ toolCallId, input: args, output }));
        });
        return (await Promise.all(answers)).map((text) => text.includes('Already done'));
      });
    expect(await told('a')).toEqual([false, false]);
    expect(await told('a')).toEqual([true, true]);
    expect(await told('b')).toEqual([false, false]);
    expect(await told('b')).toEqual([true, true]);
    expect(sent).toBe(2);
    // Nor does a value without any text hurt a call that is done.
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    result = () => circular;
    const other = semel.within({ conversation: 'c', turn: '1' }, () =>
      execute(tools[0] as never, 'functions:0'),
    );
    expect(await other).toBe(circular);
  });

  test('a number that JSON cannot express does not end the run', async () => {
    const execute = async () => ({ id: 12_345_678_901_234_567_890n });
    const tools = guard(semel, { refund: { inputSchema, execute } }, policy);
    const model = scripted(Model, [[refundCall], [refundCall]]);
    await generate(model, tools);
    expect(JSON.stringify(model.doGenerateCalls.at(-1)?.prompt).match(/12345678901234567890/g)).toHaveLength(
      2,
    );
  });

  test("1.5 an error reaches the model as an error, not as the tool's result", async () => {
    const fail = () => {
      throw new Error('socket hang up');
    };
    const model = scripted(Model, [[refundCall]]);
    await inTurn(() => generate(model, guard(semel, { refund: { inputSchema, execute: fail } }, policy)));
    const prompt = JSON.stringify(model.doGenerateCalls.at(-1)?.prompt);
    expect(prompt).toMatch(/"output":\{"type":"error-json","value":\{"code":"IN_DOUBT"/);
  });

  test('1.5 what a tool of an MCP client returns as an error is not recorded as done', async () => {
    let calls = 0;
    const fail = async () => {
      calls += 1;
      return { isError: true, content: [{ type: 'text', text: 'socket hang up' }] };
    };
    const tools = guard(semel, { refund: { inputSchema, execute: fail } }, policy);
    const model = scripted(Model, [[refundCall], [refundCall]]);
    await inTurn(() => generate(model, tools));
    const prompt = JSON.stringify(model.doGenerateCalls.at(-1)?.prompt);
    expect(prompt.match(/"output":\{"type":"error-json","value":\{"code":"IN_DOUBT"/g)).toHaveLength(2);
    expect(prompt).toContain('socket hang up');
    expect(prompt).not.toContain('already done');
    expect(calls).toBe(1);
    expect((await semel.doubts.list()).items).toHaveLength(1);
  });

  test('1.5 a server that refused the arguments has not run the tool, which may be called with others', async () => {
    const words = 'Input validation error: Invalid arguments for tool refund: amount: expected a number';
    const answers = [
      { isError: true, content: [{ type: 'text', text: words }] },
      { content: [{ type: 'text', text: 're_1' }] },
    ];
    const tools = guard(semel, { refund: { inputSchema, execute: async () => answers.shift() } }, policy);
    expect(await inTurn(() => execute(tools.refund, 'call_a'))).toMatchObject({ code: 'NOT_LANDED' });
    expect(await inTurn(() => execute(tools.refund, 'call_b'))).toMatchObject({
      content: [{ text: 're_1' }],
    });
    // In the words of another tool it is no word of this one.
    const other = words.replace('refund', 'ledger.write');
    const mixed = async () => ({ isError: true, content: [{ type: 'text', text: other }] });
    const relayed = guard(semel, { pay: { inputSchema, execute: mixed } }, { pay: policy.refund });
    expect(await inTurn(() => execute(relayed.pay, 'call_c'))).toMatchObject({ code: 'IN_DOUBT' });
  });

  test('1.5 `classify` may say what such an error means', async () => {
    let calls = 0;
    const fail = async () => {
      calls += 1;
      return { isError: true, content: [{ type: 'text', text: 'not found' }], code: 404 };
    };
    const classify = (error: unknown) =>
      (error as { result?: { code?: number } }).result?.code === 404 ? ('notLanded' as const) : undefined;
    const tools = guard(
      semel,
      { refund: { inputSchema, execute: fail } },
      { refund: { ...policy.refund, classify } },
    );
    for (const id of ['call_a', 'call_b'])
      expect(await inTurn(() => execute(tools.refund, id))).toMatchObject({ code: 'NOT_LANDED' });
    expect(calls).toBe(2);
  });

  test('1.5 every later request with the same messages contains the line', async () => {
    const tools = guard(semel, { refund: { inputSchema, execute: () => ({ id: 're_1' }) } }, policy);
    for (const id of ['call_a', 'call_b']) await inTurn(() => execute(tools.refund, id));
    const part = { type: 'tool-refund', toolCallId: 'call_b', state: 'output-available', input: args };
    const messages = [{ role: 'assistant', parts: [{ ...part, output: { id: 're_1' } }] }];
    for (const _ of [1, 2]) {
      const prompt = await ai.convertToModelMessages(messages as never, { tools: tools as never });
      expect(JSON.stringify(prompt)).toContain('nothing was sent again');
    }
  });

  test('1.5 tools that the client or the provider runs pass as they are, and a read too', () => {
    const ask = { inputSchema, description: 'The page asks the user.' };
    const search = { type: 'provider', id: 'acme.search', args: {}, inputSchema } as const;
    const look = { inputSchema, execute: () => 1 };
    const tools = guard(semel, { ask, search, look }, { look: 'read' });
    expect(tools).toEqual({ ask, search, look });
    expect(tools.look).toBe(look);
  });

  test('1.5 a tool is called as a method of itself', async () => {
    const refund = {
      inputSchema,
      bank: 'acme',
      execute(this: { bank: string }) {
        return this.bank;
      },
    };
    const tools = guard(semel, { refund }, policy);
    expect(await inTurn(() => execute(tools.refund, 'c'))).toBe('acme');
  });

  test('a run that is streamed goes through the ledger too, also when it is read elsewhere', async () => {
    let done = 0;
    const tools = guard(semel, { refund: { inputSchema, execute: () => ++done } }, policy);
    const started = () =>
      inTurn(() =>
        ai.streamText({
          model: scripted(Model, [[refundCall]]),
          tools,
          prompt: 'x',
          stopWhen: ai.stepCountIs(3),
        } as never),
      );
    for (const { fullStream } of [started(), started()]) for await (const _ of fullStream);
    expect(done).toBe(1);
  });

  test('a tool that semel.tool made drops in, with its schema and description', async () => {
    let done = 0;
    const refund = semel.tool({
      name: 'refund',
      description: 'Refunds an order.',
      effect: 'irreversible',
      per: 'ever',
      input: inputSchema,
      run: ({ amount }) => {
        done += 1;
        return { refunded: amount };
      },
    });
    const tools = guard(semel, { refund });
    expectTypeOf(tools.refund.execute).returns.resolves.toEqualTypeOf<{ refunded: number } | ErrorValue>();
    const model = scripted(Model, [[refundCall], [refundCall]]);
    const { steps } = await inTurn(() => generate(model, tools));
    expect(steps.flatMap((step) => step.toolResults.map(({ output }) => output))).toEqual([
      { refunded: 4200 },
      { refunded: 4200 },
    ]);
    expect(done).toBe(1);
    expect(JSON.stringify(model.doGenerateCalls[0]?.tools)).toContain('Refunds an order.');
  });
});

test('a named identity is passed on, and a guessed one is marked as a guess', async () => {
  const tools = guard(semel, { mail: { inputSchema, execute: () => 1 } }, { mail: 'write-non-idempotent' });
  expect(await execute(tools.mail, 'c', [{ role: 'user', content: 'hi' }])).toBe(1);
  expect(warnings.join()).toMatch(/mail: the turn was guessed/);
});

test('instructions that change with each step are not part of a guessed turn; words of the user are', async () => {
  let done = 0;
  const tools = guard(
    semel,
    { mail: { inputSchema, execute: () => ++done } },
    { mail: 'write-non-idempotent' },
  );
  const [first, second] = ['call_9f2c1a7e5b3d4c6f8a01', 'call_0b7d3e9a1c5f4286ab12'] as const;
  const content = [{ type: 'tool-call', toolCallId: first, toolName: 'mail', input: args }];
  const step = (time: string, words: string, ...more: object[]) => [
    { role: 'system', content: `It is ${time}.` },
    { role: 'user', content: words },
    ...more,
  ];
  expect(await execute(tools.mail, first, step('12:00', 'hi'))).toBe(1);
  expect(await execute(tools.mail, second, step('12:01', 'hi', { role: 'assistant', content }))).toBe(1);
  expect(await execute(tools.mail, second, step('12:01', 'hi again'))).toBe(2);
});

test('a generator belongs to the turn that it was called in, wherever it is read', async () => {
  let done = 0;
  const parts = async function* (_args: unknown, _options: unknown) {
    yield 'working';
    yield ++done;
  };
  const tools = guard(semel, { mail: { inputSchema, execute: parts } }, { mail: 'write-non-idempotent' });
  const call = () => inTurn(() => tools.mail.execute(args, asked('c'))) as AsyncIterable<unknown>;
  const read = async () => {
    const seen = [];
    for await (const part of call()) seen.push(part);
    return seen;
  };
  expect(await read()).toEqual(['working', 1]);
  expect(await read()).toEqual([1]);
});

test('without any message there is nothing to guess from: the model gets an error, and nothing runs', async () => {
  let done = 0;
  const tools = guard(
    semel,
    { mail: { inputSchema, execute: () => ++done } },
    { mail: 'write-non-idempotent' },
  );
  const output = await execute(tools.mail, 'c');
  expect(isToolError(output) && output.code).toBe('NO_IDENTITY');
  expect(done).toBe(0);
});

test('what cannot be undone is not bounded by a guessed turn', async () => {
  const tools = guard(
    semel,
    { refund: { inputSchema, execute: () => 1 } },
    { refund: { effect: 'irreversible', per: 'turn' } },
  );
  const output = await execute(tools.refund, 'c', [{ role: 'user', content: 'hi' }]);
  expect(isToolError(output) && output.code).toBe('NO_IDENTITY');
});

test('repeat by-call: identical calls that are meant run each once, by their ids', async () => {
  let done = 0;
  const tools = guard(
    semel,
    { roll: { inputSchema, execute: () => ++done } },
    { roll: { effect: 'write-non-idempotent', repeat: 'by-call' } },
  );
  const call = (id: string) => inTurn(() => execute(tools.roll, id));
  expect([await call('call_a'), await call('call_b'), await call('call_a')]).toEqual([1, 2, 1]);
});

test('inside a tool the attempt is available: its key is the same for a retry', async () => {
  const keys: (string | undefined)[] = [];
  const tools = guard(
    semel,
    { refund: { inputSchema, execute: () => keys.push(currentAttempt()?.key) } },
    { refund: { effect: 'write-idempotent' } },
  );
  await execute(tools.refund, 'a');
  expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
  expect(currentAttempt()).toBeUndefined();
});

describe('what is refused when the tools are made', () => {
  const refund = { inputSchema, execute: () => 1 };
  test.each<[string, () => unknown, RegExp]>([
    [
      'a tool without a policy',
      () => guard(semel, { refund }, {} as never),
      /refund has no policy.*Add one/s,
    ],
    [
      'a policy without a tool',
      () => guard(semel, { refund }, { ...policy, refnud: 'read' } as never),
      /`refnud`.*tools are refund/s,
    ],
    ['an unknown effect', () => guard(semel, { refund }, { refund: 'write' } as never), /not a valid effect/],
    [
      'an irreversible effect without a period',
      () => guard(semel, { refund }, { refund: 'irreversible' } as never),
      /Add `per`/,
    ],
    [
      'a key in the schema',
      () =>
        guard(
          semel,
          { refund: { ...refund, inputSchema: inputSchema.extend({ idempotencyKey: z.string() }) } },
          policy as never,
        ),
      /the model would supply the key, as `idempotencyKey`/,
    ],
    [
      'a key in a schema that the SDK has wrapped',
      () => {
        const properties = { idempotency_key: { type: 'string' } } as const;
        const wrapped = ai7.jsonSchema({ type: 'object', properties });
        return guard(semel, { refund: { ...refund, inputSchema: wrapped } }, policy as never);
      },
      /the model would supply the key, as `idempotency_key`/,
    ],
    [
      'a key in the description',
      () => guard(semel, { refund: { ...refund, description: 'Pass a fresh idempotency key.' } }, policy),
      /description mentions an idempotency key to the model/,
    ],
    [
      'a field that is none',
      () =>
        guard(semel, { refund }, { refund: { effect: 'irreversible', per: 'ever', windwo: '1h' } } as never),
      /windwo/,
    ],
  ])('%s', (_what, make, message) => {
    expect(make).toThrowError(message);
  });
});
