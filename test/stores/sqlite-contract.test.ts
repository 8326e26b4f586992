// The SQLite store keeps the contract of all stores, through node:sqlite and through a better-sqlite3 handle.
import Database from 'better-sqlite3';
import { describe, test } from 'vitest';
import { type SqliteStore, type SqliteStoreOptions, sqliteStore } from '../../src/stores/sqlite/index.ts';
import { type StoreHarness, storeContract, whySkipped } from '../../src/testing/store-contract/index.ts';
import { movableTime } from './movable-time.ts';
import { newPathInMemory } from './sqlite-folder.ts';

type Where = (path: string) => Pick<SqliteStoreOptions, 'path' | 'database'>;

const drivers: Record<string, Where> = {
  'node:sqlite': (path) => ({ path }),
  'better-sqlite3': (path) => ({ database: new Database(path) }),
};

function harnessOf(where: Where): StoreHarness {
  const { clock, time, advance, unsteady, reboot } = movableTime();
  let path = '';
  async function opened(): Promise<SqliteStore> {
    const store = sqliteStore({ ...where(path), clock, machine: { bootId: () => time().boot } });
    await store.open();
    return store;
  }
  return {
    clock: 'movable',
    create() {
      path = newPathInMemory();
      return opened();
    },
    second: opened,
    advance,
    unsteady,
    reboot,
  };
}

for (const [driver, where] of Object.entries(drivers)) {
  describe(`the SQLite store keeps the contract through ${driver}`, () => {
    for (const contractCase of storeContract()) {
      test(contractCase.name, async (context) => {
        const harness = harnessOf(where);
        const reason = whySkipped(contractCase, harness);
        if (reason !== undefined) context.skip(reason);
        await contractCase.run(harness);
      });
    }
  });
}
