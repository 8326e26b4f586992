// One claim, with everything that its holder may ask afterwards: also long after it lost the key, as a zombie
// would. Requests are filled with what a typical contract says; a case overrides what it is about.

import assert from 'node:assert/strict';
import type {
  ClaimRequest,
  ClearRequest,
  CrossAnswer,
  DispatchRequest,
  Held,
  Loss,
  RecordError,
  Refusal,
  RenewAnswer,
  SettleAnswer,
  SettleRequest,
  Store,
  StoredRecord,
  StoredResult,
} from '../../store/store.ts';

export const second = 1_000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** The contract that the cases speak of: lease 1 min, window 24 h, failures 1 h, "not landed" after 11 min. */
export const lease = minute;
export const window = day;
export const failureWindow = hour;
export const quiet = 11 * minute;
export const tail = minute;

export const theKey = 'mail.send/2026-06-19/k4q0';
export const theNamespace = 'shop';

let tokens = 0;
/** Unique per process, as a random one would be. */
export const newToken = (): string => {
  tokens += 1;
  return `token-${tokens}`;
};

export function claimRequest(over: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    namespace: theNamespace,
    key: theKey,
    olderKeys: [],
    token: newToken(),
    fingerprint: null,
    for: 'execute',
    generation: null,
    crossing: false,
    leaseMs: lease,
    rerunWithinMs: null,
    maxCrashes: 10,
    inFlightForMs: quiet,
    networkMs: tail,
    version: '1.0.0',
    effect: 'write-non-idempotent',
    keyed: false,
    retention: { windowMs: window, failureWindowMs: failureWindow, keep: false, periodEndsAt: null },
    owner: 'contract suite',
    args: '{"to":"ada"}',
    content: null,
    notAfter: null,
    conversation: null,
    turn: null,
    toolCallId: null,
    again: null,
    run: null,
    caller: null,
    share: false,
    ...over,
  };
}

export function resultOf(text: string, remoteRef: string | null = null): StoredResult {
  return { text, omitted: null, remoteRef };
}

export const refused: RecordError = { code: 'FAILED', message: 'the target said no', retriable: false };

export interface Attempt extends Held {
  /** The record as the claim found or made it. */
  readonly record: StoredRecord;
  readonly takeover: boolean;
  renew(leaseMs?: number): Promise<RenewAnswer>;
  /** Notes the provider's id for what it sent; null: that did not land. */
  noteId(remoteRef: string | null, nth: number): Promise<RenewAnswer>;
  dispatch(over?: Partial<DispatchRequest>): Promise<CrossAnswer>;
  /** Dispatches, and expects success. */
  send(over?: Partial<DispatchRequest>): Promise<StoredRecord>;
  clear(over?: Partial<ClearRequest>): Promise<CrossAnswer>;
  /** Clears, and expects that it may. */
  cleared(over?: Partial<ClearRequest>): Promise<StoredRecord>;
  settle(outcome: SettleRequest['outcome'], over?: Partial<SettleRequest>): Promise<SettleAnswer>;
  succeed(text?: string): Promise<SettleAnswer>;
  /** Settles what a verifier found. */
  find(text?: string): Promise<SettleAnswer>;
}

/** Claims, and expects to win. */
export async function take(store: Store, over: Partial<ClaimRequest> = {}): Promise<Attempt> {
  const request = claimRequest(over);
  const glanced = await glance(store, request);
  const answer = await store.claim(request);
  assert.ok(answer.won, `the claim should win, but lost to a record that is ${answer.record?.status}`);
  if (request.for === 'execute')
    assert.equal(glanced, undefined, 'a claim that wins has nothing to lose to at a glance');
  return attemptOf(store, request, answer.record, answer.takeover);
}

/** Claims, and expects to lose to a record. */
export async function lose(store: Store, over: Partial<ClaimRequest> = {}): Promise<StoredRecord> {
  const request = claimRequest(over);
  const before = await Promise.all(
    [request.key, ...request.olderKeys].map((key) => store.read(request.namespace, key)),
  );
  const glanced = await glance(store, request);
  const answer = await store.claim(request);
  assert.ok(!answer.won, 'the claim should lose');
  const { record } = answer;
  assert.ok(record !== undefined, 'a lost claim tells what it lost to');
  const { glance: atOnce, look } = store.claim;
  if ((atOnce ?? look) === undefined || request.for !== 'execute') return record;
  // A look may leave other forms of a key to the claim.
  const hasForms = request.olderKeys.length > 0 || record.key !== request.key;
  if (atOnce === undefined && hasForms && glanced === undefined) return record;
  // A claim may settle the record it finds, as poisoned or by stored late news; a glance changes nothing.
  const isUnchanged = before.some((was) => was?.key === record.key && was.status === record.status);
  const expected = isUnchanged ? record.fence : undefined;
  assert.equal(glanced?.record?.fence, expected, 'a glance tells what a claim loses to');
  return record;
}

/** If a store has `glance` or `look`, the suite calls it before every claim. */
async function glance(store: Store, request: ClaimRequest): Promise<Loss | undefined> {
  const { glance: atOnce, look } = store.claim;
  if (atOnce === undefined) return look?.(request);
  await store.open();
  return atOnce(request);
}

/** The attempt that won with this request, seen from any handle. */
export function attemptOf(
  store: Store,
  request: ClaimRequest,
  record: StoredRecord,
  takeover: boolean,
): Attempt {
  const { namespace, key, fence, generation } = record;
  const held: Held = { namespace, key, token: request.token, fence, generation };
  const { rerunWithinMs, inFlightForMs, keyed } = request;

  const attempt: Attempt = {
    ...held,
    record,
    takeover,
    renew: (leaseMs = request.leaseMs) => store.renew({ ...held, leaseMs, inFlightForMs }),
    noteId: (remoteRef, nth) =>
      store.renew({ ...held, leaseMs: request.leaseMs, inFlightForMs, note: { remoteRef, nth } }),
    dispatch: (over = {}) =>
      store.dispatch({ ...held, keyed: true, prepared: null, rerunWithinMs, inFlightForMs, ...over }),
    send: async (over) => crossed(await attempt.dispatch(over)),
    clear: (over = {}) =>
      store.clear({
        ...held,
        crossing: false,
        // Looked just now.
        seenAt: Number.MAX_SAFE_INTEGER,
        freshKey: false,
        rerunWithinMs,
        inFlightForMs,
        ...over,
      }),
    cleared: async (over) => crossed(await attempt.clear(over)),
    settle: (outcome, over = {}) =>
      store.settle({
        ...held,
        outcome,
        keyed,
        found: false,
        result: outcome === 'succeeded' ? resultOf('"sent"') : null,
        error: outcome === 'succeeded' ? null : refused,
        ...over,
      }),
    succeed: (text = '"sent"') => attempt.settle('succeeded', { result: resultOf(text) }),
    find: (text = '"found"') => attempt.settle('succeeded', { result: resultOf(text), found: true }),
  };
  return attempt;
}

function crossed(answer: CrossAnswer): StoredRecord {
  assert.ok(answer.ok, `crossing the line was refused: ${answer.ok ? '' : answer.why}`);
  return answer.record;
}

export function refusedBecause(answer: CrossAnswer, why: Refusal): void {
  assert.ok(!answer.ok, `crossing the line should be refused as "${why}"`);
  assert.equal(answer.why, why);
}
