import { expect, test } from 'vitest';
import { z } from 'zod';
import { SemelError } from '../core/errors.ts';
import type { Receipt } from '../core/receipt.ts';
import { createSemel } from '../semel/index.ts';
import { memoryStore } from '../store/memory.ts';
import { createGuard } from './guard.ts';
import { type Guess, guessIdentity } from './guess.ts';
import { errorForModel } from './model-text.ts';

test('an error before anything runs is reported once, and not retried for ever', async () => {
  await using semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: () => undefined });
  const guard = createGuard(semel, 'mail', 'write-non-idempotent', { isControlFlow: () => false });
  const identity = () => {
    throw new Error('these messages cannot be read');
  };
  await expect(guard?.call({ args: {}, identity }, () => 1)).rejects.toThrow('these messages cannot be read');
});

const long = `call_1__thought__${'Ab3'.repeat(3_000)}`;

test.each(['', ' ', long, `call_\ud800`])(
  'a call id that only its provider could correct stops nothing: %.20j',
  async (toolCallId) => {
    await using semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: () => undefined });
    const guard = createGuard(semel, 'mail', 'write-non-idempotent');
    let sent = 0;
    const call = () =>
      semel.within({ conversation: 'c', turn: '1' }, () =>
        guard?.call({ args: {}, toolCallId }, () => ++sent),
      );
    expect([await call(), await call()]).toMatchObject([
      { ok: true, value: 1 },
      { ok: true, value: 1 },
    ]);
  },
);

test('long call ids that differ only at their end tell calls apart', async () => {
  await using semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: () => undefined });
  const guard = createGuard(semel, 'mail', { effect: 'write-non-idempotent', repeat: 'by-call' });
  let sent = 0;
  for (const toolCallId of [`${long}a`, `${long}b`, `${long}a`])
    await semel.within({ conversation: 'c', turn: '1' }, () =>
      guard?.call({ args: {}, toolCallId }, () => ++sent),
    );
  expect(sent).toBe(2);
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
    /its description mentions an idempotency key to the model/,
  ],
])(
  'a key that the model would supply is refused when the tool is made: in a schema %s',
  (_where, schema, words) => {
    const semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: () => undefined });
    expect(() => createGuard(semel, 'mail', 'write-non-idempotent', { schema })).toThrow(words);
  },
);

test('fields that only sound similar are not', () => {
  const semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: () => undefined });
  const schema = z.object({
    key: z.string(),
    apiKeyId: z.string(),
    again: z.boolean().describe('idempotent'),
  });
  expect(createGuard(semel, 'mail', 'write-non-idempotent', { schema })).toBeDefined();
});

interface Said {
  readonly role: 'user' | 'model';
  readonly text?: string;
  readonly calls?: readonly string[];
}

/** As an adapter guesses at a call of this id, after all this was said. */
const guessAt = (messages: readonly Said[], first?: string) => () =>
  guessIdentity(messages, {
    isUser: ({ role }: Said) => role === 'user',
    callsIn: ({ calls = [] }: Said) => calls,
    first,
  });
const guess = (text: string) => guessAt([{ role: 'user', text }]);

function shopOf() {
  const warnings: string[] = [];
  const semel = createSemel({
    store: memoryStore(),
    namespace: 'shop',
    onWarning: (message) => warnings.push(message),
  });
  return { semel, warnings };
}

test('a conversation is not guessed: strangers would share what is once per conversation', async () => {
  await using semel = shopOf().semel;
  const perConversation = { effect: 'write-non-idempotent', per: 'conversation' } as const;
  const guard = createGuard(semel, 'mail', perConversation);
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
  const guard = createGuard(semel, 'mail', 'write-non-idempotent');
  const call = (identity: () => Guess) =>
    semel.within({ turn: 'm-1' }, () => guard?.call({ args: { to: 'ann' }, identity }, () => 'sent'));
  expect(await call(guess('Tell Ann.'))).toMatchObject({
    error: { message: expect.stringMatching(/a conversation/) },
  });
  expect(await call(() => ({ conversation: 'thread-7', turn: 'm-9' }))).toMatchObject({ ok: true });
  const [record] = (await semel.records.list()).items;
  expect(record).toMatchObject({ conversation: 'thread-7', turn: 'm-1' });
});

