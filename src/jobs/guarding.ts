// What every guarded command has in common, whatever it is guarded for: what it is told, how it waits, who is asked
// whether it landed.

import type { VerifyContext } from '../call/index.ts';
import { systemClock } from '../core/clock.ts';
import type { Semel } from '../semel/index.ts';
import type { StoreFacts } from '../store/store.ts';
import type { Asked, IfBusy } from './claim.ts';
import { commonEnv } from './context.ts';
import { type Holder, waitingFor } from './life/holder.ts';
import { askVerifier } from './verifier.ts';

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

export function claimingOf({ semel, ifBusy, waitMs, say }: Guarding, folder: string) {
  return { semel, folder, ifBusy, waitMs, onWait: (holder: Holder) => say(waitingFor(holder)) };
}

/** The part of a contract that asks the command in `verify`, where there is one. */
export function verifying(
  { semel, facts, isNamespaceChosen, verify, verifyAfterMs }: Guarding,
  env: () => Readonly<Record<string, string>>,
  asked: Asked,
) {
  if (verify === undefined) return {};
  return {
    verifyAfter: verifyAfterMs,
    verify: (_: unknown, ctx: VerifyContext) => {
      asked.since ??= systemClock.mono();
      const attempt = { attempt: ctx.attempts, fence: '', key: ctx.key };
      return askVerifier(
        verify,
        { ...env(), ...commonEnv(semel, facts, attempt, isNamespaceChosen) },
        ctx.signal,
      );
    },
  };
}
