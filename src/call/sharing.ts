// The calls that this process is executing: equal calls share one execution, each caller may leave it, and a call from
// inside its own run is refused instead of waiting for itself.

import { onAbort } from '../core/abort.ts';
import type { Clock } from '../core/clock.ts';
import { decodeResult, encodeResult } from '../core/codec/codec.ts';
import { isRepeatable } from '../core/contract/words.ts';
import type { SemelError } from '../core/errors.ts';
import { findDrift, isRedacted } from '../core/key/identity.ts';
import { keyMap } from '../core/key-map.ts';
import type { Attempt } from './attempt.ts';
import type { Call } from './call.ts';
import type { Claim } from './claim.ts';
import { type Result, refuse } from './receipt.ts';
import { deadlockError, inFlightError, leftBehindError } from './refusals.ts';
import { surroundings } from './surroundings.ts';
import type { Closable } from './work.ts';

/** One call in execution, and all the callers who share it. */
export class ActiveCall implements Closable {
  previous: Closable | undefined = undefined;
  next: Closable | undefined = undefined;
  readonly leader: Call;
  /** Where calls share executions: those of one ledger. */
  readonly home: object;
  /** The leader's call as it is executed: it gives up only when every caller has. */
  readonly call: Call;
  /** The call from whose run this one was made. */
  readonly outer: ActiveCall | undefined;
  /** Aborts when the last caller has left; absent where the leader cannot leave. */
  readonly abandoned: AbortController | undefined;
  /** Set right after construction, before anybody can join. */
  result: Promise<Result> | undefined;
  /** While it is on its way to the store. */
  claim: Claim | undefined;
  attempt: Attempt | undefined;
  /** The effect may be running, under a claim or without one. */
  hasStarted = false;
  callers = 1;
  isOver = false;
  /** The calls that calls from inside this one share and wait for, and how many wait for each. */
  waitsFor: Map<ActiveCall, number> | undefined;

  /** `isShared`: others may join. */
  constructor(leader: Call, home: object, isShared: boolean) {
    const { signal } = leader;
    this.leader = leader;
    this.home = home;
    this.outer = surroundings().call;
    this.abandoned = signal === undefined || !isShared ? undefined : new AbortController();
    this.call = this.abandoned === undefined ? leader : leader.with({ signal: this.abandoned.signal });
    this.result = undefined;
    this.claim = undefined;
    this.attempt = undefined;
    this.waitsFor = undefined;
  }

  /** The process is closing: ends the call by what is known of it. */
  close(reason: Error): void {
    this.claim?.close();
    this.attempt?.end(reason);
  }
}

export interface Sharing {
  /** Shares the execution of an equal call; undefined: there is none, or the caller does not want to wait. */
  join(call: Call): Promise<Result> | undefined;
  /** Starts a call that equal ones may join. */
  start(call: Call): ActiveCall;
  /** Starts a call that is executed in another way than its equals, so that none may join. */
  startAlone(call: Call): ActiveCall;
  end(active: ActiveCall): void;
  /** The code that runs now was started by an execution of this key that is not over yet. */
  isReentrant(call: Call): boolean;
  /** The code that runs now was started by some execution. */
  isNested(): boolean;
  /** The contract from whose run the call is made, if any. */
  outerContract(call: Call): string | undefined;
}

export function createSharing(clock: Clock): Sharing {
  const activeCalls = keyMap<ActiveCall>();

  /** The calls from whose runs the code that runs now was started, innermost first. */
  function listOuterCalls(): readonly ActiveCall[] {
    const found: ActiveCall[] = [];
    for (let active = surroundings().call; active !== undefined; active = active.outer)
      if (!active.isOver && active.home === activeCalls) found.push(active);
    return found;
  }

  return {
    join(call) {
      const active = activeCalls.get(call.namespace, call.key);
      if (active === undefined) return undefined;
      const isShared = mayShare(active, call);
      if (!isShared && !mustFollow(active, call)) return undefined;
      const outerCalls = listOuterCalls();
      const waiting = outerCalls.find((each) => isWaitingFor(active, each));
      // Each would wait for the other until their timeouts are over.
      if (waiting !== undefined)
        return Promise.resolve(refuse(call, undefined, deadlockError(call, waiting.leader)));
      if (!isShared) return undefined;
      active.callers += 1;
      for (const each of outerCalls) countWait(each, active, 1);
      return waitForResult(call, active, clock)
        .finally(() => {
          for (const each of outerCalls) countWait(each, active, -1);
        })
        .then((result) => shareResult(active, call, result));
    },
    start(call) {
      const active = new ActiveCall(call, activeCalls, true);
      const current = activeCalls.get(call.namespace, call.key);
      // A caller's own key with other args is executed apart, which ends in a conflict. Equal writes that come while one
      // runs share the next one.
      if (current === undefined || isPast(current)) activeCalls.set(call.namespace, call.key, active);
      if (current !== undefined && mustFollow(current, call)) {
        countWait(active, current, 1);
        for (const each of listOuterCalls()) countWait(each, active, 1);
      }
      return active;
    },
    startAlone: (call) => new ActiveCall(call, activeCalls, false),
    end(active) {
      const { namespace, key } = active.leader;
      active.isOver = true;
      for (let { outer } = active; outer !== undefined; outer = outer.outer) outer.waitsFor?.delete(active);
      if (activeCalls.get(namespace, key) === active) activeCalls.delete(namespace, key);
    },
    isReentrant: (call) =>
      surroundings().call !== undefined && listOuterCalls().some((outer) => hasSameKey(outer, call)),
    isNested: () => listOuterCalls().length > 0,
    outerContract: (call) =>
      listOuterCalls().find((outer) => !hasSameKey(outer, call))?.leader.tool.contract.name,
  };
}

