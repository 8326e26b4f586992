// The OpenAPI 3.1 document, from the schemas that check the requests.

import { errorCodes } from '../core/errors.ts';
import { limits } from '../core/limits.ts';
import type { Endpoint } from './endpoint.ts';
import { answers, namedSchemas } from './exchange/answers.ts';
import { problemKinds } from './exchange/reply.ts';
import type { JsonSchema } from './exchange/schema.ts';

export function describeApi(endpoints: readonly Endpoint[], version: string): JsonSchema {
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const endpoint of endpoints) {
    paths[endpoint.path] ??= {};
    (paths[endpoint.path] as Record<string, JsonSchema>)[endpoint.method.toLowerCase()] = describe(endpoint);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'semel',
      version,
      description: 'The idempotency ledger over HTTP: ask before an effect, report after it.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    security: [{ token: [] }],
    paths: { ...paths, ...otherPaths },
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      parameters: { Namespace: namespace, Traceparent: traceparent },
      schemas: { Problem: problem, ...namedSchemas },
      responses: {
        Problem: {
          description: 'It was refused: `code` says why, `correctiveAction` what to do.',
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      },
    },
  };
}

const namespace: JsonSchema = {
  name: 'Semel-Namespace',
  in: 'header',
  required: false,
  description: 'Only a token for all namespaces may choose one. Any other may name its own.',
  schema: { type: 'string', minLength: 1, maxLength: 200, pattern: '^[!-~]+$', default: 'default' },
};

const traceparent: JsonSchema = {
  name: 'traceparent',
  in: 'header',
  required: false,
  description:
    'The span that asks, as W3C Trace Context writes it. Kept in the history of the record, never in its key.',
  schema: { type: 'string' },
};

const refused = { $ref: '#/components/responses/Problem' };

function describe({
  method,
  path,
  role,
  about,
  input,
  output,
  isBatch,
  isStream,
  isTraced,
}: Endpoint): JsonSchema {
  const operationId = path.replace('/v1/', '').replace(/\/(.)/g, (_, letter: string) => letter.toUpperCase());
  const query = method === 'GET' ? toParameters(input.json) : [];
  const answer = output ?? { type: 'object' };
  const content = isStream
    ? { 'text/event-stream': { schema: { type: 'string' } } }
    : { 'application/json': { schema: isBatch ? { anyOf: [answer, batchAnswer(answer)] } : answer } };
  return {
    operationId,
    summary: about,
    description: `Needs a token with the role \`${role}\`.`,
    parameters: [
      ...query,
      { $ref: '#/components/parameters/Namespace' },
      ...(isTraced ? [{ $ref: '#/components/parameters/Traceparent' }] : []),
    ],
    ...(method === 'GET' ? {} : { requestBody: toBody(input.json, isBatch) }),
    responses: { 200: { description: 'It was done.', content }, default: refused },
  };
}

function toParameters({ properties = {}, required = [] }: JsonSchema): readonly JsonSchema[] {
  return Object.entries(properties as Record<string, JsonSchema>).map(([name, schema]) => ({
    name,
    in: 'query',
    required: (required as readonly string[]).includes(name),
    schema,
  }));
}

function toBody(one: JsonSchema, isBatch: true | undefined): JsonSchema {
  const many = {
    type: 'object',
    properties: { items: { type: 'array', items: one, minItems: 1, maxItems: limits.batchItems } },
    required: ['items'],
    additionalProperties: false,
  };
  const schema = isBatch ? { oneOf: [one, many] } : one;
  return { required: true, content: { 'application/json': { schema } } };
}

/** Each item has the status that it would have had by itself. */
function batchAnswer(one: JsonSchema): JsonSchema {
  const item = {
    type: 'object',
    properties: {
      status: { type: 'integer' },
      body: { anyOf: [one, { $ref: '#/components/schemas/Problem' }] },
    },
    required: ['status', 'body'],
  };
  return { type: 'object', properties: { items: { type: 'array', items: item } }, required: ['items'] };
}

function json(description: string, schema: JsonSchema): JsonSchema {
  return { description, content: { 'application/json': { schema } } };
}

/** They have no role: anybody may ask, except for the metrics. */
const otherPaths: Readonly<Record<string, JsonSchema>> = {
  '/login': {
    post: {
      operationId: 'login',
      summary: 'Exchanges a code of /v1/logins for the session of a browser.',
      security: [],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              type: 'object',
              properties: { code: { type: 'string', maxLength: 200 } },
              required: ['code'],
            },
          },
        },
      },
      responses: { 200: json('The session.', answers.session), default: refused },
    },
  },
  '/metrics': {
    get: {
      operationId: 'metrics',
      summary: 'For Prometheus, with any token: of its namespace.',
      responses: {
        200: { description: 'The metrics.', content: { 'text/plain': { schema: { type: 'string' } } } },
        default: refused,
      },
    },
  },
  '/livez': {
    get: {
      operationId: 'livez',
      summary: 'Whether the process answers.',
      security: [],
      responses: { 200: json('It does.', answers.health) },
    },
  },
  '/readyz': {
    get: {
      operationId: 'readyz',
      summary: 'Whether the store can be written.',
      security: [],
      responses: { 200: json('It can.', answers.health), 503: json('It cannot.', answers.health) },
    },
  },
};

const problem: JsonSchema = {
  type: 'object',
  properties: {
    type: {
      type: 'string',
      description: 'What kind of refusal it is: `urn:semel:problem:` and the code, or one of the examples.',
      examples: Object.values(problemKinds).map(({ type }) => type),
    },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string', description: 'What happened.' },
    code: { enum: errorCodes },
    retriable: { type: 'boolean', description: 'The same request may be sent again.' },
    correctiveAction: { type: 'string', description: 'What to do next.' },
    retryAfterMs: { type: 'integer' },
    path: { type: 'string', description: 'Where in the request it went wrong.' },
    ref: { type: 'string', description: 'The record as it was looked at, for /v1/resolve.' },
    evidence: { type: 'object', description: 'What is known.' },
    value: { description: 'With UNRECORDED: what the effect returned.' },
  },
  required: ['type', 'title', 'status', 'detail', 'code', 'retriable', 'correctiveAction'],
};
