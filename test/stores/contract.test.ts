// Every store keeps the same contract.
import { describe, test } from 'vitest';
import { memoryStore } from '../../src/store/index.ts';
import { type StoreHarness, storeContract, whySkipped } from '../../src/testing/store-contract/index.ts';
import { movableTime } from './movable-time.ts';

const stores: Record<string, () => StoreHarness> = {
  memory() {
    const { time, advance, unsteady, reboot } = movableTime();
    let store = memoryStore({ time });
    return {
      clock: 'movable',
      async create() {
        store = memoryStore({ time });
        return store;
      },
      second: async () => store,
      advance,
      unsteady,
      reboot,
    };
  },
};

for (const [name, harnessOf] of Object.entries(stores)) {
  describe(`the ${name} store keeps the contract`, () => {
    for (const contractCase of storeContract()) {
      test(contractCase.name, async (context) => {
        const harness = harnessOf();
        const reason = whySkipped(contractCase, harness);
        if (reason !== undefined) context.skip(reason);
        await contractCase.run(harness);
      });
    }
  });
}
