// Who may call at all: by which name of the server, from which web page, and through which proxy.

import { once } from 'node:events';
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { digestToken, type StartOptions, startServer } from '../../src/server/index.ts';
import { memoryStore } from '../../src/store/memory.ts';

const token = 'a-token-that-is-long-enough-to-be-one-of-them';
const authorization = `Bearer ${token}`;
const app = 'https://app.example.com';

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

async function open(options: Partial<StartOptions> = {}) {
  const warnings: string[] = [];
  const server = await startServer({
    store: memoryStore(),
    tokens: [{ name: 'ci', role: 'admin', namespace: 'shop', sha256: digestToken(token) }],
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: (message) => warnings.push(message),
    ...options,
  });
  onTestFinished(() => server.close(0));
  const port = Number(/:(\d+)$/.exec(server.url)?.[1]);
  const send = (path: string, headers: Record<string, string>, method = 'GET'): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, path, method, headers: { authorization, ...headers } });
      sent.on('error', reject);
      sent.on('response', (response) => {
        const { statusCode: status = 0, headers } = response;
        if (headers['content-type'] === 'text/event-stream') {
          resolve({ status, headers, text: '' });
          sent.destroy();
          return;
        }
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        response.on('end', () => resolve({ status, headers, text }));
      });
      sent.end();
    });
  /** `request` would add a Host, and write the path its own way. */
  const sendLines = async (lines: readonly string[]) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (part: string) => {
      text += part;
    });
    socket.end(`${lines.join('\r\n')}\r\n\r\n`);
    await once(socket, 'close');
    return Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]);
  };
  return { port, send, sendLines, warnings };
}

const cors = (headers: IncomingHttpHeaders) =>
  Object.keys(headers).filter((name) => name.startsWith('access-control-'));

const asks = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' };

test('a web page of a listed origin may ask, and reads its answers', async () => {
  const { send } = await open({ origins: [app, 'https://ops.example.com:8443'] });
  const preflight = await send('/v1/begin', { ...asks, authorization: '', origin: app }, 'OPTIONS');
  expect(preflight).toMatchObject({
    status: 200,
    text: '',
    headers: {
      'access-control-allow-origin': app,
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers': 'authorization, content-type, semel-namespace, traceparent',
      vary: 'origin',
    },
  });
  const crossSite = { origin: app, 'sec-fetch-site': 'cross-site' };
  for (const [path, status] of [
    ['/v1/tools', 200],
    ['/v1/events', 200],
    ['/v1/none', 404],
    ['/openapi.json', 200],
  ] as const) {
    const { headers, ...answer } = await send(path, crossSite);
    expect(answer.status).toBe(status);
    // No credentials mode: a page shows its token by itself.
    expect([path, cors(headers)]).toEqual([path, ['access-control-allow-origin']]);
    expect(headers).toMatchObject({ 'access-control-allow-origin': app, vary: 'origin' });
  }
  const wrong = await send('/v1/tools', { ...crossSite, authorization: 'Bearer wrong' });
  expect(wrong).toMatchObject({ status: 401, headers: { 'access-control-allow-origin': app } });
  const other = await send('/v1/tools', { origin: 'https://ops.example.com:8443' });
  expect(other.headers['access-control-allow-origin']).toBe('https://ops.example.com:8443');
  // A cache must not give the one's answer to the other.
  expect((await send('/v1/tools', {})).headers.vary).toBe('origin');
});

test('a web page of any other origin is refused, and reads nothing', async () => {
  const { send } = await open({ origins: [app] });
  const alike = ['https://app.example.com.evil.example', 'http://app.example.com', `${app}:444`, `${app}/`];
  for (const origin of ['https://evil.example', 'null', `${app}, ${app}`, app.toUpperCase(), ...alike])
    for (const [method, more] of [['OPTIONS', asks] as const, ['GET', {}] as const]) {
      const { status, headers } = await send('/v1/tools', { ...more, origin }, method);
      expect([origin, method, status, cors(headers)]).toEqual([origin, method, 403, []]);
    }
});

test('without a listed origin there is no word about any', async () => {
  const { send, port } = await open();
  const own = await send('/v1/tools', { origin: `http://127.0.0.1:${port}`, host: `127.0.0.1:${port}` });
  expect(own.status).toBe(200);
  expect([cors(own.headers), own.headers.vary]).toEqual([[], undefined]);
  expect((await send('/v1/tools', { ...asks, origin: app }, 'OPTIONS')).status).toBe(403);
});

