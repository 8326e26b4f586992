// landsOnce takes one tool of a framework as its adapter's `guard` returned it, and runs the framework's own tool.

import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { tool as agentTool } from '@openai/agents';
import { tool as aiTool } from 'ai';
import { tool as chainTool } from 'langchain';
import { createSemel, landed, notLanded, type Semel } from 'semel';
import { landsOnce } from 'semel/testing';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { guard as guardAi } from '../../src/adapters/ai-sdk/index.ts';
import { guard as guardAnthropic } from '../../src/adapters/anthropic/index.ts';
import { guard as guardChain, toolFrom } from '../../src/adapters/langchain/index.ts';
import { guard as guardAgents } from '../../src/adapters/openai-agents/index.ts';
import { type Mail, mailServer } from './worlds.ts';

const schema = z.object({ to: z.string(), subject: z.string() });
const description = 'Sends a mail.';
type Args = z.infer<typeof schema>;
type Send = (mail: Args) => Promise<Mail>;

interface Terms {
  readonly effect: 'irreversible';
  readonly per: 'turn';
  readonly content?: 'subject'[];
  readonly verify?: (args: Args) => ReturnType<typeof notLanded> | ReturnType<typeof landed<Mail>>;
}

const name = 'mail';
const asText = (send: Send) => async (mail: Args) => JSON.stringify(await send(mail));

const frameworks: Record<string, (semel: Semel, send: Send, policy: Terms) => object> = {
  'ai-sdk': (semel, send, mail) =>
    guardAi(semel, { mail: aiTool({ description, inputSchema: schema, execute: send }) }, { mail }).mail,
  'ai-sdk, a generator': (semel, send, mail) => {
    async function* execute(args: Args) {
      yield { id: 'on its way' };
      yield await send(args);
    }
    return guardAi(semel, { mail: aiTool({ description, inputSchema: schema, execute }) }, { mail }).mail;
  },
  'openai-agents, before tool': (semel, send, policy) =>
    guardAgents(semel, { name, description, parameters: schema, execute: send }, policy),
  'openai-agents, after tool': (semel, send, policy) =>
    guardAgents(
      semel,
      agentTool({ name, description, parameters: schema, execute: send, errorFunction: null }),
      policy,
    ),
  langchain: (semel, send, policy) =>
    guardChain(semel, chainTool(asText(send), { name, description, schema }), policy),
  anthropic: (semel, send, policy) =>
    guardAnthropic(semel, betaZodTool({ name, description, inputSchema: schema, run: asText(send) }), policy),
};

const own = (semel: Semel, send: Send, terms: Terms) =>
  semel.tool({ name, description, input: schema, ...terms, run: send });

const ownTools: typeof frameworks = {
  'semel.tool in ai-sdk': (semel, send, terms) => guardAi(semel, { mail: own(semel, send, terms) }).mail,
  'semel.tool in openai-agents': (semel, send, terms) => guardAgents(semel, own(semel, send, terms)),
  'semel.tool in langchain': (semel, send, terms) => toolFrom(semel, own(semel, send, terms), chainTool),
  'semel.tool in anthropic': (semel, send, terms) => guardAnthropic(semel, own(semel, send, terms)),
};

const args = { to: 'ann@example.com', subject: 'Your order' };
const base = { effect: 'irreversible', per: 'turn' } as const;

function stage() {
  const mails = mailServer();
  const options = {
    effects: () => mails.sent.length,
    reword: (mail: Args) => ({ ...mail, subject: 'On its way' }),
    otherArgs: (mail: Args) => ({ ...mail, to: 'bob@example.com' }),
    loseReply: mails.loseReply,
  };
  return { mails, options };
}

const semelIn = () => createSemel({ store: 'memory:', namespace: 'frameworks', onWarning: () => undefined });

describe.each(Object.entries({ ...frameworks, ...ownTools }))('a guarded tool of %s', (_name, guarded) => {
  test('passes with content and verify, in every row', async () => {
    await using semel = semelIn();
    const { mails, options } = stage();
    const verify = ({ to }: Args) => {
      const mail = mails.sent.findLast((sent) => sent.to === to);
      return mail === undefined ? notLanded() : landed(mail);
    };
    const tool = guarded(semel, mails.send, { ...base, content: ['subject'], verify });
    const { rows } = await landsOnce(tool, args, options);
    expect(rows.map(({ status }) => status)).toEqual(rows.map(() => 'once'));
    expect(rows).toHaveLength(8);
  });

  test('fails with the line of the policy to change', async () => {
    await using semel = semelIn();
    const { mails, options } = stage();
    await expect(landsOnce(guarded(semel, mails.send, base), args, options)).rejects.toThrow(
      'Fix: `subject` is identity: name it in `content`.',
    );
  });
});

test('several tools, a read or anything else are refused', async () => {
  await using semel = semelIn();
  const { mails, options } = stage();
  const mail = aiTool({ description, inputSchema: schema, execute: mails.send });
  const read = guardAi(semel, { mail }, { mail: 'read' });
  for (const wrong of [read, read.mail, mail, {}])
    await expect(landsOnce(wrong, args, options)).rejects.toThrow(
      'landsOnce tests what `semel.tool` returned',
    );
});
