// The Anthropic SDK with canned replies: its tool runner, also eager, and a loop of one's own.
import { randomBytes } from 'node:crypto';
import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { z } from 'zod';
import { guard, toolResults } from '../../src/adapters/anthropic/index.ts';
import {
  type AdapterHarness,
  type AgentReport,
  type AgentRun,
  contractPolicies,
} from '../support/adapter-contract/index.ts';

const newId = () => `toolu_${randomBytes(12).toString('hex')}`;

export interface LooseCall {
  readonly tool: string;
  readonly args: object;
  readonly id?: string;
}
type LooseScript = readonly (readonly LooseCall[])[];
type Block = { type: 'text'; text: string } | { type: 'tool_use'; id: string; name: string; input: object };

export interface Canned {
  readonly client: Anthropic;
  /** What was sent, in order. */
  readonly sent: { readonly messages: readonly Message[] }[];
}

interface Message {
  readonly role: string;
  readonly content: string | readonly Readonly<Record<string, unknown>>[];
}

/** Makes the calls of a script, step by step, then says that it is done. `cut`: the stream breaks in that step. */
export function canned(script: LooseScript, onStep?: (step: number) => void, cut?: number): Canned {
  const sent: Canned['sent'] = [];
  const fetch = async (_url: unknown, init?: { body?: unknown }) => {
    const body = JSON.parse(String(init?.body));
    sent.push(body);
    onStep?.(sent.length);
    const calls = script[sent.length - 1];
    const content: Block[] = calls?.map(({ tool, args, id = newId() }) => ({
      type: 'tool_use',
      id,
      name: tool,
      input: args,
    })) ?? [{ type: 'text', text: 'It is done.' }];
    const message = {
      id: `msg_${sent.length}`,
      type: 'message',
      role: 'assistant',
      model: body.model,
      content,
      stop_reason: calls === undefined ? 'end_turn' : 'tool_use',
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    if (body.stream !== true) return Response.json(message);
    const events = eventsOf(message, content);
    const stream = sent.length === cut ? broken(events) : events.join('');
    return new Response(stream, { headers: { 'content-type': 'text/event-stream' } });
  };
  const client = new Anthropic({ apiKey: 'x', maxRetries: 0, fetch: fetch as typeof globalThis.fetch });
  return { client, sent };
}

function eventsOf(message: object, content: readonly Block[]): string[] {
  const event = (data: { type: string; [field: string]: unknown }) =>
    `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
  const { stop_reason } = message as { stop_reason: string };
  return [
    event({ type: 'message_start', message: { ...message, content: [], stop_reason: null } }),
    ...content.flatMap((block, index) => [
      event({
        type: 'content_block_start',
        index,
        content_block: block.type === 'text' ? { ...block, text: '' } : { ...block, input: {} },
      }),
      event({
        type: 'content_block_delta',
        index,
        delta:
          block.type === 'text'
            ? { type: 'text_delta', text: block.text }
            : { type: 'input_json_delta', partial_json: JSON.stringify(block.input) },
      }),
      event({ type: 'content_block_stop', index }),
    ]),
    event({
      type: 'message_delta',
      delta: { stop_reason, stop_sequence: null },
      usage: { output_tokens: 1 },
    }),
    event({ type: 'message_stop' }),
  ];
}

/** The connection breaks before the reply has said how it ends. */
function broken(events: readonly string[]): ReadableStream<Uint8Array> {
  const parts = events.slice(0, -2).map((event) => new TextEncoder().encode(event));
  return new ReadableStream({
    async pull(controller) {
      const part = parts.shift();
      if (part !== undefined) return controller.enqueue(part);
      await new Promise((resolve) => setTimeout(resolve, 50));
      controller.error(new Error('The connection was reset.'));
    },
  });
}

export const schemas = {
  refund: z.object({ order: z.string(), amount: z.number(), reason: z.string() }),
  mail: z.object({ to: z.string(), subject: z.string(), body: z.string() }),
  search: z.object({ query: z.string() }),
};

function toolsOf({ semel, effects }: AgentRun) {
  const made = (name: 'refund' | 'mail' | 'search') =>
    betaZodTool({
      name,
      description: `Does a ${name}.`,
      inputSchema: schemas[name] as z.ZodObject,
      run: async (args) => JSON.stringify(await effects[name](args)),
    });
  const tools = { refund: made('refund'), mail: made('mail'), search: made('search') };
  return guard(semel, tools, contractPolicies as never);
}

export const settings = { model: 'claude', max_tokens: 100 };
export const question = [{ role: 'user' as const, content: 'Refund order 17 and tell Ada.' }];

/** What came back of each call; a value is in the first block. */
export function outputsOf(messages: readonly Message[]): unknown[] {
  return messages
    .flatMap(({ content }) => (typeof content === 'string' ? [] : content))
    .filter(({ type }) => type === 'tool_result')
    .map(({ content }) => JSON.parse(typeof content === 'string' ? content : firstText(content)));
}

function firstText(content: unknown): string {
  return (content as { text: string }[])[0]!.text;
}

const noSuspension = 'a tool of the Anthropic SDK cannot suspend itself';

function runnerHarness(more: { stream?: true; runToolsEagerly?: true }): AdapterHarness {
  return {
    guesses: false,
    absent: {
      suspension: noSuspension,
      guess: 'the tool runner does not show its tools what was said',
      approval: 'the tool runner has no approvals; a loop of one’s own can wait for one',
    },
    async run(asked): Promise<AgentReport> {
      const { client, sent } = canned(asked.script, asked.onStep);
      const { signal } = asked;
      const params = {
        ...settings,
        ...more,
        messages: question,
        tools: toolsOf(asked),
        thread: false as const,
      };
      const runner = client.beta.messages.toolRunner(params, signal === undefined ? {} : { signal });
      await runner.runUntilDone();
      const messages = sent.at(-1)!.messages;
      return { outputs: outputsOf(messages), prompt: JSON.stringify(messages) };
    },
  };
}

export const toolRunner: AdapterHarness = runnerHarness({});
export const eagerRunner: AdapterHarness = runnerHarness({ stream: true, runToolsEagerly: true });

/** As people write it: ask, run the calls, ask again. */
export const ownLoop: AdapterHarness = {
  guesses: true,
  absent: { suspension: noSuspension },
  async run(asked): Promise<AgentReport> {
    const { client, sent } = canned(asked.script, asked.onStep);
    const tools = toolsOf(asked);
    const messages: Anthropic.MessageParam[] = [...question];
    for (;;) {
      const { content } = await client.messages.create({ ...settings, messages, tools: tools as never });
      const options = { messages, ...(asked.signal === undefined ? {} : { signal: asked.signal }) };
      const results = await toolResults(tools, content, options);
      messages.push({ role: 'assistant', content });
      if (results.length === 0) break;
      messages.push({ role: 'user', content: results });
    }
    const last = sent.at(-1)!.messages;
    return { outputs: outputsOf(last), prompt: JSON.stringify(last) };
  },
  /** The reply is kept until somebody approves it; each click runs its calls. */
  async approveTwice(asked, click) {
    const { client } = canned(asked.script);
    const reply = await client.messages.create({ ...settings, messages: question });
    const approve = () => click(() => toolResults(toolsOf(asked), reply.content));
    await Promise.all([approve(), approve()]);
    await approve();
  },
};
