// One claim under one token: from a call to a verdict.

import type { Clock, Random } from '../core/clock.ts';
import { isSemelError } from '../core/errors.ts';
import { driftOf } from '../core/identity.ts';
import { type Ledger, type Lost, type Verdict, wasRefusedUnasked } from '../ledger/index.ts';
import type { ClaimFor, ClaimRequest, StoredRecord } from '../store/store.ts';
import type { Call } from './call.ts';
import { aborted, closed } from './refusals.ts';

export interface Claimed {
  readonly verdict: Verdict;
  readonly purpose: ClaimFor;
  readonly token: string;
  /** When it was asked for: the lease is counted from here. */
  readonly askedAt: number;
  /** The record in doubt that the claim was made for, as it was before. */
  readonly inDoubt?: StoredRecord;
}

export interface ClaimTerms {
  readonly purpose: ClaimFor;
  /** Only this generation; null: any. */
  readonly generation: number | null;
  readonly rerunWithinMs: number | null;
}

/** The claim of a call that knows nothing yet. */
export const first: ClaimTerms = { purpose: 'execute', generation: null, rerunWithinMs: null };

export interface ClaimsOptions {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly random: Random;
  readonly owner: string;
  /** The claim may or may not have been made: whoever asked is gone, so it is given back when the store answers. */
  readonly giveBack: (token: string, call: Call) => void;
  /** Aborts when calls that still wait must end. */
  readonly closing: AbortSignal;
}

export type OpenClaim = (call: Call, terms: ClaimTerms) => Promise<Claimed>;

export interface Claims {
  open: OpenClaim;
  /** What a first claim would lose to, where that is known at once. */
  glance(call: Call): Lost | undefined;
  /** The call is answered by this verdict. */
  tell(call: Call, verdict: Lost): void;
}

export function createClaims({ ledger, clock, random, owner, giveBack, closing }: ClaimsOptions): Claims {
  /** Calls whose claim is being asked for: each ends its own when this process closes. */
  const asking = new Set<() => void>();
  closing.addEventListener('abort', () => {
    for (const leave of asking) leave();
  });

  async function open(call: Call, terms: ClaimTerms): Promise<Claimed> {
    const token = random.token();
    const askedAt = clock.mono();
    let hasLeft = false;
    const answer = ledger.open(requestFor(call, terms, token, owner)).then(
      (verdict) => {
        if (hasLeft && verdict.kind === 'execute') giveBack(token, call);
        return verdict;
      },
      (error: unknown) => {
        if (isSemelError(error, 'STORE_UNAVAILABLE') && !wasRefusedUnasked(error)) giveBack(token, call);
        throw error;
      },
    );
    const verdict = await unlessLeft(call, answer, () => {
      hasLeft = true;
    });
    return { verdict, purpose: terms.purpose, token, askedAt };
  }

  /** A store can take long to answer; its caller may have given up by then, or the process may have to end. */
  function unlessLeft<T>(call: Call, answer: Promise<T>, onLeave: () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      const { signal } = call;
      const end = () => {
        asking.delete(leave);
        signal?.removeEventListener('abort', leave);
      };
      const leave = () => {
        end();
        onLeave();
        reject(signal?.aborted ? aborted(call) : closed());
      };
      asking.add(leave);
      signal?.addEventListener('abort', leave);
      answer.then(resolve, reject).finally(end);
    });
  }

  return {
    open,
    glance: ledger.glance,
    tell: (call, verdict) => ledger.tell(verdict, { ...call.identity, owner, ...driftFrom(call, verdict) }),
  };
}

/** What was asked in other words may have been other work: whoever looks for that later finds it in the history. */
function driftFrom(call: Call, verdict: Lost): { readonly drift?: readonly string[] } {
  // Content is digested with its key: under an earlier form of the contract it cannot be compared.
  if (verdict.kind !== 'replay' || verdict.record.key !== call.key) return {};
  const drift = driftOf(verdict.record.content, call.content());
  return drift.length === 0 ? {} : { drift };
}

export function requestFor(call: Call, terms: ClaimTerms, token: string, owner: string): ClaimRequest {
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
    for: terms.purpose,
    generation: terms.generation ?? call.generation,
    crossing: contract.dispatch === 'claim',
    leaseMs: contract.leaseMs,
    rerunWithinMs: terms.rerunWithinMs,
    maxCrashes: contract.maxAttempts,
    quietMs: contract.quietMs,
    tailMs: contract.tailMs,
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
