// One user's result is never given to another: the HTTP proxy and `guard` of semel/mcp, with several credentials.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSemel } from 'semel';
import { guard } from 'semel/mcp';
import { beforeAll, describe, expect, test } from 'vitest';
import { digestCaller, digestEnvironment } from '../../src/core/caller.ts';
import { serverName } from '../../src/mcp/proxy/server-name.ts';
import { eventually } from '../cli/place.ts';
import { clientNames, httpClient } from './clients.ts';
import { type HttpProxyProcess, httpProxy, messageIn, post } from './http-proxy.ts';
import { startV1, startV2 } from './http-servers.ts';
import { errorOf, fake, isKept, type ProxyPlace, proxyPlace } from './proxy.ts';
import { type Answer, rawClient } from './raw-client.ts';

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

const policy = {
  send: { effect: 'irreversible', per: 'ever', content: ['body'] },
  fail: { effect: 'irreversible', per: { day: 'UTC' }, content: ['body'] },
  boom: { effect: 'irreversible', per: 'conversation', content: ['body'] },
  slow: { effect: 'write-non-idempotent' },
  look: { effect: 'write-non-idempotent' },
  put: { effect: 'write-non-idempotent', per: 'ever', share: true },
};

/** Nothing was run, and of the first call nothing is said. */
function isRefused(answer: Answer, secret: string): void {
  expect(errorOf(answer)).toMatchObject({ code: 'NOT_PERMITTED', retriable: false });
  expect(answer.result?.isError).toBe(true);
  expect(JSON.stringify(answer)).not.toContain(secret);
  expect(JSON.stringify(answer)).not.toMatch(/structuredContent|\d{4}-\d\d-\d\d/);
}

