// One claim under one token, and what becomes of it where its caller does not wait for the answer.

import { isSemelError, type SemelError } from '../core/errors.ts';
import { findDrift } from '../core/key/identity.ts';
import type { LostAnswer, Requester } from '../ledger/index.ts';
import type { ClaimAnswer, ClaimFor, ClaimRequest, Loss, RecordError, StoredRecord } from '../store/store.ts';
import type { Call } from './call.ts';
import { listWaysOut, rerunWithin } from './doubt.ts';
import type { Env } from './env.ts';
import { type Moment, momentOf } from './heartbeat.ts';
import type { Result } from './receipt.ts';
import { abortedError, closedError } from './refusals.ts';
import { settleLater } from './settle.ts';

/** What is asked of the ledger next. */
export interface Purpose {
  readonly for: ClaimFor;
  /** Only this generation; null: any. */
  readonly generation: number | null;
  readonly rerunWithinMs: number | null;
  /** The ways out of the doubt that this call has tried. */
  readonly tried: readonly ClaimFor[];
  /** The record in doubt that the claim is made for, as it was before. */
  readonly doubt?: StoredRecord;
}

/** Of a call that knows nothing yet. */
export const firstPurpose: Purpose = { for: 'execute', generation: null, rerunWithinMs: null, tried: [] };

/** What to ask about a record in doubt; undefined: all that this call may do about it has been tried. */
export function chooseWayOut(call: Call, doubt: StoredRecord, tried: Purpose['tried']): Purpose | undefined {
  const way = listWaysOut(call, doubt).find((each) => !tried.includes(each));
  if (way === undefined) return undefined;
  const { generation } = doubt;
  return { for: way, generation, rerunWithinMs: rerunWithin(call, doubt), tried: [...tried, way], doubt };
}

/** A question to the store, for a call whose caller may abandon before it is answered. */
export class Look<StoreAnswer = Loss | undefined> implements Requester<StoreAnswer> {
  abandon: Requester<StoreAnswer>['abandon'];
  readonly call: Call;
  /** What its call is answered, where it waits for this. */
  result: Promise<Result> | undefined;
  hasLeft: boolean;

  constructor(call: Call) {
    this.abandon = undefined;
    this.call = call;
    this.result = undefined;
    this.hasLeft = false;
  }

  /** The caller may give up while the store is asked. */
  endWith(signal: AbortSignal, answer: Promise<unknown>): void {
    const giveUp = () => this.leaveBy(abortedError(this.call));
    const forget = () => signal.removeEventListener('abort', giveUp);
    signal.addEventListener('abort', giveUp);
    answer.then(forget, forget);
  }

  /** This process closes. */
  close(): void {
    this.leaveBy(this.call.signal?.aborted ? abortedError(this.call) : closedError());
  }

  /** True: what the store answers is heard later. */
  protected leaveBy(error: SemelError): boolean {
    if (this.abandon?.(error) !== true) return false;
    this.hasLeft = true;
    return true;
  }

  /** Nothing was changed by looking. */
  onLateReply(_answer: StoreAnswer): void {}

  onFailure(_error: unknown): void {}
}

/** One claim. Where its caller has left, or will not hear the answer, what the store made of it is given back. */
export class Claim extends Look<ClaimAnswer> {
  readonly token: string;
  /** The lease is counted from here. */
  readonly askedAt: Moment;
  readonly #env: Env;
  readonly #ask: Purpose;
  /** Its caller has left: closing waits until the store has answered, and what it gave is given back. */
  #heard: PromiseWithResolvers<void> | undefined;

  constructor(env: Env, call: Call, ask: Purpose) {
    super(call);
    this.token = env.random.token();
    this.askedAt = momentOf(env.clock);
    this.#env = env;
    this.#ask = ask;
    this.#heard = undefined;
  }

  request(): ClaimRequest {
    return createClaimRequest(this.call, this.#ask, this.token, this.#env.owner);
  }

  override onLateReply({ won, record }: ClaimAnswer): void {
    if (won) this.#release([record.key]);
    this.#heard?.resolve();
  }

  override onFailure(error: unknown): void {
    const { key, olderKeys } = this.call;
    if (isSemelError(error, 'STORE_UNAVAILABLE')) this.#release([key, ...olderKeys]);
    this.#heard?.resolve();
  }

  protected override leaveBy(error: SemelError): boolean {
    if (!super.leaveBy(error)) return false;
    if (this.#heard === undefined) {
      this.#heard = Promise.withResolvers();
      this.#env.inBackground(this.#heard.promise);
    }
    return true;
  }

  #release(keys: readonly string[]): void {
    const { namespace } = this.call;
    // A record in doubt keeps the error that it has: that is its evidence.
    const error = this.#ask.for === 'execute' ? neverStarted : null;
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

/** Calls that wait for it go on, as they do where a caller leaves later. */
const neverStarted: RecordError = {
  code: 'ABORTED',
  message: 'the caller was gone before it was started',
  retriable: true,
};

/** The call is answered by this. */
export function tell({ ledger, owner }: Env, call: Call, answer: LostAnswer): void {
  if (answer.is === 'replay' && answer.cached !== undefined)
    ledger.reportCached(answer.cached, call.identity, owner, answer.cached.driftFrom(call));
  else ledger.report(answer, { ...call.identity, owner, ...driftFrom(call, answer) });
}

/** What was asked in other words may have been other work: whoever looks for that later finds it in the history. */
function driftFrom(call: Call, answer: LostAnswer): { readonly drift?: readonly string[] } {
  // Content is digested with its key: under an earlier form of the contract it cannot be compared.
  if (answer.is !== 'replay' || answer.record.key !== call.key) return {};
  const drift = findDrift(answer.record.content, call.content());
  return drift.length === 0 ? {} : { drift };
}

export function createClaimRequest(call: Call, ask: Purpose, token: string, owner: string): ClaimRequest {
  const { contract } = call.tool;
  const { conversation, turn, toolCallId, run } = call.identity;
  const weakMs = call.identity.weak === true ? contract.weakWindowMs : null;
  const windowMs = weakMs ?? contract.windowMs;
  return {
    namespace: call.namespace,
    key: call.key,
    olderKeys: call.olderKeys,
    token,
    fingerprint: call.fingerprint,
    for: ask.for,
    generation: ask.generation ?? call.generation,
    crossing: contract.dispatch === 'claim',
    leaseMs: contract.leaseMs,
    rerunWithinMs: ask.rerunWithinMs,
    maxCrashes: contract.maxAttempts,
    inFlightForMs: contract.inFlightForMs,
    networkMs: contract.networkMs,
    version: contract.version,
    effect: contract.effect,
    keyed: contract.rerunWithinMs !== null,
    retention: {
      windowMs,
      failureWindowMs: Math.min(contract.failureWindowMs, windowMs),
      keep: contract.per === 'ever' && contract.windowMs > 0,
      periodEndsAt: call.periodEndsAt,
    },
    owner,
    args: call.storedArgs(),
    content: call.content(),
    notAfter: call.notAfter,
    conversation: conversation ?? null,
    turn: turn ?? null,
    toolCallId: toolCallId ?? null,
    run: run ?? null,
    again: call.again,
    caller: call.caller,
    share: call.share,
  };
}
