import { expect, test } from 'vitest';
import { z } from 'zod';
import { SemelError } from '../core/errors.ts';
import type { Receipt } from '../core/receipt.ts';
import { type Ambient, createSemel } from '../semel/index.ts';
import { memoryStore } from '../store/memory.ts';
import { guardOf } from './guard.ts';
import { guessFrom } from './guess.ts';
import { toldError } from './told.ts';

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

const guess = (text: string) => () => guessFrom([{ role: 'user', text }], () => true);

function shopOf() {
  const warnings: string[] = [];
  const semel = createSemel({
    store: memoryStore(),
    namespace: 'shop',
    onWarning: (message) => warnings.push(message),
  });
  return { semel, warnings };
}

test('a conversation is not guessed: what it alone bounds would be one for strangers', async () => {
  await using semel = shopOf().semel;
  const perConversation = { effect: 'write-non-idempotent', per: 'conversation' } as const;
  const guard = guardOf(semel, 'mail', perConversation);
  for (const text of ['I am Ann.', 'I am Bob.']) {
    const answer = await guard?.call({ args: { to: 'desk' }, identity: guess(text) }, () => 'sent');
    expect(answer).toMatchObject({ ok: false, error: { code: 'NO_IDENTITY' } });
  }
  const known = () => ({ ...guess('I am Ann.')(), conversation: 'thread-7' });
  expect(await guard?.call({ args: { to: 'desk' }, identity: known }, () => 'sent')).toMatchObject({
    ok: true,
  });
});

test('a turn without a conversation belongs to none that is guessed, and to the one that is known', async () => {
  await using semel = shopOf().semel;
  const guard = guardOf(semel, 'mail', 'write-non-idempotent');
  const call = (identity: () => Ambient) =>
    semel.within({ turn: 'm-1' }, () => guard?.call({ args: { to: 'ann' }, identity }, () => 'sent'));
  expect(await call(guess('Tell Ann.'))).toMatchObject({
    error: { message: expect.stringMatching(/a conversation/) },
  });
  expect(await call(() => ({ conversation: 'thread-7', turn: 'm-9' }))).toMatchObject({ ok: true });
  const [record] = (await semel.records.list()).items;
  expect(record).toMatchObject({ conversation: 'thread-7', turn: 'm-1' });
});

test('a mistake of the program is told to the program too, once, and the model is not sent to mend its args', async () => {
  const { semel, warnings } = shopOf();
  await using _ = semel;
  const guard = guardOf(semel, 'mail', 'write-non-idempotent');
  const call = () => guard?.call({ args: { to: 'ann' } }, () => 'sent');
  const hopeless = {
    ok: false,
    error: { correctiveAction: expect.stringMatching(/to repeat it does not help/) },
  };
  expect([await call(), await call()]).toMatchObject([hopeless, hopeless]);
  expect(await semel.within({ conversation: '', turn: 'm-1' }, call)).toMatchObject(hopeless);
  expect(warnings).toEqual([
    expect.stringMatching(/^mail: .* needs a conversation.*semel\.within\(\{ conversation, turn \}/),
    expect.stringMatching(/^mail: `conversation` is empty/),
  ]);
});

test('the ref that a model is told decides the doubt as it is, also where the process died', () => {
  const seen = new SemelError('IN_DOUBT', 'It may have landed.', { evidence: { record: 'abcd@1.xyz' } });
  const receipt = { id: 'abcd', fence: 1 } as Receipt;
  expect(toldError(seen, receipt)).toMatchObject({
    evidence: { ref: 'abcd@1.xyz' },
    correctiveAction: expect.stringContaining('abcd@1.xyz'),
  });
});

test('an error that is its own cause is told like any other', async () => {
  await using semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: () => undefined });
  const guard = guardOf(semel, 'mail', { effect: 'write-non-idempotent', per: 'ever' });
  const endless = new Error('the mail server said nothing');
  endless.cause = new Error('it was the other', { cause: endless });
  const answer = await guard?.call({ args: {} }, () => {
    throw endless;
  });
  expect(answer).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
});