describe('the HTTP proxy', () => {
  let here: ProxyPlace;
  let proxy: HttpProxyProcess;
  const effects = (to: string) => here.effects().filter((line) => line.split(' ')[1] === to);

  beforeAll(async () => {
    here = proxyPlace();
    const upstream = await startV2({ effects: here.path('effects') });
    proxy = await httpProxy(upstream, here.env, ['--policy', here.policy(policy)]);
  });

  const kinds: [string, (who: string) => Record<string, string>][] = [
    ['Authorization', bearer],
    ['Proxy-Authorization', (who) => ({ 'proxy-authorization': `Basic ${who}` })],
    ['Cookie', (who) => ({ cookie: `session=${who}` })],
    ['X-Api-Key', (who) => ({ 'x-api-key': who })],
    ['Api-Key', (who) => ({ 'api-key': who })],
    ['X-Auth-Token', (who) => ({ 'x-auth-token': who })],
    ['X-Goog-Api-Key', (who) => ({ 'x-goog-api-key': who })],
    ['X-Forwarded-User', (who) => ({ 'x-forwarded-user': who })],
    ['CF-Access-Jwt-Assertion', (who) => ({ 'cf-access-jwt-assertion': who })],
    ['a cookie beside one Authorization', (who) => ({ ...bearer('app'), cookie: `user=${who}` })],
  ];

  test.each(kinds)(
    '%s tells callers apart: one effect, and its result is for its caller only',
    async (kind, as) => {
      const to = kind.replaceAll(' ', '-');
      const secret = `secret-${to}`;
      const ask = (who: string, body: string) => proxy.call('send', { to, body }, { headers: as(who) });
      const first = await ask('ann', secret);
      expect(first.result?.isError).toBeUndefined();
      for (const _ of [1, 2]) isRefused(await ask('bob', 'mine'), secret);
      isRefused(await proxy.call('send', { to, body: 'nobody' }), secret);
      expect(isKept(await ask('ann', secret))).toBe(true);
      expect(effects(to)).toEqual([`send ${to} ${secret}`]);
    },
  );

  test('a key in the query distinguishes callers', async () => {
    const ask = async (query: string) => {
      const params = { name: 'send', arguments: { to: 'query' } };
      const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      return messageIn((await post(`${proxy.url}?${query}`, JSON.stringify(call))).body) as Answer;
    };
    expect(isKept(await ask('api_key=ann'))).toBe(false);
    isRefused(await ask('api_key=bob'), 'secret');
    expect(isKept(await ask('api_key=ann'))).toBe(true);
    expect(effects('query')).toHaveLength(1);
  });

  test.each([
    'mcp-api-key',
    'mcp-auth-token',
    'x-apitoken',
    'accesstoken',
    'x-userid',
    'x-forwarded-client-cert',
    'ssl-client-s-dn',
    'x-client-id',
    'x-pass',
    'x-tenantid',
    'x-org-id',
    'x-workspace',
    'x-jira-url',
    'sudo',
    'x-on-behalf-of',
    'x-act-as',
    'impersonate',
    'x-hasura-role',
    'x-member-id',
    'x-company',
    'x-shopify-shop',
    'x-atlassian-cloudid',
    'x-atlassian-cloud-id',
    'x-parse-application-id',
    'x-metabase-session',
    'x-vault-namespace',
    'x-databricks-host',
    'x-consumer-custom-id',
    'x-pomerium-claim-sub',
    'x-ssl-client-cn',
    'x-ssl-client-sha1-fingerprint',
    'mscrmcallerid',
    'x-run-as-id',
  ])('a header %s is a credential, or names the place of the effect', (name) => {
    const by = (value: string) => digestCaller({ headers: { [name]: value } });
    expect(by('ann')).not.toBe(by('bob'));
    expect(by('ann')).not.toBe(digestCaller({}));
  });

  test('headers that are new with each request do not make another caller', async () => {
    const ask = (n: number) =>
      proxy.call(
        'send',
        { to: 'steady' },
        {
          headers: {
            ...bearer('ann'),
            'mcp-session-id': `s${n}`,
            'idempotency-key': `k${n}`,
            'x-request-id': `r${n}`,
            'x-ms-client-request-id': `m${n}`,
            'mcp-param-account-key': `p${n}`,
            traceparent: `00-${n}`,
            'user-agent': `agent ${n}`,
            'x-client-user-agent': `sdk ${n}`,
            'x-idempotency-token': `i${n}`,
            'sec-websocket-key': `w${n}`,
            'x-csrf-token': `c${n}`,
            'x-cloud-trace-context': `t${n}`,
            'x-tls-session': `s${n}`,
            'x-forwarded-host': `h${n}`,
            'x-app-version': `${n}`,
          },
        },
      );
    await ask(1);
    expect(isKept(await ask(2))).toBe(true);
  });

  const named: [string, () => Promise<{ more?: object; headers?: Record<string, string> }>][] = [
    ['a conversation and a turn in _meta', async () => ({ more: { _meta: meta('c-1', 't-1') } })],
    ['a hand-off in _meta', async () => ({ more: { _meta: { 'dev.semel/context': await handoff('c-2') } } })],
    ['a hand-off in a header', async () => ({ headers: { 'semel-context': await handoff('c-3') } })],
  ];
  test.each(named)('%s: another caller who names it gets nothing from it', async (name, by) => {
    const to = name.replaceAll(' ', '-');
    const { more = {}, headers = {} } = await by();
    const ask = (tool: string, who: string) =>
      proxy.call(tool, { to }, { more, headers: { ...headers, ...bearer(who) } });
    await ask('look', 'ann');
    isRefused(await ask('look', 'bob'), 'look ');
    expect(isKept(await ask('look', 'ann'))).toBe(true);
    expect(effects(to)).toHaveLength(1);
  });

  test('a hand-off that names another caller is not trusted', async () => {
    const ann = 'Bearer ann';
    await proxy.call('send', { to: 'forged' }, { headers: { authorization: ann } });
    await using semel = createSemel({ store: 'memory:' });
    // All that a stranger could write: how the ledger calls ann is no secret.
    const caller = digestCaller({ headers: { authorization: ann } });
    const forged = semel.within({ conversation: 'c', caller }, semel.handoff);
    const headers = { ...bearer('bob'), 'semel-context': forged };
    isRefused(await proxy.call('send', { to: 'forged' }, { headers }), 'send ');
    const more = { _meta: { 'dev.semel/context': forged } };
    isRefused(await proxy.call('send', { to: 'forged' }, { headers: bearer('bob'), more }), 'send ');
    expect(effects('forged')).toHaveLength(1);
  });

  test('in doubt, by day and by conversation: another caller hears neither the error nor what to do about it', async () => {
    const more = { _meta: meta('c-9', 't') };
    for (const [tool, words] of [
      ['fail', 'fail '],
      ['boom', 'socket hang up'],
    ] as const) {
      const ask = (who: string) => proxy.call(tool, { to: `${tool}-doubt` }, { more, headers: bearer(who) });
      await ask('ann');
      expect(errorOf(await ask('ann'))?.code).toBe('IN_DOUBT');
      isRefused(await ask('bob'), words);
      expect(effects(`${tool}-doubt`)).toHaveLength(1);
    }
  });

  test('while it runs: another caller does not wait for it, and does not get its answer', async () => {
    const more = { _meta: meta('c-10', 't') };
    const ask = (who: string) => proxy.call('slow', { to: 'running' }, { more, headers: bearer(who) });
    const running = ask('ann');
    await eventually(() => effects('running').length > 0);
    const early = await ask('bob');
    expect(errorOf(early)).toMatchObject({ code: 'IN_FLIGHT', retriable: true });
    expect(JSON.stringify(early)).not.toContain('slow 1');
    expect((await running).result?.isError).toBeUndefined();
    isRefused(await ask('bob'), 'slow ');
    expect(effects('running')).toHaveLength(1);
  });

  test('where the policy says share, all callers get the one result', async () => {
    const ask = (who: string) => proxy.call('put', { to: 'shared' }, { headers: bearer(who) });
    const [first, second] = [await ask('ann'), await ask('bob')];
    expect(isKept(second)).toBe(true);
    expect(second.result?.structuredContent).toEqual(first.result?.structuredContent);
    expect(effects('shared')).toHaveLength(1);
  });

  test('a token that was made up with the subject of another is another caller', async () => {
    const ask = (token: string) => proxy.call('send', { to: 'jwt' }, { headers: bearer(token) });
    await ask(jwt({ sub: 'ann' }, 'signed'));
    isRefused(await ask(jwt({ sub: 'ann' }, 'forged')), 'send ');
    expect(effects('jwt')).toHaveLength(1);
  });

  test('no credential is in the ledger, nor in what the proxy prints', async () => {
    const secrets = ['key-in-a-header-1f4a', 'cookie-9c31', 'query-77de', 'jwt-5bd0'];
    const [key, cookie, query, token] = secrets as [string, string, string, string];
    const params = { name: 'send', arguments: { to: 'kept' } };
    const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    await post(`${proxy.url}?key=${query}`, call, { 'x-api-key': key, cookie, ...bearer(token) });
    const files = readdirSync(here.folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name)).toString('latin1'));
    expect(files.length).toBeGreaterThan(2);
    for (const secret of secrets) {
      expect(files.some((text) => text.includes(secret))).toBe(false);
      expect(proxy.stderr()).not.toContain(secret);
    }
  });

  test.each(clientNames)('client %s: two users with a token each', async (name) => {
    const to = `sdk-${name.replaceAll(' ', '-')}`;
    const [ann, bob] = await Promise.all(
      ['ann', 'bob'].map((who) => httpClient(name, proxy.url, bearer(who))),
    );
    const first = await ann!.call('send', { to });
    const refused = await bob!.call('send', { to });
    expect(refused).toMatchObject({ isError: true, _meta: { 'dev.semel/error': { code: 'NOT_PERMITTED' } } });
    expect((await ann!.call('send', { to })).structuredContent).toEqual(first.structuredContent);
    expect(effects(to)).toHaveLength(1);
  });
});

