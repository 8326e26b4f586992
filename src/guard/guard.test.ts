import { expect, test } from 'vitest';
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
