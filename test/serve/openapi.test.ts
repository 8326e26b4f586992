// The OpenAPI document: a valid one, true of what the server answers, and readable as a page.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/core/limits.ts';
import {
  describeApi,
  digestToken,
  endpoints,
  type RunningServer,
  startServer,
} from '../../src/server/index.ts';
import { memoryStore } from '../../src/store/memory.ts';

interface Ajv {
  validateSchema(schema: object): unknown;
  addSchema(schema: object, name: string): void;
  compile(schema: object): ((value: unknown) => boolean) & { errors?: unknown };
  errors?: unknown;
}
// The one that the MCP SDK brings, which types only the older drafts.
const { default: Ajv2020 } = createRequire(import.meta.url)('ajv/dist/2020.js') as {
  default: new (options: object) => Ajv;
};

type Json = Record<string, unknown>;
type Operation = Json & { responses: Record<string, { content?: Record<string, { schema: Json }> }> };

const token = 'a-token-that-is-long-enough-to-be-one-of-them';
const api = JSON.parse(JSON.stringify(describeApi(endpoints, '1.2.3'))) as Json & {
  paths: Record<string, Record<string, Operation>>;
};
const operations = Object.entries(api.paths).flatMap(([path, byMethod]) =>
  Object.entries(byMethod).map(([method, operation]) => ({ path, method, operation })),
);
const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema(api, 'api');

let server: RunningServer;
beforeAll(async () => {
  server = await startServer({
    store: memoryStore(),
    policies: {
      version: 1,
      tools: { refund: { effect: 'irreversible', per: 'ever', identity: ['p'] }, look: 'read' },
    },
    tokens: [{ name: 'all', role: 'admin', namespace: '*', sha256: digestToken(token) }],
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: () => undefined,
  });
});
afterAll(() => server.close(0));

/** Every object in the document, with its place. */
function* walk(value: unknown, place = '#'): Iterable<{ place: string; value: Json }> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield { place, value: value as Json };
  for (const [name, each] of Object.entries(value))
    yield* walk(each, `${place}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`);
}

function resolveRef(ref: string): unknown {
  return ref
    .slice(2)
    .split('/')
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>((at, name) => (at as Json | undefined)?.[name], api);
}