test('with --verified-tokens the subject is the caller, also under a new token', async () => {
  const here = proxyPlace();
  const upstream = await startV2({ effects: here.path('effects') });
  const proxy = await httpProxy(upstream, here.env, ['--policy', here.policy(policy), '--verified-tokens']);
  const ask = (token: string) => proxy.call('send', { to: 'x' }, { headers: bearer(token) });
  await ask(jwt({ iss: 'a', sub: 'ann', exp: 1 }, 'one'));
  expect(isKept(await ask(jwt({ iss: 'a', sub: 'ann', exp: 2 }, 'two')))).toBe(true);
  isRefused(await ask(jwt({ iss: 'b', sub: 'ann', exp: 2 }, 'two')), 'send ');
  isRefused(await ask(jwt({ iss: 'a', sub: 'bob', exp: 2 }, 'two')), 'send ');
  isRefused(await ask('opaque'), 'send ');
  expect(here.effects()).toHaveLength(1);
});

test('a subject of one tenant is not that of another', () => {
  const by = (extra: object) => digestCaller({ verified: { token: 'opaque', extra } });
  expect(by({ userId: 1, tenantId: 'a' })).not.toBe(by({ userId: 1, tenantId: 'b' }));
  expect(by({ sub: 'ann', org_id: 'a' })).not.toBe(by({ sub: 'ann', tid: 'a' }));
  expect(by({ sub: 'ann', org_id: 'a' })).toBe(by({ sub: 'ann', org_id: 'a', scope: 'more' }));
});

