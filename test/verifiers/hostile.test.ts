// Services that are not what they should be, or speak through something that is not: no token leaves for another address
// or gets into a reason, and nothing is read without an end.

import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { VerifyContext } from 'semel';
import { expect, onTestFinished, test } from 'vitest';
import { limits } from '../../src/core/limits.ts';
import {
  type Verifier,
  verifyGitHubIssue,
  verifyGitPush,
  verifyLinearIssue,
  verifyNotionPage,
  verifyNpmPublish,
  verifyPostmarkEmail,
  verifySlackMessage,
  verifyStripeRefund,
  verifyTwilioMessage,
} from '../../src/providers/verifiers/index.ts';

const token = 'token-that-nobody-may-see';

async function listen(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What it says; never the token. */
async function ask(verify: Verifier<never, unknown>): Promise<string> {
  const answer = await verify({} as never, {
    key: 'key',
    keyFor: (part) => part,
    mark: () => 'semel-mark',
    remoteRef: undefined,
    firstDispatchedAt: new Date(),
    lastDispatchedAt: new Date(),
    attempts: 1,
    signal: new AbortController().signal,
  } satisfies VerifyContext);
  const said = answer.verdict === 'unsure' ? `unsure: ${answer.because}` : answer.verdict;
  expect(said).not.toContain(token);
  return said;
}

test('a token does not follow a redirect to another address, whose answer decides nothing', async () => {
  let asked = 0;
  const other = await listen((_, response) => {
    asked += 1;
    response.end('{"Messages":[]}');
  });
  const baseUrl = await listen(({ url }, response) => {
    response.writeHead(302, { location: other + url }).end();
  });
  expect(await ask(verifyPostmarkEmail({ token, baseUrl }))).toBe(
    `unsure: Postmark answered 302 (it redirects to ${other})`,
  );
  expect(asked).toBe(0);
});

test('a redirect within the service is followed, but not without an end', async () => {
  const issue = { number: 7, id: 1, html_url: '', body: 'semel-mark', created_at: new Date().toISOString() };
  const baseUrl = await listen(({ url = '' }, response) => {
    if (url.startsWith('/repos/ann/new')) return response.end(JSON.stringify([issue]));
    const location = url.startsWith('/repos/ann/old') ? url.replace('old', 'new') : url;
    return response.writeHead(301, { location }).end();
  });
  expect(await ask(verifyGitHubIssue({ token, baseUrl, repo: 'ann/old' }))).toBe('landed');
  expect(await ask(verifyGitHubIssue({ token, baseUrl, repo: 'ann/loop' }))).toMatch(
    /^unsure: GitHub answered 301/,
  );
});

test.each(['.example.com/2', '@example.com/2', ':81/2'])(
  'a next page at another address is not asked for: %s',
  async (next) => {
    const asked: string[] = [];
    const answer = async (url: unknown) => {
      asked.push(new URL(String(url)).host);
      return new Response(JSON.stringify({ messages: [], next_page_uri: next }));
    };
    const message = () => ({ to: '+1', text: 'x' });
    const access = {
      token,
      accountSid: 'AC1',
      baseUrl: 'https://twilio.test',
      fetch: answer as typeof fetch,
    };
    expect(await ask(verifyTwilioMessage({ ...access, message }))).toMatch(
      /^unsure: Twilio could not be asked: (it refers to another|its address has)/,
    );
    expect(asked).toEqual(['twilio.test']);
  },
);

test('pages without messages, one after the other, end', async () => {
  let pages = 0;
  const baseUrl = await listen(({ url }, response) => {
    pages += 1;
    response.end(JSON.stringify({ messages: [], next_page_uri: url }));
  });
  const verify = verifyTwilioMessage({
    token,
    accountSid: 'AC1',
    baseUrl,
    message: () => ({ to: '+1', text: 'x' }),
  });
  expect(await ask(verify)).toBe('unsure: Twilio could not be asked: its list does not end');
  expect(pages).toBe(10);
});

test('an answer without an end is read up to the limit', async () => {
  let sent = 0;
  const baseUrl = await listen((_, response) => {
    const chunk = Buffer.alloc(1024 * 1024, 'a');
    const send = () => {
      do sent += chunk.length;
      while (!response.destroyed && response.write(chunk));
    };
    response.on('drain', send);
    send();
  });
  expect(await ask(verifyStripeRefund({ token, baseUrl }))).toBe(
    `unsure: Stripe could not be asked: it answered more than ${limits.messageBytes} bytes`,
  );
  expect(sent).toBeLessThan(4 * limits.messageBytes);
});

test('an error page that shows what was sent does not tell the token', async () => {
  const baseUrl = await listen(({ headers }, response) => {
    response.writeHead(401).end(JSON.stringify({ message: `bad key: ${headers.authorization}` }));
  });
  expect(await ask(verifyStripeRefund({ token, baseUrl }))).toContain(
    'Stripe answered 401 (bad key: Bearer …)',
  );
});

test('nor does one that shows it decoded, or with the status 200', async () => {
  const baseUrl = await listen(({ headers: { authorization = '' } }, response) => {
    const sent = authorization.startsWith('Basic ') ? atob(authorization.slice(6)) : authorization;
    const message = `bad key: ${sent}`;
    response.writeHead(sent === authorization ? 200 : 401);
    response.end(JSON.stringify({ ok: false, error: message, errors: [{ message }], message }));
  });
  const accountSid = 'AC-canary';
  const message = () => ({ to: '+1', text: 'x' });
  for (const verify of [
    verifyTwilioMessage({ accountSid, token, baseUrl, message }),
    verifySlackMessage({ token, baseUrl, channel: 'C1' }),
    verifyLinearIssue({ token, baseUrl }),
  ])
    expect(await ask(verify as Verifier<never, unknown>)).toMatch(/bad key: .*…/);
});

test('a Notion that ignores the question has not found it', async () => {
  const page = (text: string) => ({
    id: 'p-1',
    properties: { semel: { type: 'rich_text', rich_text: [{ plain_text: text }] } },
  });
  const said = async (...results: object[]) => {
    const body = JSON.stringify({ results, has_more: false, next_cursor: null });
    const baseUrl = await listen((_, response) => void response.end(body));
    return ask(verifyNotionPage({ token, baseUrl, dataSource: 'd-1' }));
  };
  expect(await said(page('semel-mark'))).toBe('landed');
  for (const other of [page('another'), { id: 'p-1' }, { id: 'p-1', properties: { semel: null } }])
    expect(await said(other)).toMatch(/^unsure: .*not asked for/);
});

test('an address with a password in it is refused without telling it', async () => {
  const registry = `http://ann:${token}@127.0.0.1:1`;
  const verify = verifyNpmPublish({ registry, package: () => ({ name: 'a', version: '1.0.0' }) });
  expect(await ask(verify)).toMatch(/could not be asked: its address has a name or password/);
});

test.each(['main', 'refs/heads/main'])('a remote’s password is not revealed: %s', async (ref) => {
  const remote = `file://ann:${token}@localhost/no/such/repository`;
  const said = await ask(verifyGitPush({ push: () => ({ remote, ref, commit: 'a'.repeat(40) }) }));
  expect(said).toMatch(/^unsure: /);
});
