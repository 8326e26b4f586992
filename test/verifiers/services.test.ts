// What only one service does: Twilio rewrites texts, GitHub hides what one may not see, Postmark has codes of its own.

import { Resend } from 'resend';
import type { VerifyContext } from 'semel';
import { describe, expect, test } from 'vitest';
import {
  type Verifier,
  verifyGitHubIssue,
  verifyGitHubRelease,
  verifyLinearIssue,
  verifyNotionPage,
  verifyPostmarkEmail,
  verifyResendEmail,
  verifySendGridEmail,
  verifySlackMessage,
  verifyStripeRefund,
  verifyTwilioMessage,
} from '../../src/providers/verifiers/index.ts';
import { cases } from './cases.ts';
import {
  goodToken,
  type Order,
  type StandIn,
  startStandIn,
  type VerifierCase,
} from './stand-ins/stand-in.ts';

const order: Order = { order: 7 };
const token = goodToken;

function caseOf(name: string): VerifierCase {
  const found = cases.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no case ${name}`);
  return found;
}

const standIn = (name: string): Promise<StandIn> => startStandIn(caseOf(name).shape, Date.now);

async function ask(verify: Verifier<never, unknown>, more: Partial<VerifyContext> = {}): Promise<string> {
  const answer = await verify(order as never, {
    key: 'own-key',
    keyFor: (part) => `own-${part}`,
    mark: () => 'semel-mark',
    remoteRef: undefined,
    firstDispatchedAt: new Date(),
    lastDispatchedAt: new Date(),
    attempts: 1,
    signal: new AbortController().signal,
    ...more,
  });
  return answer.verdict === 'unsure' ? `unsure: ${answer.because}` : answer.verdict;
}

const json = (body: object) => ({ body: JSON.stringify(body) });

describe('Twilio', () => {
  const each = caseOf('Twilio message');
  const sms = (Body: string) => ({ body: String(new URLSearchParams({ To: '+15550001', Body })) });

  test('a text that a trial account puts words before is found, on any page', async () => {
    const at = await startStandIn(each.shape, Date.now);
    at.add(sms('Sent from your Twilio trial account - Order 7 is on its way. semel-mark'));
    for (let nth = 0; nth < 250; nth += 1) at.add(sms(`Order ${nth} was cancelled.`));
    expect(await ask(each.verifier(at, { token }))).toBe('landed');
    expect(await ask(each.verifier(at, { token, maxPages: 1 }))).toMatch(/^unsure: .*more pages/);
  });

  test('a text that may have been rewritten is unsure, by name', async () => {
    const at = await startStandIn(each.shape, Date.now);
    at.add(sms('Order 7 is on its way. https://twil.io/x'));
    expect(await ask(each.verifier(at, { token }))).toMatch(/^unsure: .*may have been rewritten: SM1/);
  });

  async function withText(text: string, ...bodies: string[]) {
    const at = await startStandIn(each.shape, Date.now);
    for (const body of bodies) at.add(sms(body));
    const message = () => ({ to: '+15550001', text });
    return ask(verifyTwilioMessage({ accountSid: 'AC1', token, baseUrl: at.url, message }));
  }

  test('a text that only begins or ends like ours is not ours', async () => {
    expect(await withText('Order 12', 'Order 123')).toMatch(/^unsure: .*rewritten: SM1/);
    expect(await withText('12 is paid', 'Invoice 312 is paid')).toMatch(/^unsure: .*rewritten: SM1/);
    expect(await withText('Order 12', 'Order 123', 'Order 12')).toBe('landed');
    expect(await withText('Order 12', 'Order 123, Order 12.')).toBe('landed');
    expect(await withText('', 'Order 12')).toMatch(/^unsure: .*no text/);
  });

  test('messages to other recipients, or to a number that Twilio does not list so, decide nothing', async () => {
    const of = (to: string, recipient: string) => {
      const found = {
        sid: 'SM1',
        to: recipient,
        body: 'Hello',
        direction: 'outbound-api',
        dateCreated: new Date(),
      };
      const list = async () => (recipient === '' ? [] : [found]);
      const messages = Object.assign(() => ({ fetch: async () => found }), { list });
      return ask(verifyTwilioMessage({ client: { messages }, message: () => ({ to, text: 'Hello' }) }));
    };
    expect(await of('+15550001', '+15550001')).toBe('landed');
    expect(await of('whatsapp:+15550001', 'whatsapp:+15550001')).toBe('landed');
    expect(await of('+15550001', '+15550002')).toMatch(/^unsure: .*not asked for/);
    expect(await of('+15550001', '')).toBe('notLanded');
    expect(await of('(555) 0001', '')).toMatch(/^unsure: \(555\) 0001 is not a recipient/);
  });
});

describe('GitHub', () => {
  const access = { token, repo: 'ann/shop' };

  test('a pull request among the issues, and a mark that somebody else copied, are not the issue', async () => {
    const at = await standIn('GitHub issue');
    at.add(json({ body: '<!-- semel-mark -->', pull_request: {} }));
    at.add(json({ body: '<!-- semel-mark -->', user: { login: 'eve' } }));
    const verify = verifyGitHubIssue({ ...access, baseUrl: at.url, author: 'bot' });
    expect(await ask(verify)).toBe('notLanded');
    expect(await ask(verifyGitHubIssue({ ...access, baseUrl: at.url }))).toBe('landed');
  });

  test('a release is found by its tag, regardless of its author', async () => {
    const at = await standIn('GitHub release');
    at.add(json({ tag_name: 'v1', body: 'by hand', user: undefined, author: { login: 'ann' } }));
    const byTag = (tag: string) => verifyGitHubRelease({ ...access, baseUrl: at.url, tag: () => tag });
    expect(await ask(byTag('v1'))).toBe('landed');
    expect(await ask(byTag('v2'))).toBe('notLanded');
  });

  test('what is deleted while the pages are read hides nothing', async () => {
    const at = await standIn('GitHub issue');
    for (let nth = 1; nth <= 150; nth += 1)
      at.add(json({ body: nth === 50 ? '<!-- semel-mark -->' : 'another', user: { login: 'bot' } }));
    const deleteOne = () => at.things.splice(at.things.length - 1, 1);
    const verify = (deletions: number) => {
      let left = deletions;
      // Newest first: ours is the first of the second page, and moves up to the first, which was read already.
      const fetchThenDelete: typeof fetch = async (...asked) => {
        const response = await fetch(...asked);
        if (/[?&]page=1(&|$)/.test(String(asked[0])) && left > 0) {
          left -= 1;
          deleteOne();
        }
        return response;
      };
      return verifyGitHubIssue({ ...access, baseUrl: at.url, fetch: fetchThenDelete });
    };
    expect(at.things).toHaveLength(150);
    expect(await ask(verify(1))).toBe('landed');
    at.add(json({ body: 'another', user: { login: 'bot' } }));
    at.things.splice(49, 1);
    at.add(json({ body: 'another', user: { login: 'bot' } }));
    expect(await ask(verify(0))).toBe('notLanded');
    expect(await ask(verify(2))).toMatch(/^unsure: .*deleted something while its list was read/);
  });

  test('an exceeded limit comes as 403, and is not reported as bad credentials', async () => {
    const at = await standIn('GitHub issue');
    const reset = String(Math.ceil(Date.now() / 1000) + 30);
    const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset };
    at.answer({ status: 403, headers, body: { message: 'API rate limit exceeded' } });
    const verify = verifyGitHubIssue({ ...access, baseUrl: at.url });
    expect(await ask(verify)).toMatch(/limits the rate of requests; ask again in (2\d|3[01]) s/);
  });
});

test('GitHub: a full page is followed by the next, also if a proxy dropped the header that says so', async () => {
  const many = Array.from({ length: 100 }, (_, nth) => ({ id: nth, number: nth, html_url: '', body: '' }));
  const request = async (_: string, query: Record<string, string | number> = {}) => ({
    data: query.page === 1 ? many : [{ id: 100, number: 100, html_url: '', body: 'semel-mark' }],
    headers: {},
  });
  expect(await ask(verifyGitHubIssue({ client: { request }, repo: 'ann/shop' }))).toBe('landed');
});

test('Jira answers 200 with nothing where a token has expired: that is not "there is none"', async () => {
  const at = await standIn('Jira issue');
  at.answer({ headers: { 'x-seraph-loginreason': 'AUTHENTICATED_FAILED' }, body: { issues: [] } });
  const verify = () => ask(caseOf('Jira issue').verifier(at, { token }));
  expect(await verify()).toMatch(/^unsure: Jira answered 401 \(AUTHENTICATED_FAILED\)/);
  at.answer({ headers: { 'x-seraph-loginreason': 'OK' }, body: { issues: [] } });
  expect(await verify()).toBe('notLanded');
});

test('Resend: a recipient that may be listed in another form is found by the mail itself', async () => {
  const find = async (to: string, listed: string, value = 'semel-mark') => {
    const at = await standIn('Resend email');
    at.add(json({ to: [listed], tags: [{ name: 'semel', value }] }));
    return ask(verifyResendEmail({ token, baseUrl: at.url, to: () => to }));
  };
  expect(await find('ann@bücher.example', 'ann@xn--bcher-kva.example')).toBe('landed');
  expect(await find('ann@xn--bcher-kva.example', 'ann@bücher.example')).toBe('landed');
  expect(await find('ann@bücher.example', 'bob@example.com', 'semel-other')).toBe('notLanded');
});

test('SendGrid: a query that it ignores says nothing about ours', async () => {
  const message = { msg_id: 'X-1.filter-1' };
  const say = (...answers: object[][]) => {
    const client = { request: async () => [undefined, { messages: answers.shift() }] as const };
    return ask(verifySendGridEmail({ client }));
  };
  expect(await say([message], [])).toBe('landed');
  expect(await say([])).toBe('notLanded');
  expect(await say([message], [message])).toMatch(/^unsure: .*not asked for/);
  const others = [{ msg_id: 'X-12.filter-1' }, message];
  const client = { request: async () => [undefined, { messages: others }] as const };
  expect(await ask(verifySendGridEmail({ client }), { remoteRef: 'X-1' })).toBe('landed');
});

test('Postmark says 422 with its own code for a message that does not exist', async () => {
  const error = Object.assign(new Error('This message does not exist'), { statusCode: 422, code: 701 });
  const client = {
    getOutboundMessages: async () => ({
      Messages: [{ MessageID: 'm-1', Metadata: { semel: 'semel-mark' } }],
    }),
    getOutboundMessageDetails: () => Promise.reject(error),
  };
  expect(await ask(verifyPostmarkEmail({ client }), { remoteRef: 'm-0' })).toBe('landed');
  error.code = 406;
  expect(await ask(verifyPostmarkEmail({ client }), { remoteRef: 'm-0' })).toMatch(
    /^unsure: Postmark answered 422/,
  );
});

test('a filter that the service ignores says nothing about ours, which may be on a later page', async () => {
  const client = {
    getOutboundMessages: async () => ({ Messages: [{ MessageID: 'm-1', Metadata: {} }] }),
    getOutboundMessageDetails: () => Promise.reject(new Error('not asked')),
  };
  expect(await ask(verifyPostmarkEmail({ client }))).toMatch(/^unsure: .*that it was not asked for/);
});

describe('a list that has more, and does not say where, has no end', () => {
  const page = { data: [], results: [], has_more: true, next_cursor: null };
  const stripe = { refunds: { list: async () => page, retrieve: async () => ({ id: '' }) } };
  const emails = {
    list: async () => ({ data: page, error: null }),
    get: () => Promise.reject(new Error('not asked')),
  };
  const notion = { dataSources: { query: async () => page }, pages: { retrieve: async () => ({ id: '' }) } };
  const messages = async () => ({ messages: [], has_more: true });
  const slack = { conversations: { history: messages, replies: messages } };

  test.each<[string, Verifier<never, unknown>]>([
    ['Stripe', verifyStripeRefund({ client: stripe })],
    ['Resend', verifyResendEmail({ client: { emails }, to: () => 'ann@example.com' })],
    ['Notion', verifyNotionPage({ client: notion, dataSource: 'd-1' })],
    ['Slack', verifySlackMessage({ client: slack, channel: 'C1' })],
  ])('%s', async (_, verify) => {
    expect(await ask(verify)).toMatch(/^unsure: .*has more, but does not say where/);
  });
});

test('Linear: an id that the tool chose and noted before it sent proves nothing', async () => {
  const at = await standIn('Linear issue');
  const verify = verifyLinearIssue({ token, baseUrl: at.url });
  expect(await ask(verify, { remoteRef: 'own-key' })).toBe('notLanded');
  at.answer({ body: { errors: [{ message: 'Rate limit exceeded' }] } });
  expect(await ask(verify)).toMatch(/^unsure: Linear answered 400 \(Rate limit exceeded\)/);
});

test("Slack's client says how long to wait, and what it may not do", async () => {
  const thrown = [
    Object.assign(new Error('A rate-limit has been reached'), { retryAfter: 30 }),
    new Error('An API error occurred: missing_scope'),
  ];
  const client = {
    conversations: {
      history: () => Promise.reject(thrown.shift()),
      replies: () => Promise.reject(new Error('no')),
    },
  };
  const verify = verifySlackMessage({ client, channel: 'C1' });
  expect(await ask(verify)).toMatch(/Slack limits the rate of requests; ask again in 30 s/);
  expect(await ask(verify)).toMatch(/Slack could not be asked: .*missing_scope/);
});

describe('the client of Resend', () => {
  const mail = (to: string, value: string) => json({ to: [to], tags: [{ name: 'semel', value }] });

  test('finds a mail by its tag, and looks only at mails to its recipient', async () => {
    const at = await standIn('Resend email');
    for (let nth = 0; nth < 150; nth += 1) at.add(mail('bob@example.com', 'semel-mark'));
    at.add(mail('Ann <ann@example.com>', 'semel-mark'));
    for (let nth = 0; nth < 150; nth += 1) at.add(mail('eve@example.com', 'semel-mark'));
    const client = new Resend(token, { baseUrl: at.url });
    const verify = verifyResendEmail({ client, to: () => 'ann@example.com' });
    expect(await ask(verify)).toBe('landed');
    expect(at.reads.map(({ path }) => path)).toEqual([
      '/emails',
      '/emails',
      '/emails/4ef9a417-151',
      '/emails',
      '/emails',
    ]);
  });

  test.each(['Ann <Ann@example.com>', ' ann@example.com '])(
    'finds a mail that was sent to %j',
    async (to) => {
      const at = await standIn('Resend email');
      at.add(mail('ann@example.com', 'semel-mark'));
      const client = new Resend(token, { baseUrl: at.url });
      expect(await ask(verifyResendEmail({ client, to: () => to }))).toBe('landed');
    },
  );

  test('reports a wrong key and a rate limit', async () => {
    const at = await standIn('Resend email');
    const verify = (key: string) =>
      verifyResendEmail({ client: new Resend(key, { baseUrl: at.url }), to: () => 'ann@example.com' });
    expect(await ask(verify('wrong'))).toMatch(/^unsure: Resend answered 401 \(/);
    const body = { statusCode: 429, name: 'rate_limit_exceeded', message: 'Too many requests' };
    at.answer({ status: 429, headers: { 'retry-after': '1' }, body });
    expect(await ask(verify(token))).toMatch(/^unsure: Resend limits the rate/);
  });
});

test.each(['two\nlines', 'cut off …'])(
  'a token that is not a valid header is not revealed: %j',
  async (bad) => {
    const at = await standIn('GitHub issue');
    const verify = verifyGitHubIssue({ token: bad, baseUrl: at.url, repo: 'ann/shop' });
    const told = await ask(verify);
    expect(told).toMatch(/^unsure: GitHub could not be asked: the token has characters/);
    expect(told).not.toContain(bad);
  },
);
