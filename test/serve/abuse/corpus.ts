// Requests that nobody should send, for every endpoint there is: the list of endpoints and their schemas is all that it knows,
// so a new endpoint is covered by itself.

import type { Endpoint } from '../../../src/server/endpoint.ts';

export interface Abuse {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface Known {
  /** An attempt of this namespace; it is used up soon. */
  readonly attempt: string;
  /** A record of this namespace. */
  readonly ref: string;
  /** A ticket of a namespace that nobody here may use. */
  readonly stolenAttempt: string;
  readonly stolenRef: string;
  readonly stolenKey: string;
}

const json = { 'content-type': 'application/json' };

/** JSON texts, so that they can say what no JavaScript value does. */
const values: Readonly<Record<string, string>> = {
  null: 'null',
  true: 'true',
  zero: '0',
  'minus zero': '-0',
  'a negative number': '-1',
  'a fraction': '0.5',
  'a number that is rounded': '9007199254740993',
  'a number out of range': '1e400',
  'a long number': `1${'0'.repeat(2_000)}`,
  'an empty text': '""',
  spaces: '"   "',
  'a NUL': '"a\\u0000b"',
  'half of a pair': '"a\\ud800b"',
  'the other half': '"\\udfff"',
  bidi: '"\\u202eevil\\u2066\\u061c"',
  escapes: '"\\u001b[2J\\u001b]0;owned\\u0007\\r\\nHTTP/1.1 200 OK\\r\\n\\r\\n"',
  'a long text': `"${'x'.repeat(101_000)}"`,
  'combining marks': `"e${'\\u0301'.repeat(5_000)}"`,
  __proto__: '"__proto__"',
  constructor: '"constructor"',
  'a path': '"../../../../etc/passwd"',
  SQL: `"x' or 1=1; drop table closed; --"`,
  wildcards: '"%_*?[]"',
  'a URL': '"http://169.254.169.254/latest"',
  'a list': '[]',
  'a list in a list': `${'['.repeat(400)}${']'.repeat(400)}`,
  'a list too deep': `${'['.repeat(600)}${']'.repeat(600)}`,
  'an object': '{}',
  'an object with a prototype':
    '{"__proto__":{"role":"admin","namespace":"vault"},"constructor":{"prototype":{}}}',
  'many members': `{${Array.from({ length: 500 }, (_, at) => `"m${at}":${at}`).join()}}`,
  'a name twice': '{"a":1,"a":2}',
  toJSON: '{"toJSON":"x","then":"x","length":-1,"valueOf":1}',
};

const bodies: Readonly<Record<string, string | Buffer>> = {
  nothing: '',
  null: 'null',
  'a number': '1',
  'a text': '"x"',
  'a list': '[]',
  'an empty object': '{}',
  'half of an object': '{"tool":',
  'a byte order mark': '\ufeff{}',
  'two objects': '{}{}',
  'no UTF-8': Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  'overlong UTF-8': Buffer.from([0x7b, 0x22, 0xc0, 0x80, 0x22, 0x3a, 0x31, 0x7d]),
  'a surrogate in UTF-8': Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
  'UTF-16': Buffer.from('{"tool":"plain"}', 'utf16le'),
  NULs: '\0'.repeat(1_000),
  __proto__: '{"__proto__":{"tool":"plain"}}',
  constructor: '{"constructor":{"prototype":{"role":"admin"}}}',
  'another namespace': '{"namespace":"vault","Semel-Namespace":"vault"}',
  'deep lists': '['.repeat(100_000),
  'deep objects': '{"a":'.repeat(100_000),
  'many values': `[${'0,'.repeat(250_000)}0]`,
  'many names': `{${Array.from({ length: 20_000 }, (_, at) => `"${at}":0`).join()}}`,
  'no items': '{"items":[]}',
  'too many items': `{"items":[${'{},'.repeat(600)}{}]}`,
  'items of anything': `{"items":[${Object.values(values).join()}]}`,
  'items in items': '{"items":[{"items":[{"items":[{}]}]}]}',
  'items that are no list': '{"items":{"0":{},"length":1}}',
  'a comment': '/* x */ {}',
  JSON5: "{tool:'plain'}",
  NaN: '{"args":NaN}',
};

const headers: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'another namespace': { 'semel-namespace': 'vault' },
  'two namespaces': { 'semel-namespace': 'shop, vault' },
  'an empty namespace': { 'semel-namespace': '' },
  'a namespace of semel': { 'semel-namespace': 'serve (roots)' },
  'all namespaces': { 'semel-namespace': '*' },
  'no media type': { 'content-type': '' },
  'plain text': { 'content-type': 'text/plain' },
  'a form': { 'content-type': 'application/x-www-form-urlencoded' },
  'UTF-7': { 'content-type': 'application/json; charset=utf-7' },
  'two charsets': { 'content-type': 'application/json; charset=utf-8; charset=utf-16' },
  gzip: { ...json, 'content-encoding': 'gzip' },
  'another host': { ...json, host: 'evil.example' },
  'a host with a suffix': { ...json, host: 'localhost.evil.example' },
  'a host with a user': { ...json, host: 'localhost@evil.example' },
  localhost6: { ...json, host: 'localhost6' },
  'another origin': { ...json, origin: 'https://evil.example' },
  'no origin': { ...json, origin: 'null' },
  'another port': { ...json, origin: 'http://localhost:1' },
  'a cross-site request': { ...json, 'sec-fetch-site': 'cross-site' },
  'a same-site request': { ...json, 'sec-fetch-site': 'same-site' },
  'another method': { ...json, 'x-http-method-override': 'GET' },
  'an upgrade': { ...json, connection: 'upgrade', upgrade: 'websocket' },
  'an expectation': { ...json, expect: '200-ok' },
  'a forwarded client': {
    ...json,
    forwarded: 'for=127.0.0.1;host=localhost',
    'x-forwarded-for': '127.0.0.1',
  },
  'a rewritten path': { ...json, 'x-original-url': '/v1/resolve', 'x-rewrite-url': '/v1/resolve' },
  'a cookie': { ...json, cookie: 'token=admin; namespace=vault' },
};

