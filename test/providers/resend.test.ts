// The real SDK of Resend against an API that keeps keys as Resend documents it. The SDK takes no `fetch` and throws
// nothing, so the tool passes the key and throws what it is told.

import { Resend } from 'resend';
import { landed, notLanded, unsure } from 'semel';
import { describe, expect, test } from 'vitest';
import { resend } from '../../src/providers/index.ts';
import { quick, rig } from '../library/support.ts';
import { type Api, api, inHeader } from './api.ts';

const hour = 3_600_000;
const problem = (status: number, name: string) => ({
  status,
  body: { statusCode: status, name, message: 'no' },
});

const mails = (now?: () => number) =>
  api({
    keyOf: inHeader('idempotency-key'),
    windowMs: 24 * hour,
    ...(now && { now }),
    mismatch: problem(409, 'invalid_idempotent_request'),
    done: (nth) => ({ id: `mail-${nth}` }),
  });

interface Mail {
  readonly to: string;
  readonly text: string;
}

const contract = {
  name: 'mail.send',
  effect: 'write-non-idempotent',
  per: 'ever',
  identity: ['to'],
  window: '20h',
  provider: resend,
} as const;

async function sendBy(at: Api, { to, text }: Mail, idempotencyKey: string): Promise<string> {
  const client = new Resend('re_x', { baseUrl: at.url });
  const mail = { from: 'shop@example.com', to, subject: 'Welcome', text };
  const { data, error } = await client.emails.send(mail, { idempotencyKey });
  if (error !== null) throw error;
  return data.id;
}

const mailTool = (semel: ReturnType<typeof quick>, at: Api, more: object = {}) =>
  semel.tool({ ...contract, ...more, run: (mail: Mail, ctx) => sendBy(at, mail, ctx.key) });

const code = (result: { ok: boolean; error?: { code: string } }) => (result.ok ? 'ok' : result.error?.code);
const ann = { to: 'ann@example.com', text: 'Hello' };

test('a lost answer, then the same key and the first wording: one mail', async () => {
  const at = await mails();
  const semel = quick();
  const tool = mailTool(semel, at);
  at.lose(1);
  expect(code(await tool.try(ann))).toBe('IN_DOUBT');
  // Another wording under the same key would be refused.
  expect(await tool({ ...ann, text: 'Dear Ann' })).toBe('mail-1');
  expect(at.effects).toHaveLength(1);
  expect(new Set(at.requests.map(({ key }) => key)).size).toBe(1);
  await semel.close();
});

test('while the first is running, it is in doubt; later it gets the first answer', async () => {
  const at = await mails();
  const semel = quick();
  const tool = mailTool(semel, at);
  at.lose(1);
  await tool.try(ann);
  at.answer(problem(409, 'concurrent_idempotent_requests'));
  expect(code(await tool.try(ann))).toBe('IN_DOUBT');
  expect(await tool(ann)).toBe('mail-1');
  expect(at.effects).toHaveLength(1);
  await semel.close();
});

test('past the window the key is forgotten there: verify is asked, and nothing is sent', async () => {
  const made = rig();
  const at = await mails(made.clock.now);
  const startedAt = made.clock.now();
  const tool = mailTool(made.semel, at, {
    window: '7d',
    verify: ({ to }: Mail) => {
      if (made.clock.now() < startedAt + hour) return unsure('its list is late');
      return at.effects.some((mail) => mail.includes(to)) ? landed('mail-1') : notLanded();
    },
  });
  at.lose(1);
  expect(code(await tool.try(ann))).toBe('IN_DOUBT');
  await made.clock.advance(25 * hour);
  expect(await tool(ann)).toBe('mail-1');
  expect(at.requests).toHaveLength(1);
});

describe('what its errors mean', () => {
  test.each([
    [422, 'validation_error', 'FAILED'],
    [403, 'validation_error', 'NOT_LANDED'],
    [401, 'missing_api_key', 'NOT_LANDED'],
    [429, 'rate_limit_exceeded', 'NOT_LANDED'],
    [429, 'daily_quota_exceeded', 'NOT_LANDED'],
    [400, 'invalid_idempotency_key', 'FAILED'],
    [409, 'invalid_idempotent_request', 'IN_DOUBT'],
    [409, 'concurrent_idempotent_requests', 'IN_DOUBT'],
    [500, 'application_error', 'IN_DOUBT'],
  ])('%i %s', async (status, name, expected) => {
    const at = await mails();
    at.answer(problem(status, name));
    const semel = quick();
    expect(code(await mailTool(semel, at).try(ann))).toBe(expected);
    await semel.close();
  });

  test('as an Error, with its fields, they mean the same', () => {
    const { body } = problem(422, 'validation_error');
    expect(resend.classify?.(Object.assign(new Error('no'), body))).toBe('rejected');
  });

  test("another service's error is not its own", () => {
    for (const other of [new Error('x'), { statusCode: 400, name: 'HTTPError' }, { name: 'not_found' }])
      expect(resend.classify?.(other)).toBeUndefined();
  });
});
