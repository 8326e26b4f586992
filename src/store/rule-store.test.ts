import { expect, test } from 'vitest';
import { type Backend, ruleStore } from './rule-store.ts';
import type { ClaimRequest } from './store.ts';

test('what a claim stores is made before the lock is taken', async () => {
  let isLocked = false;
  const made: boolean[] = [];
  const time = { wall: 1, mono: 1, boot: 'b', steady: true };
  const backend = {
    open: async () => undefined,
    peek: () => ({ row: undefined, time }),
    async transact(_urgency: string, work: (tx: unknown) => unknown) {
      isLocked = true;
      return work({ time, floor: 0, get: () => undefined, put: () => undefined, note: () => undefined });
    },
  } as unknown as Backend;
  const request = {
    namespace: 'n',
    key: 'k/-/1',
    olderKeys: [],
    token: 't',
    generation: null,
    get args() {
      made.push(isLocked);
      return '1';
    },
    get content() {
      made.push(isLocked);
      return null;
    },
  } as unknown as ClaimRequest;
  expect(await ruleStore(backend).claim(request)).toMatchObject({ won: true, record: { args: '1' } });
  expect(made).toEqual([false, false]);
});