const methods = ['HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'GET', 'POST'];

const paths = (path: string): readonly string[] => [
  `/${path}`,
  `${path}/`,
  `${path}//`,
  `${path}%00`,
  `${path}%2f..%2fresolve`,
  `${path};a=b`,
  `${path}.json`,
  path.toUpperCase(),
  path.replaceAll('/', '%2f'),
  path.replaceAll('/', '\\'),
  `/.${path}`,
  `/v1/..${path}`,
  `${path}?`,
  `${path}?__proto__=1`,
  `${path}?constructor=1&constructor=2`,
  `${path}?namespace=vault`,
  `${path}?${'a=b&'.repeat(2_000)}`,
  `${path}?%`,
  `${path}?ref=%ff%fe`,
];

export function corpusFor(endpoint: Endpoint, known: Known): readonly Abuse[] {
  const { method, path, isBatch } = endpoint;
  const fields = fieldsOf(endpoint, known);
  const usual = usualRequest(endpoint, known);
  const all: Abuse[] = [];
  const add = (name: string, more: Partial<Abuse>) =>
    all.push({ ...usual, ...more, name: `${method} ${path}, ${name}` });

  for (const [fieldAt, [field, own]] of Object.entries(fields.all).entries())
    for (const [at, [name, value]] of Object.entries({ ...values, ...stolen(known) }).entries()) {
      // Half of them: each field gets many values, and each value comes in many fields.
      if (value === own || (!(field in fields.required) && (at + fieldAt) % 2 === 1)) continue;
      if (method === 'GET') {
        if (!value.startsWith('"')) continue;
        const query = new URLSearchParams({ ...fields.required, [field]: JSON.parse(value) as string });
        // Longer ones are refused before they reach the server's code.
        add(`${field} is ${name}`, { path: `${path}?${query}`.slice(0, 12_000) });
      } else {
        const text = write({ ...toTexts(fields.required), [field]: value });
        add(`${field} is ${name}`, { body: text });
        if (isBatch && at % 4 === 0)
          add(`items, ${field} is ${name}`, { body: `{"items":[${text},${text}]}` });
      }
    }
  for (const [name, body] of Object.entries(bodies))
    if (method === 'POST' || body.length < 100) add(`the body is ${name}`, { body, headers: json });
  for (const [name, own] of Object.entries(headers)) add(name, { headers: own });
  for (const other of methods) if (other !== method) add(`by ${other}`, { method: other });
  for (const other of paths(path)) add(`as ${other.slice(0, 60)}`, { path: other });
  return all;
}

/** What an honest client would send. */
export function usualRequest(endpoint: Endpoint, known: Known): Abuse {
  const { method, path } = endpoint;
  const { required } = fieldsOf(endpoint, known);
  const name = `${method} ${path}`;
  if (method === 'GET')
    return { name, method, path: `${path}?${new URLSearchParams(required)}`, headers: {} };
  return { name, method, path, headers: json, body: write(toTexts(required)) };
}

function stolen({ stolenAttempt, stolenRef, stolenKey }: Known): Readonly<Record<string, string>> {
  const forged = Buffer.from(JSON.stringify([1, 'plain', null, [stolenKey, 'x', 1, 1, false, 0]]));
  const signed = Buffer.concat([Buffer.alloc(32), forged]);
  return {
    'an attempt of others': JSON.stringify(stolenAttempt),
    'a made-up attempt': JSON.stringify(forged.toString('base64url')),
    'an attempt with a made-up signature': JSON.stringify(signed.toString('base64url')),
    'a ref of others': JSON.stringify(stolenRef),
    'a key of others': JSON.stringify(stolenKey),
    'a key of others at a fence': JSON.stringify(`${stolenKey}@1`),
  };
}

interface FieldSchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
}

interface Fields {
  /** Query texts, or texts of the body. */
  readonly required: Record<string, string>;
  readonly all: Readonly<Record<string, string>>;
}