test('it is a valid OpenAPI 3.1 document', () => {
  expect(api.openapi).toBe('3.1.0');
  expect(api.info).toMatchObject({ title: expect.any(String), version: '1.2.3' });
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  const fields = [
    'operationId',
    'summary',
    'description',
    'parameters',
    'requestBody',
    'responses',
    'security',
  ];
  for (const { path, method, operation } of operations) {
    expect(path).toMatch(/^\/[\w/.]+$/);
    expect(['get', 'post']).toContain(method);
    expect(Object.keys(operation).filter((name) => !fields.includes(name))).toEqual([]);
    expect(
      Object.keys(operation.responses).filter((status) => !/^([1-5]\d\d|default)$/.test(status)),
    ).toEqual([]);
    for (const parameter of (operation.parameters ?? []) as Json[]) {
      const {
        name,
        in: where,
        schema,
      } = (typeof parameter.$ref === 'string' ? resolveRef(parameter.$ref) : parameter) as Json;
      expect([typeof name, ['query', 'header'].includes(String(where)), typeof schema]).toEqual([
        'string',
        true,
        'object',
      ]);
    }
  }
  for (const { place, value } of walk(api)) {
    if (typeof value.$ref === 'string')
      expect([place, typeof resolveRef(value.$ref)]).toEqual([place, 'object']);
    if (/\/schema$|^#\/components\/schemas\/\w+$/.test(place))
      expect([place, ajv.validateSchema(value), ajv.errors]).toEqual([place, true, null]);
  }
});

test('it has every path, the namespace, and events as events', () => {
  const others = ['/login', '/metrics', '/livez', '/readyz'];
  expect(Object.keys(api.paths)).toEqual([...new Set(endpoints.map(({ path }) => path)), ...others]);
  for (const { path, operation } of operations)
    if (path.startsWith('/v1/'))
      expect(operation.parameters).toContainEqual({ $ref: '#/components/parameters/Namespace' });
  expect(Object.keys(api.paths['/v1/events']?.get?.responses[200]?.content ?? {})).toEqual([
    'text/event-stream',
  ]);
  const loose = operations
    .filter(
      ({ operation }) => operation.responses[200]?.content?.['application/json']?.schema.type === 'object',
    )
    .filter(
      ({ operation }) =>
        !('properties' in (operation.responses[200]?.content?.['application/json']?.schema ?? {})),
    );
  // What the dashboard shows changes with it.
  expect(loose.map(({ path }) => path).sort()).toEqual(
    ['/v1/jobs', '/v1/outbox', '/v1/search', '/v1/stats', '/v1/summary', '/v1/whoami'].sort(),
  );
});

async function ask(path: string, body?: object): Promise<{ status: number; answer: Json }> {
  const response = await fetch(`${server.url}${path}`, {
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as Json;
  const at = path.replace(/\?.*/, '').replaceAll('/', '~1');
  const schema =
    response.status === 200
      ? `api#/paths/${at}/${body === undefined ? 'get' : 'post'}/responses/200/content/application~1json/schema`
      : 'api#/components/schemas/Problem';
  const isTrue = ajv.compile({ $ref: schema });
  expect([path, isTrue(answer), isTrue.errors], JSON.stringify(answer)).toEqual([path, true, null]);
  return { status: response.status, answer };
}

test('what it says of answers is true', async () => {
  const call = (p: string) => ({ tool: 'refund', args: { p } });
  const begin = async (p: string) => (await ask('/v1/begin', call(p))).answer;
  const { attempt } = await begin('p1');
  await ask('/v1/renew', { attempt });
  await ask('/v1/dispatch', { attempt });
  const step = await ask('/v1/step', { attempt, step: 'charge' });
  await ask('/v1/settle', { attempt: step.answer.attempt, outcome: 'succeeded', value: 1 });
  expect((await ask('/v1/settle', { attempt, outcome: 'succeeded', value: { id: 're_1' } })).status).toBe(
    200,
  );
  expect((await begin('p1')).outcome).toBe('replay');
  expect((await ask('/v1/begin', { tool: 'look', args: 1 })).answer.claimed).toBe(false);
  const lost = await begin('p2');
  await ask('/v1/settle', { attempt: lost.attempt, outcome: 'unknown', error: { message: 'hung up' } });
  expect((await ask('/v1/begin', call('p2'))).status).toBe(409);
  await ask('/v1/begin', { items: [call('p1'), call('p2'), call('p3'), {}] });
  const doubts = (await ask('/v1/doubts')).answer as { items: { ref: string }[] };
  expect(doubts.items).toHaveLength(1);
  await ask('/v1/doubts/groups');
  const ref = doubts.items[0]?.ref as string;
  expect((await ask(`/v1/record?ref=${ref}`)).status).toBe(200);
  expect((await ask('/v1/resolve', { items: [{ ref, verdict: 'abandon' }] })).status).toBe(200);
  const { record } = (await ask(`/v1/record?ref=${ref.split('@')[0]}`)).answer as { record: { ref: string } };
  expect((await ask('/v1/forget', { ref: record.ref })).status).toBe(200);
  const refusal = await begin('p4');
  await ask('/v1/settle', { attempt: refusal.attempt, outcome: 'failed' });
  expect((await ask('/v1/reopen', { ref: `${refusal.recordId}@${refusal.fence}` })).status).toBe(200);
  await ask('/v1/records?limit=2');
  await ask('/v1/tools');
  await ask('/v1/handoff', { conversation: 'c' });
  const job = { job: 'digest', per: 'day' };
  const run = (await ask('/v1/jobs/begin', job)).answer;
  await ask('/v1/jobs/step', { attempt: run.attempt, kind: 'step', name: 'write' });
  expect((await ask('/v1/jobs/begin', job)).answer.outcome).toBe('busy');
  await ask('/v1/settle', { attempt: run.attempt, outcome: 'succeeded', value: { value: 1 } });
  await ask('/v1/settle', { attempt: run.lock, outcome: 'notLanded' });
  expect((await ask('/v1/jobs/begin', job)).answer.outcome).toBe('skipped');
  const { code } = (await ask('/v1/logins', {})).answer;
  expect((await ask('/login', { code })).status).toBe(200);
  for (const path of ['/livez', '/readyz', '/v1/whoami', '/v1/summary', '/v1/search?q=p1']) await ask(path);
});

test('each kind of refusal has a type of its own, and a code that stays', async () => {
  const { port, hostname } = new URL(server.url);
  const send = (method: string, path: string, headers: Record<string, string>, body = '') =>
    new Promise<Json>((resolve, reject) => {
      const own = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const sent = request({ hostname, port, path, method, headers: { ...own, ...headers } }, (response) => {
        let text = '';
        response.on('data', (part) => {
          text += part;
        });
        response.on('end', () => resolve({ status: response.statusCode, ...JSON.parse(text) }));
      });
      sent.on('error', reject);
      sent.end(body);
    });
  const refused = {
    BAD_REQUEST: [400, await send('GET', '/v1/records?limit=1&limit=2', {})],
    NOT_AUTHENTICATED: [401, await send('GET', '/v1/tools', { authorization: 'Bearer wrong' })],
    NOT_ALLOWED_FROM_THERE: [403, await send('GET', '/v1/tools', { origin: 'https://evil.example' })],
    NOT_FOUND: [404, await send('GET', '/v1/none', {})],
    METHOD_NOT_ALLOWED: [405, await send('GET', '/v1/begin', {})],
    TOO_LARGE: [413, await send('POST', '/login', {}, `{"code":"${'x'.repeat(limits.loginBytes)}"}`)],
    NOT_JSON: [415, await send('POST', '/v1/begin', { 'content-type': 'text/plain' })],
    OTHER_HOST: [421, await send('GET', '/v1/tools', { host: 'evil.example' })],
  };
  for (const [kind, [status, problem]] of Object.entries(refused))
    expect(problem).toMatchObject({
      status,
      type: `urn:semel:problem:${kind}`,
      title: kind,
      code: 'INVALID_ARGS',
      correctiveAction: expect.any(String),
    });
  expect(await send('POST', '/v1/begin', {}, '{}')).toMatchObject({ type: 'urn:semel:problem:INVALID_ARGS' });
});

test('its page for people names every request, runs nothing, and asks nobody else', async () => {
  const response = await fetch(`${server.url}/docs`);
  const html = await response.text();
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
  for (const { path, method } of operations) expect(html).toContain(`${method.toUpperCase()} ${path}`);
  for (const name of ['toolCallId', 'recordKey', 'correctiveAction', 'remoteRef'])
    expect(html).toContain(name);
  const style = /<style>([\s\S]*?)<\/style>/.exec(html)?.[1] ?? '';
  const digest = createHash('sha256').update(style).digest('base64');
  expect(response.headers.get('content-security-policy')).toBe(
    `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  );
  expect(html).not.toMatch(/<script|<img|<link|https?:|\sstyle=|\son\w+=/);
  for (const [, id] of html.matchAll(/href="#([^"]+)"/g)) expect(html).toContain(`id="${id}"`);
  const page = readFileSync(new URL('../../docs/reference/http-api.md', import.meta.url), 'utf8');
  for (const { path } of operations) expect(page).toContain(path.replace(/^\/v1\/(jobs\/)?/, ''));
});
