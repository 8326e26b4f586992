// One call of one tool, ready to be claimed: what was asked, by whom, under which key.

import type { Classified } from '../core/classify.ts';
import type { Contract } from '../core/contract.ts';
import type { SemelError } from '../core/errors.ts';
import type { AttemptContext } from './context.ts';
import type { Verification } from './verification.ts';

/** What the runner needs of a tool besides its contract. */
export interface Tool {
  readonly contract: Contract;
  readonly run: (args: never, ctx: AttemptContext) => unknown;
  readonly prepare?: ((args: never, ctx: AttemptContext) => unknown) | undefined;
  readonly verify?: ((args: never, ctx: VerifyContext) => Verification | Promise<Verification>) | undefined;
  readonly classify?: ((error: unknown) => Classified | undefined) | undefined;
  readonly onReplay?: ((replayed: ReplayContext) => unknown) | undefined;
}

/** What `verify` gets to find out whether it landed. */
export interface VerifyContext {
  /** The key that the attempts in doubt sent to the provider. */
  readonly key: string;
  readonly keyFor: (part: string) => string;
  readonly remoteRef: string | undefined;
  readonly firstDispatchedAt: Date | undefined;
  readonly lastDispatchedAt: Date | undefined;
  readonly attempts: number;
  readonly signal: AbortSignal;
}

/** What `onReplay` gets to fetch the live value. */
export interface ReplayContext {
  readonly args: never;
  readonly remoteRef: string | undefined;
  readonly settledAt: Date;
  readonly stored: unknown;
}

/** Who asks. */
export interface Identity {
  readonly conversation?: string | undefined;
  readonly turn?: string | undefined;
  readonly run?: string | undefined;
  readonly toolCallId?: string | undefined;
  /** An adapter could only guess the turn. */
  readonly weak?: boolean | undefined;
  /** A digest of whose call it is. */
  readonly caller?: string | undefined;
}

export interface Call {
  readonly tool: Tool;
  readonly namespace: string;
  /** The options that lead the command to this ledger; undefined where it cannot reach it. */
  readonly address: () => string | undefined;
  readonly args: unknown;
  readonly key: string;
  readonly olderKeys: readonly string[];
  readonly fingerprint: string | null;
  /** As in `identity`: a record of another caller does not answer. */
  readonly caller: string | null;
  /** The contract lets a record of any caller answer. */
  readonly share: boolean;
  /** Canonical JSON of the identity args. */
  readonly intent: string;
  /** Made when it is asked for: a replay from memory needs neither. */
  readonly content: () => string | null;
  /** The args as they are stored, or null where they may not or cannot be. */
  readonly storedArgs: () => string | null;
  /** Only this generation of the record: for whoever goes on with what they looked at. */
  readonly generation: number | null;
  readonly periodEndsAt: number | null;
  readonly identity: Identity;
  /** The same call as one of another turn; absent where its turn stands. */
  readonly inTurn?: (turn: string) => Call;
  /** Why it is done once more on purpose. */
  readonly again: string | null;
  readonly notAfter: number | null;
  readonly signal: AbortSignal | undefined;
  /** Why it would be refused if it were not only observed: it has no key then. */
  readonly problem?: SemelError;
  /** Only `verify` may settle a doubt: nothing is to be run. */
  readonly asksOnly?: boolean;
}