const opening: Said = { role: 'user', text: 'Send me the report.' };
const ids = ['call_4fK29dQm81zLs0aB', 'call_9xW03bTn57vRp2cD', 'call_1gH68jYk42uEo5mF'] as const;

/** What a call gets, after another one of the same words. */
async function second(one: () => Guess, other: () => Guess, callers: readonly string[] = []) {
  await using semel = shopOf().semel;
  const guard = createGuard(semel, 'mail', 'write-non-idempotent');
  let sent = 0;
  const answers = [];
  for (const [n, identity] of [one, other].entries()) {
    const call = () => guard?.call({ args: { to: 'me' }, identity }, () => `for ${++sent}`);
    answers.push(await (callers[n] === undefined ? call() : semel.within({ caller: callers[n] }, call)));
  }
  return { answer: answers[1], sent };
}

const held = { answer: { ok: false, error: { code: 'NO_IDENTITY', retriable: false } }, sent: 1 };
const replayed = { answer: { ok: true, value: 'for 1' }, sent: 1 };

test("the same words at the start of two runs: the second is held back, and does not see the first one's answer", async () => {
  expect(await second(guessAt([opening], ids[0]), guessAt([opening], ids[1]))).toMatchObject(held);
  expect(await second(guessAt([opening]), guessAt([opening]))).toMatchObject(held);
});

test('a later step of the same run is known by the call that its model made first', async () => {
  const later = [opening, { role: 'model', calls: [ids[0], ids[1]] }] as const;
  expect(await second(guessAt([opening], ids[0]), guessAt(later, ids[2]))).toMatchObject(replayed);
  expect(await second(guessAt([opening], ids[2]), guessAt(later, ids[1]))).toMatchObject(held);
});

test('ids that restart in every run do not distinguish runs', async () => {
  const later = [opening, { role: 'model', calls: ['call_0'] }] as const;
  expect(await second(guessAt([opening], 'call_0'), guessAt([opening], 'call_0'))).toMatchObject(held);
  expect(await second(guessAt([opening], 'call_0'), guessAt(later, 'call_1'))).toMatchObject(held);
});

test('if the program names the callers, equal words from two callers are two intents, from one caller one', async () => {
  const [one, other] = [guessAt([opening], ids[0]), guessAt([opening], ids[1])];
  expect(await second(one, other, ['ann', 'bob'])).toMatchObject({ answer: { value: 'for 2' }, sent: 2 });
  expect(await second(one, other, ['ann', 'ann'])).toMatchObject(replayed);
});

test('a program error is also reported to the program, once, and the model is not asked to fix its args', async () => {
  const { semel, warnings } = shopOf();
  await using _ = semel;
  const guard = createGuard(semel, 'mail', 'write-non-idempotent');
  const call = () => guard?.call({ args: { to: 'ann' } }, () => 'sent');
  const hopeless = {
    ok: false,
    error: { correctiveAction: expect.stringMatching(/repeating it does not help/) },
  };
  expect([await call(), await call()]).toMatchObject([hopeless, hopeless]);
  expect(await semel.within({ conversation: '', turn: 'm-1' }, call)).toMatchObject(hopeless);
  expect(warnings).toEqual([
    expect.stringMatching(/^mail: .* needs a conversation.*semel\.within\(\{ conversation, turn \}/),
    expect.stringMatching(/^mail: `conversation` is empty/),
  ]);
});

test('the ref that a model gets decides the doubt, even after the process has died', () => {
  const seen = new SemelError('IN_DOUBT', 'It may have landed.', { evidence: { record: 'abcd@1.xyz' } });
  const receipt = { id: 'abcd', fence: 1 } as Receipt;
  expect(errorForModel(seen, receipt)).toMatchObject({
    evidence: { ref: 'abcd@1.xyz' },
    correctiveAction: expect.stringContaining('abcd@1.xyz'),
  });
});

test('an error that is its own cause is reported like any other', async () => {
  await using semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: () => undefined });
  const guard = createGuard(semel, 'mail', { effect: 'write-non-idempotent', per: 'ever' });
  const endless = new Error('the mail server said nothing');
  endless.cause = new Error('it was the other', { cause: endless });
  const answer = await guard?.call({ args: {} }, () => {
    throw endless;
  });
  expect(answer).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
});
