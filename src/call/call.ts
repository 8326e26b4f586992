// One call of one tool, ready to be claimed: its contract, args, identity and key.

import type { Classified } from '../core/contract/classify.ts';
import type { Contract } from '../core/contract/contract.ts';
import { isPartOf } from '../core/contract/fields.ts';
import type { Seen } from '../core/contract/one-request.ts';
import type { SemelError } from '../core/errors.ts';
import { findDrift } from '../core/key/identity.ts';
import type { PeriodPart } from '../core/key/key.ts';
import type { Wording } from '../core/key/wording.ts';
import type { Verification, VerifyContext } from '../core/verification.ts';
import type { KeyUse } from './key-use.ts';
import type { AttemptContext } from './sending/context.ts';

/** What the pipeline needs of a tool. */
export interface Tool {
  readonly contract: Contract;
  readonly run: (args: never, ctx: AttemptContext) => unknown;
  readonly prepare?: ((args: never, ctx: AttemptContext) => unknown) | undefined;
  readonly verify?: ((args: never, ctx: VerifyContext) => Verification | Promise<Verification>) | undefined;
  readonly classify?: ((error: unknown, seen: Seen) => Classified | undefined) | undefined;
  readonly onReplay?: ((replayed: ReplayContext) => unknown) | undefined;
  /** Made by `once`, which has options instead of a contract, and no `dispatch`. */
  readonly isOneLiner?: true;
  /** What was seen of its use of the provider's key. */
  readonly keyUse?: KeyUse;
}

/** Helps `onReplay` to fetch the live value. */
export interface ReplayContext {
  readonly args: never;
  readonly remoteRef: string | undefined;
  readonly settledAt: Date;
  readonly stored: unknown;
}

/** Who makes the call. */
export interface Identity {
  readonly conversation?: string | undefined;
  readonly turn?: string | undefined;
  readonly run?: string | undefined;
  readonly toolCallId?: string | undefined;
  /** An adapter could only guess the turn. */
  readonly weak?: boolean | undefined;
  /** Digest of the caller's credentials: a record of another caller does not answer. */
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
  /** Why it is repeated on purpose. */
  readonly again: string | null;
  readonly notAfter: number | null;
  readonly signal: AbortSignal | undefined;
  /** Only this generation of the record may be claimed: the one that was read before. */
  readonly generation?: number | null;
  /** Derived on demand if absent. */
  readonly key?: string;
  readonly olderKeys?: readonly string[];
  /** A relay makes it, for an intent that was staged then. */
  readonly stagedAt?: number;
  readonly period?: PeriodPart | undefined;
  /** Identifies the call among those of the same maker as exactly as its key, without a digest. */
  readonly exact?: string | undefined;
  readonly inTurn?: ((turn: string) => Call) | undefined;
  readonly problem?: SemelError;
}

/** Derives on demand what few calls need: a replay from memory needs none of it. One per contract. */
export interface CallMaker {
  readonly deriveKey: (call: Call) => string;
  readonly content: (call: Pick<Call, 'key' | 'args'>) => string | null;
  readonly storedArgs: (call: Call) => string | null;
  readonly address: () => string | undefined;
  readonly wording?: Wording;
}

/** A class, since every call creates one: lazy members cost nothing until they are read. */
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
  readonly stagedAt: number | null;
  readonly period: PeriodPart | undefined;
  readonly maker: CallMaker;
  readonly exact: string | undefined;
  /** The same call in another turn; absent if its turn is fixed. */
  readonly inTurn: ((turn: string) => Call) | undefined;
  /** Why it would be refused in enforce mode: it has no key then. */
  readonly problem: SemelError | undefined;
  /** Only `verify` may settle a doubt: nothing may run. */
  readonly verifyOnly: boolean;
  // Private, so that a spread, which loses the methods, is not assignable to Call: use `with`.
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
    this.stagedAt = parts.stagedAt ?? null;
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

  get caller(): string | null {
    return this.identity.caller ?? null;
  }

  /** Records of other callers may answer too. */
  get share(): boolean {
    return this.tool.contract.share;
  }

  content(): string | null {
    if (this.knownContent === undefined) this.knownContent = this.maker.content(this);
    return this.knownContent;
  }

  /** The content fields in which it differs from a record that it must not differ from. */
  findConflict({
    key,
    content,
  }: {
    readonly key: string;
    readonly content: string | null;
  }): readonly string[] {
    const { strict } = this.tool.contract;
    if (strict.length === 0) return strict;
    // Digests are salted with the key of their record, which may be one of an earlier form.
    const isOwn = key === this.key;
    const now = isOwn ? this.content() : this.maker.content({ key, args: this.args });
    const drift = findDrift(content, now);
    // A field is compared in parts where some of them are identity or volatile.
    const differs = (path: string) => drift.some((each) => isPartOf(each, path));
    return strict.filter((path) => differs(path) && (isOwn || hasField(content, path)));
  }

  /** The args as they are stored; null if they may not or cannot be. */
  storedArgs(): string | null {
    if (this.knownArgs === undefined) this.knownArgs = this.maker.storedArgs(this);
    return this.knownArgs;
  }

  /** The command-line options that select this ledger; undefined if the command cannot reach it. */
  address(): string | undefined {
    return this.maker.address();
  }

  /** A copy of the call under the same key, with changes. */
  with(changes: Changes): Call {
    const copy: Call = Object.create(Call.prototype);
    return Object.assign(copy, this, { knownKey: this.key }, changes);
  }

  /** Only its key and identity: stored in a namespace of its own, it answers no call. */
  asMark(tool: Tool, namespace: string, identity: Identity): Call {
    const { fingerprint, periodEndsAt, again, key, olderKeys, intent, args } = this;
    const parts = { fingerprint, periodEndsAt, again, key, olderKeys, intent, args };
    return new Call(
      { ...parts, tool, namespace, identity, notAfter: null, signal: undefined },
      unstoredMaker,
    );
  }
}

/** The contract of an earlier form may not have had the field. */
function hasField(content: string | null, path: string): boolean {
  return content !== null && Object.keys(JSON.parse(content) as object).some((each) => isPartOf(each, path));
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
