// What every part of the path of a call needs.

import type { Clock, Random } from '../core/clock.ts';
import type { Ledger, Timers } from '../ledger/index.ts';

export interface Env {
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
  /** Aborts when calls that still run or wait must end. */
  readonly closing: AbortSignal;
  /** Settling that goes on after the caller was answered. */
  readonly inBackground: (settling: Promise<unknown>) => void;
}
