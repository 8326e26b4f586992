// One claim under one token: why it is made, what it asks for, and how it is released if its caller does not wait for the
// answer.

import { onAbort } from '../core/abort.ts';
import { Moment } from '../core/clock.ts';
import { recordVersion } from '../core/contract/version.ts';
import { isSemelError, type SemelError } from '../core/errors.ts';
import { findDrift } from '../core/key/identity.ts';
import { type Deferred, deferred } from '../core/older-node.ts';
import type { LostAnswer, Requester } from '../ledger/index.ts';
import type {
  ClaimAnswer,
  ClaimFor,
  ClaimRequest,
  Loss,
  RecordError,
  Retention,
  StoredRecord,
} from '../store/store.ts';
import type { Call } from './call.ts';
import type { Claimant } from './detached.ts';
import { listWaysOut, rerunWithin } from './doubt.ts';
import type { Env } from './env.ts';
import { trustedWindow } from './key-use.ts';
import type { Result } from './receipt.ts';
import { abortedError, closedError } from './refusals.ts';
import { settleLater } from './settle.ts';
import type { Closable } from './work.ts';

/** Why the next claim is made. */
export interface Purpose {
  readonly for: ClaimFor;
  /** Only this generation; null: any. */
  readonly generation: number | null;
  readonly rerunWithinMs: number | null;
  /** The ways out of the doubt that this call has tried. */
  readonly tried: readonly ClaimFor[];
  /** The record in doubt as it was before the claim. */
  readonly doubt?: StoredRecord;
}

/** For a call that knows nothing yet. */
export const firstPurpose: Purpose = { for: 'execute', generation: null, rerunWithinMs: null, tried: [] };

/** How to settle a record in doubt; undefined: this call has tried all that it may. */
export function chooseWayOut(call: Call, doubt: StoredRecord, tried: Purpose['tried']): Purpose | undefined {
  const way = listWaysOut(call, doubt).find((each) => !tried.includes(each));
  if (way === undefined) return undefined;
  const { generation } = doubt;
  return { for: way, generation, rerunWithinMs: rerunWithin(call, doubt), tried: [...tried, way], doubt };
}

/** A request to the store, for a call whose caller may leave before the reply. */
export class PendingRead<Reply = Loss | undefined> implements Requester<Reply>, Closable {
  previous: Closable | undefined;
  next: Closable | undefined;
  pending: Requester<Reply>['pending'];
  readonly call: Call;
  /** The answer to its call, if that waits for this. */
  result: Promise<Result> | undefined;
  isAbandoned: boolean;

  constructor(call: Call) {
    this.previous = undefined;
    this.next = undefined;
    this.pending = undefined;
    this.call = call;
    this.result = undefined;
    this.isAbandoned = false;
  }

  /** The same promise; rejects early if the caller gives up. */
  orAbandon<Answer>(answering: Promise<Answer>): Promise<Answer> {
    const { signal } = this.call;
    if (signal === undefined) return answering;
    const unlisten = onAbort(signal, () => this.abandonWith(abortedError(this.call)));
    answering.then(unlisten, unlisten);
    return answering;
  }

  /** The process is closing. */
  close(): void {
    this.abandonWith(this.call.signal?.aborted ? abortedError(this.call) : closedError());
  }

  /** True: `onLateReply` or `onFailure` is called later. */
  protected abandonWith(error: SemelError): boolean {
    if (this.pending?.abandon(error) !== true) return false;
    this.isAbandoned = true;
    return true;
  }

  /** A read changed nothing. */
  onLateReply(_reply: Reply): void {}

  onFailure(_error: unknown): void {}
}

/** One claim. It is released if its caller has left, or if its reply was lost. */
export class Claim extends PendingRead<ClaimAnswer> {
  readonly token: string;
  /** The lease counts from here. */
  readonly sentAt: Moment;
  readonly #env: Env;
  readonly #purpose: Purpose;
  readonly #owner: string;
  /** Its executor may repeat it, and may have its answer by then: only the executor or the lease ends it. */
  readonly #isExecutors: boolean;
  /** Made when the caller leaves: closing waits for the reply, and for the release of what it won. */
  #replied: Deferred<void> | undefined;

  constructor(env: Env, call: Call, purpose: Purpose, { owner = env.owner, token }: Partial<Claimant> = {}) {
    super(call);
    this.token = token ?? env.random.token();
    this.sentAt = new Moment(env.clock);
    this.#env = env;
    this.#purpose = purpose;
    this.#owner = owner;
    this.#isExecutors = token !== undefined;
    this.#replied = undefined;
  }