function hasSameKey({ leader }: ActiveCall, { namespace, key }: Call): boolean {
  return leader.key === key && leader.namespace === namespace;
}

/** One of several that wait may leave: the others still wait. */
function countWait(waiting: ActiveCall, active: ActiveCall, change: 1 | -1): void {
  waiting.waitsFor ??= new Map();
  const count = (waiting.waitsFor.get(active) ?? 0) + change;
  if (count > 0) waiting.waitsFor.set(active, count);
  else waiting.waitsFor.delete(active);
}

/** Directly, or through other calls. */
function isWaitingFor(active: ActiveCall, other: ActiveCall, seen = new Set<ActiveCall>()): boolean {
  if (seen.has(active) || active.isOver || active.waitsFor === undefined) return false;
  seen.add(active);
  return [...active.waitsFor.keys()].some((each) => each === other || isWaitingFor(each, other, seen));
}

function mayShare({ leader, attempt, abandoned, hasStarted }: ActiveCall, call: Call): boolean {
  const { effect, ifBusy } = call.tool.contract;
  if (ifBusy !== 'wait' || leader.fingerprint !== call.fingerprint) return false;
  // Executed apart, which ends in a conflict.
  if (call.findConflict({ key: leader.key, content: leader.content() }).length > 0) return false;
  // It ends because the others gave up, or it is about another generation: neither answers this caller.
  if (abandoned?.signal.aborted || leader.generation !== call.generation) return false;
  // Another caller's call is executed apart, which ends in a refusal.
  if (leader.caller !== call.caller && !call.share) return false;
  // A call with more time is not refused because the leader did not start in time.
  const mayBeLate = leader.notAfter !== null && attempt === undefined;
  if (mayBeLate && (call.notAfter ?? Number.POSITIVE_INFINITY) > leader.notAfter) return false;
  // A write that always runs must write what this caller asked for, and after the call: another write may have come
  // between. On, off, on is on.
  return !isRepeatable(effect) || (!hasStarted && isSameWrite(leader, call));
}

function isSameWrite(leader: Call, call: Call): boolean {
  return findDrift(leader.content(), call.content()).length === 0 && !isRedacted(call.content());
}

/** Nobody may join it any more. */
function isPast({ leader, hasStarted }: ActiveCall): boolean {
  return hasStarted && isRepeatable(leader.tool.contract.effect);
}

/** The call is executed apart, and waits until this one is over. */
function mustFollow(active: ActiveCall, { tool }: Call): boolean {
  return isPast(active) && tool.contract.ifBusy === 'wait';
}

/**
 * Answers a caller who gives up at once, where the execution goes on without them. With a clock, the caller joined and waits
 * no longer than its own contract says.
 */
export function waitForResult(call: Call, active: ActiveCall, clock?: Clock): Promise<Result> {
  const { signal } = call;
  const { waitMs } = call.tool.contract;
  const patience = clock !== undefined && Number.isFinite(waitMs) ? { clock, waitMs } : undefined;
  const result = active.result as Promise<Result>;
  if (signal === undefined && patience === undefined) return result;
  return new Promise((resolve, reject) => {
    const leave = (reason: unknown, why: () => SemelError, isAnswered: boolean) => {
      end();
      active.callers -= 1;
      const record = active.attempt?.record;
      const isDispatched = record?.dispatched === true;
      if (active.callers === 0) active.abandoned?.abort(reason);
      // The leader's execution goes on without it, and may land.
      const executed = isDispatched && call === active.leader;
      if (active.callers > 0 || isDispatched || isAnswered)
        resolve(refuse(call, record, why(), { executed }));
    };
    const giveUp = () => leave(signal?.reason, () => leftBehindError(call, active.attempt?.record), false);
    const tooLong = () => leave(undefined, () => inFlightError(call, active.attempt?.record), true);
    const timer = patience?.clock.setTimeout(tooLong, patience.waitMs);
    const end = () => {
      unlisten();
      if (timer !== undefined) patience?.clock.clearTimeout(timer);
    };
    const unlisten = onAbort(signal, giveUp);
    result.then(resolve, reject).finally(end);
  });
}

/** Each caller gets its own copy of the value, so that nobody changes another's. */
function shareResult({ leader, attempt }: ActiveCall, call: Call, result: Result): Result {
  const receipt = {
    ...result.receipt,
    executed: false,
    replayed: result.ok,
    drift: findDrift(attempt?.record.content ?? leader.content(), call.content()),
    weak: call.identity.weak === true,
  };
  return result.ok ? { ...result, value: copyValue(result.value), receipt } : { ...result, receipt };
}

/** As a replay would return it; a value that cannot be stored is shared itself. */
function copyValue(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const encoded = encodeResult(value, { maxBytes: Number.MAX_SAFE_INTEGER });
  return encoded.ok ? decodeResult(encoded.text) : value;
}