test.each(['accountId', 'team_id', 'company', 'realm', 'hd', 'orgSlug', 'https://example.com/tenant_id'])(
  'the claim %s names the tenant of a subject',
  (claim) => {
    const by = (value: string) =>
      digestCaller({ verified: { token: 'opaque', extra: { userId: 1, [claim]: value } } });
    expect(by('a')).not.toBe(by('b'));
  },
);

test.each(['account_type', 'org_role', 'team_permissions', 'email', 'https://example.org/plan'])(
  'the claim %s may change under one subject',
  (claim) => {
    const by = (value: string) => digestCaller({ verified: { extra: { sub: 'ann', [claim]: value } } });
    expect(by('a')).toBe(by('b'));
  },
);

test("the user found by the token check takes precedence over the token's subject", () => {
  const token = jwt({ sub: 'the-app' }, 'signed');
  const by = (userId: string) => digestCaller({ verified: { token, extra: { userId } } });
  expect(by('ann')).not.toBe(by('bob'));
});

describe('beside a verified subject', () => {
  const by = (headers: Record<string, string>, query = '') =>
    digestCaller({ verified: { token: jwt({ sub: 'the-app' }, 'x') }, headers, query });

  test.each(['x-workspace', 'x-tenant-id', 'x-forwarded-user', 'x-auth-request-email', 'x-on-behalf-of'])(
    'the person or place that %s names counts',
    (name) => {
      expect(by({ [name]: 'a' })).not.toBe(by({ [name]: 'b' }));
    },
  );

  test('so does the query', () => {
    expect(by({}, '?workspace=a')).not.toBe(by({}, '?workspace=b'));
  });

  test.each([
    'authorization',
    'cookie',
    'x-api-key',
    'x-auth-request-access-token',
    'x-ms-client-principal',
    'x-apigateway-api-userinfo',
    'x-request-id',
  ])('%s may be renewed', (name) => {
    expect(by({ [name]: 'a' })).toBe(by({ [name]: 'b' }));
  });

  test('and a token in the query', () => {
    expect(by({}, '?access_token=a&x=1')).toBe(by({}, '?access_token=b&x=1'));
  });
});

