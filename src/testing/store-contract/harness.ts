// What a store's author must provide to run the contract: a fresh store per case, a second handle on the same data, and
// control of its clock. What a harness cannot do is skipped with a reason, never passed in silence.

import type { Store } from '../../store/store.ts';

export interface StoreHarness {
  /** A fresh, empty store. The contract closes it. */
  create(): Promise<Store>;
  /** Another handle on the data of the store that was created last, as another process would have. */
  second?(): Promise<Store>;
  /** `real`: nobody can move this store's clock, and the cases that need time to pass are skipped. */
  readonly clock: 'movable' | 'real';
  /** Moves the store's wall clock and its monotonic clock by as much. */
  advance?(ms: number): void | Promise<void>;
  /**
   * From now on, and until it is switched off, the wall clock is wrong by `offMs` and the store notices: it
   * disagrees with the monotonic one.
   */
  unsteady?(on: boolean, offMs: number): void | Promise<void>;
  /** Reboots the machine: every process is gone, and the monotonic clock restarts from another value. */
  reboot?(): void | Promise<void>;
}

/** What a case cannot do without. */
export type Need = 'time' | 'unsteady' | 'reboot';

export interface ContractCase {
  /** A sentence of behaviour. */
  readonly name: string;
  readonly needs: readonly Need[];
  /** Rejects where the store breaks the contract; resolves with a printed reason where it cannot be asked. */
  run(harness: StoreHarness): Promise<void>;
}

/** Why this harness cannot ask this case, for test runners that can mark a test as skipped. */
export function whySkipped({ needs }: ContractCase, harness: StoreHarness): string | undefined {
  if (needs.includes('time') && (harness.clock === 'real' || harness.advance === undefined))
    return "this store's clock cannot be moved";
  if (needs.includes('unsteady') && harness.unsteady === undefined)
    return "this store's clock cannot be made to disagree with itself";
  if (needs.includes('reboot') && harness.reboot === undefined)
    return 'the machine of this store cannot be made to start anew';
  return undefined;
}
