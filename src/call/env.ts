// What every part of the path of a call needs.

import type { Clock, Random } from '../core/clock.ts';
import type { Ledger, Timers } from '../ledger/index.ts';
import type { Work } from './work.ts';

export interface Env extends Pick<Work, 'closing' | 'inBackground'> {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  /** Names this process in its claims, as evidence for people. */
  readonly owner: string;
  readonly maxResultBytes: number;
  /** Repeatable classes may run while the store is away. */
  readonly mayRunUnguarded: boolean;
  /** Warns once per message. */
  readonly warn: (message: string) => void;
}