describe('guard in a server of one’s own', () => {
  const once = { effect: 'irreversible', per: 'ever', identity: ['to'] } as const;

  test.each([
    ['v1', startV1],
    ['v2 modern', startV2],
  ] as const)('%s: two users over HTTP, distinguished by their requests', async (version, start) => {
    const here = proxyPlace();
    await using semel = createSemel({ store: 'memory:', onWarning: () => undefined });
    const wrap = (name: string, handler: (args: { to: string }, extra: object) => unknown) =>
      guard(semel, name, name === 'send' ? once : 'read', handler);
    const url = await start({ effects: here.path('effects'), wrap: wrap as never });
    const shown = [bearer('ann'), bearer('bob'), { cookie: 'ann' }, { 'x-api-key': 'ann' }, {}];
    const results = [];
    for (const headers of shown) {
      const client = await httpClient(version, url, headers as Record<string, string>);
      results.push(await client.call('send', { to: 'x' }));
    }
    const again = await httpClient(version, url, bearer('ann'));
    expect((await again.call('send', { to: 'x' })).structuredContent).toEqual(results[0]!.structuredContent);
    for (const result of results.slice(1))
      expect(result).toMatchObject({
        isError: true,
        _meta: { 'dev.semel/error': { code: 'NOT_PERMITTED' } },
      });
    expect(here.effects()).toHaveLength(1);
  });

  /** Whether the second call is answered as the first one's. */
  async function isOneCaller(first: object, second: object): Promise<boolean> {
    await using semel = createSemel({ store: 'memory:', onWarning: () => undefined });
    let ran = 0;
    const handler = guard(
      semel,
      'send',
      { effect: 'irreversible', per: 'ever' },
      (_: object, _extra: object) => {
        ran += 1;
        return { content: [{ type: 'text', text: 'of ann' }] };
      },
    );
    await handler({}, first);
    const answer = JSON.stringify(await handler({}, second));
    expect(ran).toBe(1);
    expect(answer.includes('of ann')).toBe(!answer.includes('NOT_PERMITTED'));
    return answer.includes('of ann');
  }

  const auth = (token: string, extra?: object, clientId = 'app') => ({
    authInfo: { token, clientId, scopes: [], ...(extra === undefined ? {} : { extra }) },
  });
  const subject = { sub: 'ann' };
  const same: [string, object, object][] = [
    ['the subject, under a new token and another client', auth('t1', subject), auth('t2', subject, 'web')],
    [
      'the subject in a JWT that was verified',
      auth(jwt({ sub: 'ann' }, '1')),
      auth(jwt({ sub: 'ann' }, '2')),
    ],
    ['a user id as a number', auth('t1', { userId: 7 }), auth('t2', { userId: 7 })],
    ['one token', auth('t1'), auth('t1')],
    ['one client, where there is no token', { authInfo: { clientId: 'a' } }, { authInfo: { clientId: 'a' } }],
    ['version 2', { http: auth('t1', subject) }, { http: auth('t2', subject) }],
    ['no HTTP at all', {}, {}],
  ];
  test.each(same)('one caller: %s', async (_, first, second) => {
    expect(await isOneCaller(first, second)).toBe(true);
  });

  const different: [string, object, object][] = [
    ['two users of one client', auth('t1'), auth('t2')],
    [
      'a key in the query of a bare path',
      { requestInfo: { headers: {}, url: '/mcp?api_key=ann' } },
      { requestInfo: { headers: {}, url: '/mcp?api_key=bob' } },
    ],
    ['two subjects under one client', auth('t1', { sub: 'ann' }), auth('t1', { sub: 'bob' })],
    ['two issuers', auth('t', { sub: 'ann', iss: 'a' }), auth('t', { sub: 'ann', iss: 'b' })],
    ['a subject and a client of its name', auth('t', { sub: 'ann' }), { authInfo: { clientId: 'ann' } }],
    ['text moved from client to token', auth('bc', undefined, 'a'), auth('c', undefined, 'ab')],
    [
      'two clients, where there is no token',
      { authInfo: { clientId: 'a' } },
      { authInfo: { clientId: 'b' } },
    ],
    ['a signed-in user and nobody', auth('t1', subject), { requestInfo: { headers: {} } }],
    ['two queries', at('https://x.example/mcp?key=1'), at('https://x.example/mcp?key=2')],
    ...Object.entries(foreignHeaders).map(([kind, make]): [string, object, object] => [
      `headers of ${kind}`,
      { requestInfo: { headers: make('ann') } },
      { requestInfo: { headers: make('bob') } },
    ]),
    ['the request of version 2, with headers of its own', asked('ann'), asked('bob')],
    ['facts that are getters of a class', new LazyExtra('ann'), new LazyExtra('bob')],
  ];
  test.each(different)('two callers: %s', async (_, first, second) => {
    expect(await isOneCaller(first, second)).toBe(false);
    expect(await isOneCaller(second, first)).toBe(false);
  });

  test('the program’s own caller wins over the request’s credentials', async () => {
    await using semel = createSemel({ store: 'memory:', onWarning: () => undefined });
    let ran = 0;
    const handler = guard(
      semel,
      'send',
      { effect: 'irreversible', per: 'ever' },
      (_: object, _extra: object) => {
        ran += 1;
        return { content: [{ type: 'text', text: `${ran}` }] };
      },
    );
    const ask = (caller: string, token: string) =>
      semel.within({ caller }, () => handler({}, auth(token))) as Promise<{ isError?: boolean }>;
    await ask('ann', 't1');
    expect((await ask('ann', 't2')).isError).toBeUndefined();
    expect((await ask('bob', 't1')).isError).toBe(true);
    expect(ran).toBe(1);
  });

  test('equal calls of two unidentified users are two', async () => {
    await using semel = createSemel({ store: 'memory:', onWarning: () => undefined });
    let ran = 0;
    const handler = guard(semel, 'send', 'write-non-idempotent', (_: object, _extra: object) => {
      ran += 1;
      return { content: [{ type: 'text', text: `${ran}` }] };
    });
    for (const token of ['ann', 'bob', 'ann', 'bob']) await handler({}, auth(token));
    expect(ran).toBe(2);
  });
});

