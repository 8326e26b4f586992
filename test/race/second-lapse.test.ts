// A waiter that lost the race for a doubt, and whose winner died as well. Found by the kill storm.
import { expect, test } from 'vitest';
import { createSemel } from '../../src/index.ts';
import { type ClaimRequest, memoryStore } from '../../src/store/index.ts';
import { hookedStore } from '../processes/hooked-store.ts';

test('what may be run again is run again, however many holders died before', async () => {
  const store = memoryStore();
  let rivals = 0;
  // Somebody else is a moment faster, at the first claim and at the first one for a re-run, and dies each time.
  const contested = hookedStore(store, {
    before: async (method, request) => {
      const claim = request as ClaimRequest;
      if (method !== 'claim' || claim.for !== (rivals === 0 ? 'execute' : 'rerun') || rivals === 2) return;
      rivals += 1;
      await store.claim({ ...claim, token: `rival ${rivals}`, owner: `rival ${rivals}` });
    },
  });
  await using semel = createSemel({ store: contested, namespace: 'race' });
  const write = semel.tool({
    name: 'row.write',
    effect: 'write-idempotent',
    lease: '40ms',
    run: ({ row }: { row: number }) => `wrote ${row}`,
  });
  const result = await write.try({ row: 1 });
  expect(rivals).toBe(2);
  expect(result).toMatchObject({ ok: true, value: 'wrote 1', receipt: { executed: true } });
});