  request(): ClaimRequest {
    return createClaimRequest(this.call, this.#purpose, this.token, this.#owner);
  }

  override onLateReply({ won, record }: ClaimAnswer): void {
    if (won) this.#release([record.key]);
    this.#replied?.resolve();
  }

  override onFailure(error: unknown): void {
    const { key, olderKeys } = this.call;
    if (isSemelError(error, 'STORE_UNAVAILABLE')) this.#release([key, ...olderKeys]);
    this.#replied?.resolve();
  }

  protected override abandonWith(error: SemelError): boolean {
    if (!super.abandonWith(error)) return false;
    if (this.#replied === undefined) {
      this.#replied = deferred();
      this.#env.inBackground(this.#replied.promise);
    }
    return true;
  }

  #release(keys: readonly string[]): void {
    if (this.#isExecutors) return;
    const { namespace } = this.call;
    // A record in doubt keeps its error, which is evidence.
    const error = this.#purpose.for === 'execute' ? neverStarted : null;
    const nobody = { fence: 0, generation: 0, result: null, error, keyed: false, found: false };
    const release = async (key: string): Promise<void> => {
      const released = { ...nobody, namespace, key, token: this.token, outcome: 'released' as const };
      const answer = await settleLater(this.#env, released);
      // A link may have led the claim to a newer form of its key.
      if (key === this.call.key) await Promise.all(answer?.record?.movedTo?.map(release) ?? []);
    };
    for (const key of keys) this.#env.inBackground(release(key));
  }
}

/** With this error, calls that wait for the record go on, as they do when a caller leaves later. */
const neverStarted: RecordError = {
  code: 'ABORTED',
  message: 'the caller was gone before it was started',
  retriable: true,
};

/** Tells listeners and the audit which answer the call gets. */
export function reportAnswer({ ledger, owner }: Env, call: Call, answer: LostAnswer): void {
  if (answer.is === 'replay' && answer.cached !== undefined)
    ledger.reportCached(answer.cached, call.identity, owner, answer.cached.driftFrom(call));
  else ledger.report(answer, { ...call.identity, owner, ...driftFrom(call, answer) });
}

/** A call in other words may have meant other work: the history shows which fields differ. */
function driftFrom(call: Call, answer: LostAnswer): { readonly drift?: readonly string[] } {
  // The key is part of the content's digest: under an earlier form of the contract it cannot be compared.
  if (answer.is !== 'replay' || answer.record.key !== call.key) return {};
  const drift = findDrift(answer.record.content, call.content());
  return drift.length === 0 ? {} : { drift };
}

export function createClaimRequest(call: Call, purpose: Purpose, token: string, owner: string): ClaimRequest {
  return new CallClaim(call, purpose, token, owner);
}

/**
 * A class, like everything that a call holds while it waits. Once a hundred objects of one literal have survived a collection
 * together, V8 makes all further ones in the old generation, where each keeps its whole call until the next full collection.
 */
class CallClaim implements ClaimRequest {
  readonly namespace: string;
  readonly key: string;
  readonly olderKeys: readonly string[];
  readonly token: string;
  readonly fingerprint: string | null;
  readonly for: ClaimFor;
  readonly generation: number | null;
  readonly crossing: boolean;
  readonly leaseMs: number;
  readonly rerunWithinMs: number | null;
  readonly rerunOf: number | null;
  readonly maxCrashes: number;
  readonly inFlightForMs: number;
  readonly networkMs: number;
  readonly version: string;
  readonly effect: ClaimRequest['effect'];
  readonly keyed: boolean;
  readonly maySendKey: boolean;
  readonly retention: Retention;
  readonly owner: string;
  readonly args: string | null;
  readonly content: string | null;
  readonly notAfter: number | null;
  readonly conversation: string | null;
  readonly turn: string | null;
  readonly toolCallId: string | null;
  readonly run: string | null;
  readonly again: string | null;
  readonly caller: string | null;
  readonly share: boolean;
  readonly stagedAt: number | null;

  constructor(call: Call, purpose: Purpose, token: string, owner: string) {
    const { contract } = call.tool;
    const { identity } = call;
    this.namespace = call.namespace;
    this.key = call.key;
    this.olderKeys = call.olderKeys;
    this.token = token;
    this.fingerprint = call.fingerprint;
    this.for = purpose.for;
    this.generation = purpose.generation ?? call.generation;
    this.crossing = contract.dispatch === 'claim';
    this.leaseMs = contract.leaseMs;
    this.rerunWithinMs = purpose.rerunWithinMs;
    this.rerunOf = purpose.doubt?.fence ?? null;
    this.maxCrashes = contract.maxAttempts;
    this.inFlightForMs = contract.inFlightForMs;
    this.networkMs = contract.networkMs;
    this.version = recordVersion(contract);
    this.effect = contract.effect;
    this.maySendKey = contract.rerunWithinMs !== null;
    this.keyed = this.maySendKey && trustedWindow(call.tool) !== null;
    this.retention = new CallRetention(call);
    this.owner = owner;
    this.args = call.storedArgs();
    this.content = call.content();
    this.notAfter = call.notAfter;
    this.conversation = identity.conversation ?? null;
    this.turn = identity.turn ?? null;
    this.toolCallId = identity.toolCallId ?? null;
    this.run = identity.run ?? null;
    this.again = call.again;
    this.caller = call.caller;
    this.share = call.share;
    this.stagedAt = call.stagedAt;
  }
}

class CallRetention implements Retention {
  readonly windowMs: number;
  readonly failureWindowMs: number;
  readonly keep: boolean;
  readonly periodEndsAt: number | null;

  constructor({ tool: { contract }, identity, periodEndsAt }: Call) {
    const weakMs = identity.weak === true ? contract.weakWindowMs : null;
    this.windowMs = weakMs ?? contract.windowMs;
    this.failureWindowMs = Math.min(contract.failureWindowMs, this.windowMs);
    this.keep = contract.per === 'ever' && contract.windowMs > 0;
    this.periodEndsAt = periodEndsAt;
  }
}
