import { expect, test } from 'vitest';
import { z } from 'zod';
import * as z3 from 'zod/v3';
import { createSemel, type Semel } from '../semel/index.ts';
import { memoryStore } from '../store/memory.ts';
import { createGuard } from './guard.ts';
import { type AnyPolicy, createPolicyLookup } from './policy.ts';

const json = (more: object = {}) => ({ properties: { order: {}, reason: {}, customer: {} }, ...more });
const fields = { order: z.string(), reason: z.string(), customer: z.object({ id: z.string() }) };
const fields3 = { order: z3.string(), reason: z3.string(), customer: z3.object({ id: z3.string() }) };
const closed: readonly (readonly [string, unknown])[] = [
  ['zod', z.object(fields)],
  ['strict zod', z.strictObject(fields)],
  ['zod 3', z3.object(fields3)],
  ['JSON Schema', json()],
  ['wrapped JSON Schema', { jsonSchema: json({ additionalProperties: false }) }],
];
const open: readonly (readonly [string, unknown])[] = [
  ['loose zod', z.looseObject(fields)],
  ['zod with a catchall', z.object(fields).catchall(z.string())],
  ['passing zod 3', z3.object(fields3).passthrough()],
  ['a union', z.union([z.object(fields), z.object({ reson: z.string() })])],
  ['open JSON Schema', json({ additionalProperties: true })],
  ['wrapped open JSON Schema', { jsonSchema: json({ additionalProperties: {} }) }],
  ['JSON Schema with parts elsewhere', json({ allOf: [{ properties: { reson: {} } }] })],
  ['no schema', undefined],
];

function guarding(terms: object, schema: unknown) {
  const semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: () => undefined });
  const policy = { effect: 'write-non-idempotent', ...terms } as AnyPolicy;
  return () => createGuard(semel, 'refund', policy, { schema });
}

test.each(closed)('a field that the schema does not have is refused: %s', (_, schema) => {
  expect(guarding({ content: ['reson'] }, schema)).toThrow(
    'refund: `content` names `reson`, but its schema has no such field. Did you mean `reason`?',
  );
  expect(guarding({ volatile: ['traceparent'] }, schema)).toThrow('Its fields are order, reason, customer.');
  expect(guarding({ identity: ['order', 'customer.id'], redact: ['customer'] }, schema)).not.toThrow();
});

test.each(open)('where more fields may come, any may be named: %s', (_, schema) => {
  expect(guarding({ content: ['reson'] }, schema)).not.toThrow();
});

test('guard() refuses a first argument that is not a Semel instance', () => {
  for (const wrong of [undefined, {}, createSemel])
    expect(() => createGuard(wrong as unknown as Semel, 'refund', 'write-non-idempotent')).toThrow(
      'guard() expects a Semel instance first. Pass what `createSemel()` returned.',
    );
});

test('a list of tools, and one policy for several, are distinguished from a misspelt name', () => {
  const refund = {};
  expect(() => createPolicyLookup([refund], { refund: 'read' })).toThrow(
    /^The tools are a list.*\{ refund \}/,
  );
  expect(() => createPolicyLookup({ refund }, { effect: 'read' })).toThrow(/^This is a single policy/);
  expect(() => createPolicyLookup({ refund }, 'read' as never)).toThrow(/^This is a single policy/);
  expect(() => createPolicyLookup({ refund }, { refnd: 'read' })).toThrow(/`refnd`, but no such tool/);
  expect(createPolicyLookup({ effect: refund }, { effect: 'read' })('effect')).toBe('read');
});

test('a key is found in the schema of a stranger, however deep and wide that is', () => {
  const wide = Object.fromEntries(
    Array.from({ length: 150_000 }, (_, n) => [`field${n}`, { type: 'string' }]),
  );
  let deep: object = { properties: { idempotencyKey: {} } };
  for (let depth = 0; depth < 20_000; depth += 1) deep = { items: deep };
  expect(guarding({}, { properties: wide })).not.toThrow();
  expect(guarding({}, { properties: wide, items: deep })).toThrow(
    /would supply the key, as `idempotencyKey`/,
  );
});
