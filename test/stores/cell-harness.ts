// What the store contract asks of a ledger of cells.

import type { StoreHarness } from '../../src/testing/store-contract/index.ts';
import type { CellLedger } from './cell-ledger.ts';
import { movableTime } from './movable-time.ts';

export function cellHarness(ledger: CellLedger): StoreHarness {
  const { time, advance, unsteady } = movableTime();
  const local = movableTime();
  // The worker's own clocks stay right when the service's goes wrong.
  const options = { clock: local.clock };
  const told = () => ledger.setClock(time().wall);
  return {
    clock: 'movable',
    async create() {
      told();
      await ledger.empty();
      return ledger.open(options);
    },
    second: () => ledger.open(options),
    advance(ms) {
      advance(ms);
      local.advance(ms);
      told();
    },
    unsteady(on, offMs) {
      unsteady(on, offMs);
      told();
    },
  };
}
