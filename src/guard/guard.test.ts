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
