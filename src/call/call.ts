// One call of one tool, ready to be claimed: what was asked, by whom, under which key.

import type { Classified } from '../core/contract/classify.ts';
import type { Contract } from '../core/contract/contract.ts';
import type { SemelError } from '../core/errors.ts';
import type { PeriodPart } from '../core/key/key.ts';
import type { Wording } from '../core/key/wording.ts';
import type { AttemptContext } from './sending/context.ts';
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

/** What a call is made of. */
export interface CallParts {
  readonly tool: Tool;
  readonly namespace: string;
  readonly args: unknown;
  readonly identity: Identity;
  /** Canonical JSON of the identity args. */
  readonly intent: string;
  readonly fingerprint: string | null;
  readonly periodEndsAt: number | null;
  /** Why it is done once more on purpose. */
  readonly again: string | null;
  readonly notAfter: number | null;
  readonly signal: AbortSignal | undefined;
  /** Only this generation of the record: for whoever goes on with what they looked at. */
  readonly generation?: number | null;
  /** Left out: derived when it is asked for. */
  readonly key?: string;
  readonly olderKeys?: readonly string[];
  readonly period?: PeriodPart | undefined;
  /** Names the call among those of the same maker as exactly as its key does, without a digest. */
  readonly exact?: string | undefined;
  readonly inTurn?: ((turn: string) => Call) | undefined;
  readonly problem?: SemelError;
}

/** Makes what few calls need: a replay from memory asks for none of it. One per contract. */
export interface CallMaker {
  readonly deriveKey: (call: Call) => string;
  readonly content: (call: Call) => string | null;
  readonly storedArgs: (call: Call) => string | null;
  readonly address: () => string | undefined;
  readonly wording?: Wording;
}

/** A class, since every call is one: what is rarely needed costs nothing until it is asked for. */
export class Call {
  readonly tool: Tool;
  readonly namespace: string;
  readonly args: unknown;
  readonly identity: Identity;
  readonly intent: string;
  readonly fingerprint: string | null;
  readonly periodEndsAt: number | null;
  readonly again: string | null;
  readonly notAfter: number | null;
  readonly signal: AbortSignal | undefined;
  readonly generation: number | null;
  readonly olderKeys: readonly string[];
  readonly period: PeriodPart | undefined;
  readonly maker: CallMaker;
  readonly exact: string | undefined;
  /** The same call as one of another turn; absent where its turn stands. */
  readonly inTurn: ((turn: string) => Call) | undefined;
  /** Why it would be refused if it were not only observed: it has no key then. */
  readonly problem: SemelError | undefined;
  /** Only `verify` may settle a doubt: nothing is to be run. */
  readonly verifyOnly: boolean;
  // Private, so that a spread, which would lose them, does not pass for a call: use `with`.
  private knownKey: string | undefined;
  private knownContent: string | null | undefined;
  private knownArgs: string | null | undefined;

  constructor(parts: CallParts, maker: CallMaker) {
    this.tool = parts.tool;
    this.namespace = parts.namespace;
    this.args = parts.args;
    this.identity = parts.identity;
    this.intent = parts.intent;
    this.fingerprint = parts.fingerprint;
    this.periodEndsAt = parts.periodEndsAt;
    this.again = parts.again;
    this.notAfter = parts.notAfter;
    this.signal = parts.signal;
    this.generation = parts.generation ?? null;
    this.olderKeys = parts.olderKeys ?? noKeys;
    this.period = parts.period;
    this.maker = maker;
    this.exact = parts.exact;
    this.inTurn = parts.inTurn;
    this.problem = parts.problem;
    this.verifyOnly = false;
    this.knownKey = parts.key;
    this.knownContent = undefined;
    this.knownArgs = undefined;
  }

  get key(): string {
    this.knownKey ??= this.maker.deriveKey(this);
    return this.knownKey;
  }

  /** As in `identity`: a record of another caller does not answer. */
  get caller(): string | null {
    return this.identity.caller ?? null;
  }

  /** The contract lets a record of any caller answer. */
  get share(): boolean {
    return this.tool.contract.share;
  }

  content(): string | null {
    if (this.knownContent === undefined) this.knownContent = this.maker.content(this);
    return this.knownContent;
  }

  /** The args as they are stored, or null where they may not or cannot be. */
  storedArgs(): string | null {
    if (this.knownArgs === undefined) this.knownArgs = this.maker.storedArgs(this);
    return this.knownArgs;
  }

  /** The options that lead the command to this ledger; undefined where it cannot reach it. */
  address(): string | undefined {
    return this.maker.address();
  }

  /** The same call under the same key, with some of it changed. */
  with(changes: Changes): Call {
    const copy: Call = Object.create(Call.prototype);
    return Object.assign(copy, this, { knownKey: this.key }, changes);
  }

  /** Only its key and who asks: kept in a namespace of its own, it answers no call. */
  asMark(tool: Tool, namespace: string, identity: Identity): Call {
    const { fingerprint, periodEndsAt, again, key, olderKeys, intent, args } = this;
    const parts = { fingerprint, periodEndsAt, again, key, olderKeys, intent, args };
    return new Call(
      { ...parts, tool, namespace, identity, notAfter: null, signal: undefined },
      unstoredMaker,
    );
  }
}

type Changes = Partial<Pick<Call, 'tool' | 'identity' | 'notAfter' | 'signal' | 'verifyOnly' | 'inTurn'>>;

const noKeys: readonly string[] = [];

/** For calls that are never stored. */
export const unstoredMaker: CallMaker = {
  deriveKey: () => '',
  content: () => null,
  storedArgs: () => null,
  address: () => undefined,
};
