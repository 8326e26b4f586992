// summarizationMiddleware replaces what the user said by a summary of its own: a human message under the id of the thread's first one.

import { AIMessage } from '@langchain/core/messages';
import { MemorySaver } from '@langchain/langgraph';
import { type AgentMiddleware, createAgent, fakeModel, summarizationMiddleware, tool } from 'langchain';
import { createSemel, type Semel } from 'semel';
import { memoryStore } from 'semel/memory';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { guard, resultOf } from '../../src/adapters/langchain/index.ts';
import { ScriptedModel, toolMessages } from './langchain-harness.ts';

let semel: Semel;
let warnings: string[];
let sent: string[];

beforeEach(() => {
  warnings = [];
  sent = [];
  semel = createSemel({
    store: memoryStore(),
    namespace: 'summaries',
    onWarning: (warning) => warnings.push(warning),
  });
});
afterEach(() => semel.close({ grace: 0 }));

// Its types do not fit ours, which are stricter about what is optional.
const summarize = summarizationMiddleware as unknown as (options: object) => AgentMiddleware;
const to = (name: string) => ({ name: 'mail', args: { to: name } });

function agentOf(script: ScriptedModel['script'], messages: number) {
  const mail = tool(({ to }) => ({ number: sent.push(to) }), {
    name: 'mail',
    description: 'Sends a mail.',
    schema: z.object({ to: z.string() }),
  });
  const summarizer = fakeModel();
  for (let n = 0; n < 10; n += 1) summarizer.respond(new AIMessage('Mails were sent.'));
  return createAgent({
    model: new ScriptedModel(script),
    tools: [guard(semel, mail, { effect: 'write-non-idempotent' })],
    middleware: [summarize({ model: summarizer, trigger: { messages }, keep: { messages: 1 } })],
    checkpointer: new MemorySaver(),
  });
}

const ask = (agent: ReturnType<typeof agentOf>, content: string) =>
  agent.invoke({ messages: [{ role: 'user', content }] }, { configurable: { thread_id: 't' } });

test('a plan after the summary does not repeat what the same turn did before it', async () => {
  const agent = agentOf([[], [to('ada')], [to('bob')], [to('ada')]], 5);
  await ask(agent, 'Hello.');
  const { messages } = await ask(agent, 'Write to Ada and Bob.');
  expect(messages[0]?.text).toMatch(/summary/);
  expect(sent.filter((name) => name === 'ada')).toEqual(['ada']);
  expect(resultOf(toolMessages(messages).at(-1)!)).toMatchObject({ code: 'NO_IDENTITY' });
  expect(warnings.join('\n')).toMatch(/mail: /);
});

test('a call after the summary is not answered by the first turn of the thread', async () => {
  const agent = agentOf([[to('ada')], [], [to('bob')], [to('ada')]], 7);
  await ask(agent, 'Write to Ada.');
  const { messages } = await ask(agent, 'Write to Bob, and to Ada again.');
  expect(messages[0]?.text).toMatch(/summary/);
  expect(sent).toEqual(['ada', 'bob']);
  expect(resultOf(toolMessages(messages).at(-1)!)).toMatchObject({ code: 'NO_IDENTITY' });
});

test('a question that was not summarised is still the turn', async () => {
  const agent = agentOf([[], [to('ada')], [to('ada')]], 3);
  await ask(agent, 'Hello.');
  const { messages } = await ask(agent, 'Write to Ada.');
  expect(messages[0]?.text).toMatch(/summary/);
  expect(sent).toEqual(['ada']);
});

test('a named turn is the same before and after the summary', async () => {
  const agent = agentOf([[], [to('ada')], [to('bob')], [to('ada')]], 5);
  await ask(agent, 'Hello.');
  await semel.within({ conversation: 'c', turn: '2' }, () => ask(agent, 'Write to Ada and Bob.'));
  expect(sent).toEqual(['ada', 'bob']);
});