test('what is not an origin is refused at the start, also the one for all', async () => {
  for (const origin of [
    '*',
    'null',
    'app.example.com',
    `${app}/`,
    'https://*.example.com',
    'HTTPS://A.example',
  ])
    await expect(open({ origins: [origin] })).rejects.toMatchObject({
      code: 'INVALID_ARGS',
      path: 'origins',
    });
});

test('only its own names lead to it, also to its pages and in the request line', async () => {
  const { send, sendLines, port } = await open({ hosts: ['ledger.example.com', 'two.example.com:8443'] });
  const own = ['localhost', '127.0.0.1', '[::1]', 'ledger.example.com'].flatMap((name) => [
    name,
    `${name}:${port}`,
  ]);
  for (const host of [...own, 'LOCALHOST', 'two.example.com:8443'])
    expect([host, (await send('/v1/tools', { host })).status]).toEqual([host, 200]);
  const strangers = [
    ...['evil.example', `evil.example:${port}`, 'localhost.evil.example', 'evil.localhost', 'localhost6'],
    ...['localhost.', `localhost.:${port}`, 'ledger.example.com.', '127.0.0.1.', '127.0.0.1.nip.io'],
    ...['localhost:1', '127.0.0.1:80', 'ledger.example.com:1', 'two.example.com', `localhost:0${port}`],
    ...['127.1', '2130706433', '0x7f000001', '0.0.0.0', '127.0.0.2', '::1', '[::]', '[::ffff:127.0.0.1]'],
    ...['user@localhost', 'localhost, localhost', 'localhost/', 'localhost:', ' .localhost'],
  ];
  for (const host of strangers)
    for (const path of ['/v1/tools', '/', '/docs', '/livez', '/openapi.json', '/metrics', '/assets/app.js']) {
      const { status, text } = await send(path, { host });
      expect([host, path, status, text.includes('correctiveAction')]).toEqual([host, path, 421, true]);
    }
  const shown = `Authorization: ${authorization}`;
  const absolute = (authority: string) =>
    sendLines([`GET http://${authority}/v1/tools HTTP/1.1`, 'Host: localhost', shown]);
  expect(await absolute('evil.example')).toBe(421);
  expect(await absolute(`localhost.:${port}`)).toBe(421);
  expect(await absolute(`localhost:${port}`)).toBe(200);
  expect(await sendLines(['GET /v1/tools HTTP/1.0', shown])).toBe(421);
  expect(await sendLines(['GET /v1/tools HTTP/1.1', 'Host: ', shown])).toBe(421);
});

test('behind a proxy, nobody else may connect, and what came to it unencrypted is refused', async () => {
  const listen = { host: '0.0.0.0', port: 0 };
  const hosts = ['ledger.example.com'];
  const host = { host: 'ledger.example.com' };
  const other = await open({ listen, hosts, behindProxy: ['192.0.2.7', '10.0.0.0/8'] });
  await expect(other.send('/livez', host)).rejects.toThrow(/hang up|ECONNRESET/);
  expect(other.warnings.join()).toContain('only the proxy may connect, and the last one was 127.0.0.1');
  const { send } = await open({ listen, hosts, behindProxy: ['192.0.2.7', '127.0.0.0/8'] });
  const by = async (protocol: string) =>
    (await send('/v1/tools', { ...host, 'x-forwarded-proto': protocol })).status;
  expect((await send('/v1/tools', host)).status).toBe(200);
  expect([await by('https'), await by('HTTPS'), await by('https, https')]).toEqual([200, 200, 200]);
  expect([await by('http'), await by('https, http'), await by(''), await by('wss')]).toEqual([
    403, 403, 403, 403,
  ]);
  expect((await send('/v1/tools', { host: '127.0.0.1' })).status).toBe(421);
});

test('a proxy on the same machine has to say https as well', async () => {
  const { send } = await open({ behindProxy: ['127.0.0.1'] });
  expect((await send('/v1/tools', { host: 'localhost', 'x-forwarded-proto': 'https' })).status).toBe(200);
  expect((await send('/v1/tools', { host: 'localhost', 'x-forwarded-proto': 'http' })).status).toBe(403);
  const other = await open({ behindProxy: ['10.0.0.0/8'] });
  await expect(other.send('/livez', { host: 'localhost' })).rejects.toThrow(/hang up|ECONNRESET/);
});

test('a proxy is an address or a network', async () => {
  const listen = { host: '0.0.0.0', port: 0 };
  for (const address of [
    'proxy.example',
    '',
    '10.0.0.0/33',
    '10.0.0.0/0',
    '10.0.0.0/8/8',
    '10.0.0',
    '::/129',
  ])
    await expect(open({ listen, behindProxy: [address] })).rejects.toMatchObject({
      code: 'INVALID_ARGS',
      path: 'behindProxy',
    });
});