function fieldsOf({ input }: Endpoint, { attempt, ref }: Known): Fields {
  const { properties = {}, required = [] } = input.json as {
    readonly properties?: Readonly<Record<string, FieldSchema>>;
    readonly required?: readonly string[];
  };
  const own: Readonly<Record<string, string>> = { attempt, ref, tool: 'plain' };
  const usual = (name: string, schema: FieldSchema) => own[name] ?? schema.enum?.[0] ?? 'x';
  const all = Object.entries(properties).map(([name, schema]) => [name, usual(name, schema)] as const);
  return {
    all: Object.fromEntries(all),
    required: Object.fromEntries(all.filter(([name]) => required.includes(name))),
  };
}

function toTexts(fields: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)]));
}

function write(fields: Readonly<Record<string, string>>): string {
  return `{${Object.entries(fields)
    .map(([name, text]) => `${JSON.stringify(name)}:${text}`)
    .join()}}`;
}

/** Below HTTP's rules. `TOKEN` stands for a valid one. */
export function rawRequests(path: string): Readonly<Record<string, string>> {
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/json\r\n`;
  const get = `GET /v1/tools HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\n`;
  const hidden = `POST /v1/resolve HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}`;
  return {
    'no host': get.replace('Host: localhost\r\n', '').concat('\r\n'),
    'two hosts': `${get}Host: evil.example\r\n\r\n`,
    'HTTP/1.0': get.replace('1.1', '1.0').concat('\r\n'),
    'HTTP/2.0': get.replace('1.1', '2.0').concat('\r\n'),
    'HTTP/0.9': 'GET /v1/tools\r\n\r\n',
    'an HTTP/2 preface': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'a TLS hello': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    'an absolute URL': get.replace('/v1/tools', 'http://localhost/v1/tools').concat('\r\n'),
    'an absolute URL of others': get.replace('/v1/tools', 'http://evil.example/v1/tools').concat('\r\n'),
    'an asterisk': get.replace('GET /v1/tools', 'OPTIONS *').concat('\r\n'),
    CONNECT: get.replace('GET /v1/tools', 'CONNECT localhost:22').concat('\r\n'),
    'a fragment': get.replace('/v1/tools', '/v1/tools#?x').concat('\r\n'),
    'an unknown method': get.replace('GET', 'BREW').concat('\r\n'),
    'two tokens': `${get}Authorization: Bearer other\r\n\r\n`,
    'a token in two lines': get.replace('Bearer TOKEN', 'Bearer\r\n TOKEN').concat('\r\n'),
    'a token of another scheme': get.replace('Bearer', 'Basic').concat('\r\n'),
    'an empty token': get.replace('Bearer TOKEN', 'Bearer ').concat('\r\n'),
    'a header without a name': `${get}: x\r\n\r\n`,
    'a header with a NUL': `${get}X: a\0b\r\n\r\n`,
    'a header with a bare CR': `${get}X: a\rb\r\n\r\n`,
    'a header with a space': `${get}X : y\r\n\r\n`,
    'long headers': `${get}X: ${'x'.repeat(40_000)}\r\n\r\n`,
    'many headers': `${get}${Array.from({ length: 2_500 }, (_, at) => `X${at}: y\r\n`).join('')}\r\n`,
    'a length and chunks': `${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    'two lengths': `${head}Content-Length: 2\r\nContent-Length: 30\r\n\r\n{}${hidden}`,
    'a negative length': `${head}Content-Length: -1\r\n\r\n{}`,
    'a length with a sign': `${head}Content-Length: +2\r\n\r\n{}`,
    'a huge length': `${head}Content-Length: 99999999999999999999\r\n\r\n{}`,
    'a length above the limit': `${head}Content-Length: 17000000\r\n\r\n{}`,
    'a length that never comes': `${head}Content-Length: 100\r\n\r\n{}`,
    'an unknown encoding': `${head}Transfer-Encoding: identity\r\n\r\n{}`,
    'chunks twice': `${head}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`,
    'chunks in odd case': `${head}Transfer-Encoding: cHuNkEd\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    'chunks behind a tab': `${head}Transfer-Encoding:\tchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    'chunks with an extension': `${head}Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n`,
    'chunks with a long extension': `${head}Transfer-Encoding: chunked\r\n\r\n2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`,
    'a chunk with a sign': `${head}Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n`,
    'a huge chunk': `${head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}\r\n`,
    'one byte per chunk': `${head}Transfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(5_000)}2\r\n{}\r\n0\r\n\r\n`,
    trailers: `${head}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nAuthorization: Bearer TOKEN\r\nSemel-Namespace: vault\r\n\r\n`,
    'an expectation to continue': `${head}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`,
    'a body with a GET': `${get}Content-Length: ${hidden.length}\r\n\r\n${hidden}`,
    'many at once': `${get}\r\n`.repeat(300),
    'a second request in the body': `${head}Content-Length: 2\r\n\r\n{}${hidden}`,
    'an upgrade to HTTP/2': `${get}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n\r\n`,
  };
}
