// Whether the server's settings still keep what it confirms. They can be changed while a ledger is open, so they are read
// again now and then, beside the calls; from then on new records are refused until the settings are right again.

import type { Clock } from '../../core/clock.ts';
import { isSemelError, type SemelError } from '../../core/errors.ts';
import type { Swap } from '../../store/remote/backend.ts';

export interface SettingsWatchOptions {
  /** Throws STORE_UNSAFE where they are too weak. */
  readonly check: () => Promise<unknown>;
  readonly clock: Clock;
}

export interface SettingsWatch {
  /** Throws the refusal where one of these would make a new record. */
  admit(swaps: readonly Swap[]): void;
  refusal(): SemelError | undefined;
}

const everyMs = 10_000;
/** While calls are refused. */
const soonMs = 500;

export function settingsWatch({ check, clock }: SettingsWatchOptions): SettingsWatch {
  let refusal: SemelError | undefined;
  let checkedAt = clock.mono();
  let isChecking = false;

  return {
    admit(swaps) {
      const sinceMs = clock.mono() - checkedAt;
      if (!isChecking && sinceMs >= (refusal === undefined ? everyMs : soonMs)) void checkAgain();
      if (refusal !== undefined && swaps.some(makesRecord)) throw refusal;
    },
    refusal: () => refusal,
  };

  async function checkAgain(): Promise<void> {
    isChecking = true;
    try {
      await check();
      refusal = undefined;
    } catch (error) {
      // A server that does not answer says nothing about its settings, and refuses calls by itself.
      if (isSemelError(error) && error.code === 'STORE_UNSAFE') refusal = error;
    } finally {
      checkedAt = clock.mono();
      isChecking = false;
    }
  }
}

function makesRecord({ write }: Swap): boolean {
  return write !== undefined && write.before === undefined && write.row !== undefined;
}
