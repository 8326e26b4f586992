// Calls of one key that this process is executing right now: equal calls share one flight, each caller may leave
// it, and a call from inside its own run is told so instead of waiting for itself.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '../core/clock.ts';
import { decodeResult, encodeResult } from '../core/codec/codec.ts';
import { isRepeatable } from '../core/contract/words.ts';
import type { SemelError } from '../core/errors.ts';
import { findDrift } from '../core/key/identity.ts';
import { keyMap } from '../core/key-map.ts';
import type { Attempt } from './attempt.ts';
import type { Call } from './call.ts';
import type { Claim } from './claim.ts';
import { type Result, refuse } from './receipt.ts';
import { deadlockError, inFlightError, leftBehindError } from './refusals.ts';

/** One execution of this process, and all who share it. */
export class ActiveCall {
  readonly leader: Call;
  /** The leader's call as it is executed: it gives up only when every caller has. */
  readonly call: Call;
  /** The execution from whose run the call was made. */
  readonly outer: ActiveCall | undefined;
  /** Aborts when the last caller has left; there is none where the leader cannot leave. */
  readonly left: AbortController | undefined;
  /** Given in the step that makes the flight: nobody can join before. */
  result: Promise<Result> | undefined;
  /** While the store is asked for it. */
  claim: Claim | undefined;
  attempt: Attempt | undefined;
  callers = 1;
  isOver = false;
  /** The flights that calls from inside this one share, and wait for. */
  waitsFor: Set<ActiveCall> | undefined;

  /** `isShared`: others may join. */
  constructor(leader: Call, outer: ActiveCall | undefined, isShared: boolean) {
    const { signal } = leader;
    this.leader = leader;
    this.outer = outer;
    this.left = signal === undefined || !isShared ? undefined : new AbortController();
    this.call = this.left === undefined ? leader : leader.with({ signal: this.left.signal });
    this.result = undefined;
    this.claim = undefined;
    this.attempt = undefined;
    this.waitsFor = undefined;
  }

  /** This process closes: ends it by what is known of it. */
  close(reason: Error): void {
    this.claim?.close();
    this.attempt?.end(reason);
  }
}

export interface Sharing {
  /** Shares the flight of an equal call; undefined: there is none, or the caller does not want to wait. */
  join(call: Call): Promise<Result> | undefined;
  /** A flight of this call that equal ones may join. */
  lead(call: Call): ActiveCall;
  /** A flight of its own, for a call that is answered or executed in another way than its equals. */
  alone(call: Call): ActiveCall;
  /** The code of a flight runs in its context, so that calls from inside are known. */
  readonly inside: AsyncLocalStorage<ActiveCall | undefined>;
  end(flight: ActiveCall): void;
  /** The code that runs now was started by an execution of this key that is not over yet. */
  isReentrant(call: Call): boolean;
  /** The code that runs now was started by some execution. */
  isNested(): boolean;
  /** The contract from whose run the call is made, if any. */
  outerContract(call: Call): string | undefined;
}

export function createSharing(clock: Clock): Sharing {
  const flights = keyMap<ActiveCall>();
  const inside = new AsyncLocalStorage<ActiveCall | undefined>();

  /** The executions from whose runs the code that runs now was started, innermost first. */
  function around(): readonly ActiveCall[] {
    const found: ActiveCall[] = [];
    for (let flight = inside.getStore(); flight !== undefined; flight = flight.outer)
      if (!flight.isOver) found.push(flight);
    return found;
  }

  return {
    join(call) {
      const flight = flights.get(call.namespace, call.key);
      if (flight === undefined || !mayShare(flight, call)) return undefined;
      const outer = around();
      const waiting = outer.find((each) => isWaitingFor(flight, each));
      // Each would wait for the other until their timeouts are over.
      if (waiting !== undefined)
        return Promise.resolve(refuse(call, undefined, deadlockError(call, waiting.leader)));
      flight.callers += 1;
      for (const each of outer) {
        each.waitsFor ??= new Set();
        each.waitsFor.add(flight);
      }
      return waitForResult(call, flight, clock)
        .finally(() => {
          for (const each of outer) each.waitsFor?.delete(flight);
        })
        .then((result) => shared(flight, call, result));
    },
    lead(call) {
      const flight = new ActiveCall(call, inside.getStore(), true);
      const current = flights.get(call.namespace, call.key);
      // A caller's own key with other args has a flight of its own, which ends in a conflict. Equal writes that come while
      // one runs share the next one.
      if (current === undefined || isPast(current)) flights.set(call.namespace, call.key, flight);
      return flight;
    },
    alone: (call) => new ActiveCall(call, inside.getStore(), false),
    inside,
    end(flight) {
      const { namespace, key } = flight.leader;
      flight.isOver = true;
      if (flights.get(namespace, key) === flight) flights.delete(namespace, key);
    },
    isReentrant: (call) => inside.getStore() !== undefined && around().some((flight) => isOf(flight, call)),
    isNested: () => around().length > 0,
    outerContract: (call) => around().find((flight) => !isOf(flight, call))?.leader.tool.contract.name,
  };
}

