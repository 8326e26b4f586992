// What every part of the path of a call needs.

import type { Clock, Random } from '../core/clock.ts';
import type { Ledger, Timers } from '../ledger/index.ts';
import type { Life } from '../store/process-life.ts';
import type { RunStep } from './steps.ts';
import type { Work } from './work.ts';

export interface Env extends Pick<Work, 'closing' | 'inBackground' | 'onceInBackground'>, Life {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly maxResultBytes: number;
  /** Repeatable classes may run while the store is away. */
  readonly mayRunUnguarded: boolean;
  /** Makes the call of a step. Absent where steps would need another ledger. */
  readonly runStep?: RunStep | undefined;
  /** Warns once per message. */
  readonly warn: (message: string) => void;
}
