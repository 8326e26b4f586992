import { expect, test } from 'vitest';
import { SemelError } from '../core/errors.ts';
import type { Receipt } from '../core/receipt.ts';
import { createSemel } from '../semel/index.ts';
import { memoryStore } from '../store/memory.ts';
import { guardOf } from './guard.ts';
import { toldError } from './told.ts';

test('what goes wrong before anything is run is told once, and not asked for ever', async () => {
  await using semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: () => undefined });
  const guard = guardOf(semel, 'mail', 'write-non-idempotent', { passes: () => false });
  const identity = () => {
    throw new Error('these messages cannot be read');
  };
  await expect(guard?.call({ args: {}, identity }, () => 1)).rejects.toThrow('these messages cannot be read');
});

test('the ref that a model is told decides the doubt as it is, also where the process died', () => {
  const seen = new SemelError('IN_DOUBT', 'It may have landed.', { evidence: { record: 'abcd@1.xyz' } });
  const receipt = { id: 'abcd', fence: 1 } as Receipt;
  expect(toldError(seen, receipt)).toMatchObject({
    evidence: { ref: 'abcd@1.xyz' },
    correctiveAction: expect.stringContaining('abcd@1.xyz'),
  });
});
