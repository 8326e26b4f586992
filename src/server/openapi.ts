// The OpenAPI 3.1 document, from the schemas that check the requests.

import { errorCodes } from '../core/errors.ts';
import { limits } from '../core/limits.ts';
import type { Endpoint } from './endpoint.ts';
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
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      schemas: { Problem: problem },
      responses: {
        Problem: {
          description: 'It was refused: `code` says why, `correctiveAction` what to do.',
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      },
    },
  };
}

function describe({ method, path, role, about, input, isBatch }: Endpoint): JsonSchema {
  const operationId = path.replace('/v1/', '').replace(/\/(.)/g, (_, letter: string) => letter.toUpperCase());
  return {
    operationId,
    summary: about,
    description: `Needs a token with the role \`${role}\`.`,
    ...(method === 'GET'
      ? { parameters: toParameters(input.json) }
      : { requestBody: toBody(input.json, isBatch) }),
    responses: {
      200: {
        description: 'It was done.',
        content: { 'application/json': { schema: { type: 'object' } } },
      },
      default: { $ref: '#/components/responses/Problem' },
    },
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

const problem: JsonSchema = {
  type: 'object',
  properties: {
    type: { type: 'string' },
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
