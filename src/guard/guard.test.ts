import { expect, test } from 'vitest';
import { z } from 'zod';
import { createSemel } from '../semel/index.ts';
import { memoryStore } from '../store/memory.ts';
import { guardOf } from './guard.ts';

test('what goes wrong before anything is run is told once, and not asked for ever', async () => {
  await using semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: () => undefined });
  const guard = guardOf(semel, 'mail', 'write-non-idempotent', { passes: () => false });
  const identity = () => {
    throw new Error('these messages cannot be read');
  };
  await expect(guard?.call({ args: {}, identity }, () => 1)).rejects.toThrow('these messages cannot be read');
});

const order = z.object({ lines: z.array(z.object({ sku: z.string(), idempotency_key: z.string() })) });

test.each<[string, unknown, RegExp]>([
  ['of zod, deep inside', order, /as `idempotency_key`/],
  ['of an optional field', z.object({ order: order.optional() }), /as `idempotency_key`/],
  [
    'that JSON Schema has no words for',
    z.object({ at: z.date(), idempotencyKey: z.string() }),
    /as `idempotencyKey`/,
  ],
  ['of JSON Schema', { type: 'object', properties: { 'x-idempotency-key': {} } }, /as `x-idempotency-key`/],
  [
    'of JSON Schema, in a choice',
    { anyOf: [{ $ref: '#/$defs/a' }], $defs: { a: { properties: { IdempotencyKey: {} } } } },
    /as `IdempotencyKey`/,
  ],
  ['wrapped by a framework', { jsonSchema: { properties: { idempotency_key: {} } } }, /as `idempotency_key`/],
  [
    'by the words of a field',
    z.object({ ref: z.string().describe('A fresh idempotency key') }),
    /its description speaks to the model of a key/,
  ],
])(
  'a key that the model would supply is refused when the tool is made: in a schema %s',
  (_where, schema, words) => {
    const semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: () => undefined });
    expect(() => guardOf(semel, 'mail', 'write-non-idempotent', { schema })).toThrow(words);
  },
);

test('fields that only sound like it are none', () => {
  const semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: () => undefined });
  const schema = z.object({
    key: z.string(),
    apiKeyId: z.string(),
    again: z.boolean().describe('idempotent'),
  });
  expect(guardOf(semel, 'mail', 'write-non-idempotent', { schema })).toBeDefined();
});