test('the name of a server holds a digest that is long enough, and is none that jobs have', async () => {
  const here = proxyPlace();
  await here.client().call('act', { n: 1 });
  await using semel = createSemel({ store: here.store, namespace: 'default' });
  const contracts = (await semel.records.list()).items.map(({ contract }) => contract);
  expect(contracts).toContainEqual(expect.stringMatching(/^fake-[0-9a-z]{10}\.act$/));
  const refused = await here.semel('mcp', '--name', 'run', '--', 'node', 'x');
  expect(refused.code).toBe(64);
  expect(refused.stderr).toContain('--name must not begin with run., lock., step., pick. or step-order.');
});

describe('a server over stdio, which takes its account from the environment', () => {
  const tools = { act: { effect: 'irreversible', per: 'ever', errors: 'ask' } };

  /** A call of the same tool, by a proxy of its own. */
  async function callAs(here: ProxyPlace, env: object, options: readonly string[] = [], more = {}) {
    const words = here.command(options, [process.execPath, fake, here.folder]);
    const client = rawClient(words, { ...here.env, ...(env as Record<string, string>) });
    const answer = await client.call('act', { to: 'bob' }, more);
    client.leave();
    await client.ended;
    return answer;
  }

  test.each([
    'GITHUB_TOKEN',
    'STRIPE_SECRET_KEY',
    'SMTP_USER',
    'DATABASE_URL',
    'AWS_PROFILE',
    'SLACK_TEAM_ID',
  ])('where the turn is a guess, each runs its own call: %s', async (name) => {
    const here = proxyPlace();
    expect(isKept(await callAs(here, { [name]: 'ann' }))).toBe(false);
    expect(isKept(await callAs(here, { [name]: 'ben' }))).toBe(false);
    expect(here.effects()).toHaveLength(2);
    expect(isKept(await callAs(here, { [name]: 'ann' }))).toBe(true);
    expect(here.effects()).toHaveLength(2);
  });

  test('if the record exists, another account is refused and learns nothing about the result', async () => {
    const here = proxyPlace();
    const options = ['--policy', here.policy(tools)];
    await callAs(here, { GITHUB_TOKEN: 'ann' }, options);
    isRefused(await callAs(here, { GITHUB_TOKEN: 'ben' }, options), 'done 1');
    expect(isKept(await callAs(here, { GITHUB_TOKEN: 'ann' }, options))).toBe(true);
    expect(here.effects()).toHaveLength(1);
  });

  test('the users that a hand-off names stay apart within an account', async () => {
    const here = proxyPlace();
    const options = ['--policy', here.policy(tools)];
    const env = { GITHUB_TOKEN: 'app' };
    await using semel = createSemel({ store: 'memory:' });
    const asUser = (caller: string) => ({
      _meta: { 'dev.semel/context': semel.within({ caller, conversation: 'c', turn: 't' }, semel.handoff) },
    });
    await callAs(here, env, options, asUser('ann'));
    isRefused(await callAs(here, env, options, asUser('ben')), 'done 1');
    expect(isKept(await callAs(here, env, options, asUser('ann')))).toBe(true);
  });

  test('variables that a desktop, shell, build or agent sets do not make another account', () => {
    const passing = [
      ...['PATH', 'HOME', 'USER', 'LOGNAME', 'PWD', 'HOSTNAME', 'TERM', 'LANG', 'DISPLAY', 'XAUTHORITY'],
      ...[
        'SSH_AUTH_SOCK',
        'DBUS_SESSION_BUS_ADDRESS',
        'XDG_SESSION_ID',
        'GNOME_KEYRING_CONTROL',
        'SUDO_USER',
      ],
      ...[
        'STARSHIP_SESSION_KEY',
        'TERM_SESSION_ID',
        'VSCODE_IPC_HOOK',
        'CLAUDE_CODE_OAUTH_TOKEN',
        'CODEX_HOME',
      ],
      ...['npm_config_user_agent', 'npm_package_name', 'CI_JOB_TOKEN', 'ACTIONS_RUNTIME_TOKEN', 'BUILD_URL'],
      ...[
        'SEMEL_KEY',
        'SEMEL_HANDOFF_KEY',
        'XKB_KEYMAP',
        'INVOCATION_ID',
        'GIT_ASKPASS',
        'AWS_SESSION_TOKEN',
      ],
    ];
    for (const name of passing) expect(digestEnvironment({ [name]: 'x' }), name).toBeUndefined();
    expect(digestEnvironment({ GITHUB_TOKEN: '' })).toBeUndefined();
    const two = [
      { A_KEY: 'x', B_KEY: 'y' },
      { A_KEY: 'y', B_KEY: 'x' },
      { A_KEY: 'xB_KEYy' },
      { B_KEY: 'y', A_KEY: 'x' },
    ];
    expect(new Set(two.map((env) => digestEnvironment(env))).size).toBe(3);
  });

  test('the same relative path in another folder is another server', () => {
    const [one, other] = ['/home/ann/shop', '/home/ann/blog/app'];
    const paths = [
      ['server.js'],
      ['./run', '--db', 'x'],
      ['.'],
      ['../x.db'],
      ['src/server.py'],
      ['--db=./x.db'],
    ];
    for (const args of paths) expect(serverName('node', args, one)).not.toBe(serverName('node', args, other));
    const others = [
      ['-y', '@modelcontextprotocol/server-memory'],
      ['/srv/server.js'],
      ['mcp/image'],
      ['--of=x'],
    ];
    for (const args of others) expect(serverName('npx', args, one)).toBe(serverName('npx', args, other));
    const url = 'https://x.example/a.js';
    expect(serverName(url, [], one)).toBe(serverName(url, [], other));
  });
});