/** It is an execution of this key. */
function isOf({ leader }: ActiveCall, { namespace, key }: Call): boolean {
  return leader.key === key && leader.namespace === namespace;
}

/** Also by way of others. */
function isWaitingFor(flight: ActiveCall, other: ActiveCall, seen = new Set<ActiveCall>()): boolean {
  if (seen.has(flight) || flight.waitsFor === undefined) return false;
  seen.add(flight);
  return [...flight.waitsFor].some((each) => each === other || isWaitingFor(each, other, seen));
}

function mayShare({ leader, attempt, left }: ActiveCall, call: Call): boolean {
  const { effect, ifBusy } = call.tool.contract;
  if (ifBusy !== 'wait' || leader.fingerprint !== call.fingerprint) return false;
  // It ends because the others gave up, or because the record is another one by now: neither is an answer for this caller.
  if (left?.signal.aborted || leader.generation !== call.generation) return false;
  // Another caller has a flight of its own, which ends in a refusal.
  if (leader.caller !== call.caller && !call.share) return false;
  // Whoever has more time is not refused because the leader did not start in time.
  const mayBeLate = leader.notAfter !== null && attempt === undefined;
  if (mayBeLate && (call.notAfter ?? Number.POSITIVE_INFINITY) > leader.notAfter) return false;
  // What is written each time anew must be written as this caller wants it, and after it was asked for: another write may
  // have come between. On, off, on is on.
  return (
    !isRepeatable(effect) ||
    (attempt === undefined && findDrift(leader.content(), call.content()).length === 0)
  );
}

/** Nobody may join it any more. */
function isPast({ leader, attempt }: ActiveCall): boolean {
  return attempt !== undefined && isRepeatable(leader.tool.contract.effect);
}

/**
 * A caller who gives up is answered at once where the execution goes on without them; so is one who shares it, at the
 * latest when its own contract says.
 */
export function waitForResult(call: Call, flight: ActiveCall, clock?: Clock): Promise<Result> {
  const { signal } = call;
  const { waitMs } = call.tool.contract;
  const patience = clock !== undefined && Number.isFinite(waitMs) ? { clock, waitMs } : undefined;
  const result = flight.result as Promise<Result>;
  if (signal === undefined && patience === undefined) return result;
  return new Promise((resolve, reject) => {
    const leave = (reason: unknown, why: () => SemelError, isAnswered: boolean) => {
      end();
      flight.callers -= 1;
      const record = flight.attempt?.record;
      const isDispatched = record?.dispatched === true;
      if (flight.callers === 0) flight.left?.abort(reason);
      // What the leader started goes on without it, and may land.
      const executed = isDispatched && call === flight.leader;
      if (flight.callers > 0 || isDispatched || isAnswered)
        resolve(refuse(call, record, why(), { executed }));
    };
    const giveUp = () => leave(signal?.reason, () => leftBehindError(call, flight.attempt?.record), false);
    const tooLong = () => leave(undefined, () => inFlightError(call, flight.attempt?.record), true);
    const timer = patience?.clock.setTimeout(tooLong, patience.waitMs);
    const end = () => {
      signal?.removeEventListener('abort', giveUp);
      if (timer !== undefined) patience?.clock.clearTimeout(timer);
    };
    signal?.addEventListener('abort', giveUp);
    result.then(resolve, reject).finally(end);
  });
}

/** Each caller gets a value of its own, so that nobody changes another's. */
function shared({ leader, attempt }: ActiveCall, call: Call, result: Result): Result {
  const receipt = {
    ...result.receipt,
    executed: false,
    replayed: result.ok,
    drift: findDrift(attempt?.record.content ?? leader.content(), call.content()),
    weak: call.identity.weak === true,
  };
  return result.ok ? { ...result, value: copyOf(result.value), receipt } : { ...result, receipt };
}

/** As a replay would give it; what could not be replayed is handed on as it is. */
function copyOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const encoded = encodeResult(value, { maxBytes: Number.MAX_SAFE_INTEGER });
  return encoded.ok ? decodeResult(encoded.text) : value;
}
