// Every store keeps the same contract.
import { describe, expect, test, vi } from 'vitest';
import { systemRandom } from '../../src/core/clock.ts';
import { memoryStore } from '../../src/store/index.ts';
import { remoteStore } from '../../src/store/remote/remote-store.ts';
import { type StoreHarness, storeContract, whySkipped } from '../../src/testing/store-contract/index.ts';
import { movableTime } from './movable-time.ts';
import { type RemoteMemoryBackend, remoteMemoryBackend } from './remote-memory-backend.ts';

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
  far() {
    const { time, advance, unsteady } = movableTime();
    // The worker's own clocks stay right when the store's goes wrong.
    const local = movableTime();
    let backend: RemoteMemoryBackend;
    const opened = async () => {
      const store = remoteStore(backend, { clock: local.clock, random: systemRandom });
      await store.open();
      return store;
    };
    return {
      clock: 'movable',
      create() {
        backend = remoteMemoryBackend(() => time().wall);
        return opened();
      },
      second: opened,
      advance(ms) {
        advance(ms);
        local.advance(ms);
      },
      unsteady,
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

describe('a store whose clock cannot be moved', () => {
  const harness: StoreHarness = { clock: 'real', create: async () => memoryStore() };
  const [skipped, asked] = [true, false].map((isSkipped) =>
    storeContract().filter((contractCase) => (whySkipped(contractCase, harness) !== undefined) === isSkipped),
  );

  test('is asked everything that needs no time', async () => {
    expect(asked!.length).toBeGreaterThan(60);
    for (const contractCase of asked!) await contractCase.run(harness);
  });

  test('passes no other case in silence', async () => {
    const printed = vi.spyOn(console, 'log').mockImplementation(() => undefined);
    for (const contractCase of skipped!) await contractCase.run(harness);
    expect(printed).toHaveBeenCalledTimes(skipped!.length);
    expect(printed.mock.calls[0]![0]).toMatch(/^skipped: .*: this store's clock cannot be moved$/);
    printed.mockRestore();
  });
});

test('no two cases of the contract have the same name', () => {
  const names = storeContract().map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});