/** As undici, node-fetch, an older polyfill and another framework keep them: none is the global `Headers`. */
const foreignHeaders: Readonly<Record<string, (who: string) => object>> = {
  'a class of their own': (who) => new OwnHeaders(who),
  'a class that knows forEach alone': (who) => ({
    __proto__: {
      forEach: (see: (value: string, name: string) => void) => see(`Bearer ${who}`, 'Authorization'),
    },
  }),
  'a Map': (who) => new Map(Object.entries(bearer(who))),
  'a list of pairs, one of them twice': (who) => [
    ['Authorization', `Bearer ${who}`],
    ['authorization', 'Bearer app'],
  ],
};

class OwnHeaders {
  readonly #who: string;
  constructor(who: string) {
    this.#who = who;
  }
  *[Symbol.iterator]() {
    yield ['Authorization', `Bearer ${this.#who}`];
  }
}

function asked(who: string) {
  return { http: { req: { headers: new OwnHeaders(who), url: 'http://x.example/mcp' } } };
}

class LazyExtra {
  readonly #who: string;
  constructor(who: string) {
    this.#who = who;
  }
  get authInfo() {
    return { token: this.#who, clientId: 'app' };
  }
}

function at(url: string) {
  return { requestInfo: { headers: {}, url: new URL(url) } };
}

function meta(conversation: string, turn: string) {
  return { 'dev.semel/conversation': conversation, 'dev.semel/turn': turn };
}

async function handoff(conversation: string): Promise<string> {
  await using semel = createSemel({ store: 'memory:' });
  return semel.within({ conversation, turn: 't' }, semel.handoff);
}

function jwt(claims: object, signature: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'RS256' })}.${part(claims)}.${Buffer.from(signature).toString('base64url')}`;
}
