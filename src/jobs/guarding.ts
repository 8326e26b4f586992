// What every guarded command is told, whatever it is guarded for.

import type { Semel } from '../semel/index.ts';
import type { StoreFacts } from '../store/store.ts';
import type { IfBusy } from './claim.ts';

export interface Guarding {
  readonly semel: Semel;
  readonly facts: StoreFacts;
  /** Names the pipe that tells whether this guard and its command live. */
  readonly mark: string;
  readonly isNamespaceChosen: boolean;
  readonly command: readonly string[];
  readonly ifBusy: IfBusy;
  readonly waitMs: number;
  /** The command that is asked whether it landed. */
  readonly verify: string | undefined;
  readonly verifyAfterMs: number;
  readonly leaseMs: number;
  readonly timeoutMs: number;
  /** From TERM to KILL; and how long what the command left behind is waited for. */
  readonly graceMs: number;
  readonly say: (message: string) => void;
}
