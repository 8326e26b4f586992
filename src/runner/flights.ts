// Calls of one key that this process is executing right now: equal calls share one flight, each caller may leave
// it, and a call from inside its own run is told so instead of waiting for itself.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Attempt } from './attempt.ts';
import type { Call } from './call.ts';
import { type Result, refused } from './receipt.ts';
import { leftBehind } from './refusals.ts';

interface Flight {
  readonly fingerprint: string | null;
  readonly result: Promise<Result>;
  callers: number;
  attempt: Attempt | undefined;
}

export interface Flights {
  /** Shares the flight of an equal call; undefined: there is none, or the caller does not want to wait. */
  join(call: Call): Promise<Result> | undefined;
  lead(call: Call, start: () => Promise<Result>): Promise<Result>;
  started(call: Call, attempt: Attempt): void;
  isShared(call: Call): boolean;
  /** The code that runs now was started by an execution of this key. */
  isInside(call: Call): boolean;
}

export function createFlights(): Flights {
  const flights = new Map<string, Flight>();
  const inside = new AsyncLocalStorage<ReadonlySet<string>>();
  const at = ({ namespace, key }: Call) => `${namespace}\0${key}`;

  return {
    join(call) {
      const flight = flights.get(at(call));
      const isEqual = flight !== undefined && flight.fingerprint === call.fingerprint;
      if (!isEqual || call.tool.contract.ifBusy !== 'wait') return undefined;
      flight.callers += 1;
      return untilGivenUp(call, flight).then(shared);
    },
    lead(call, start) {
      const name = at(call);
      const result = inside.run(new Set(inside.getStore()).add(name), start).finally(() => {
        if (flights.get(name) === flight) flights.delete(name);
      });
      const flight: Flight = { fingerprint: call.fingerprint, result, callers: 1, attempt: undefined };
      // A caller's own key with other args has a flight of its own, which ends in a conflict.
      if (!flights.has(name)) flights.set(name, flight);
      return untilGivenUp(call, flight);
    },
    started(call, attempt) {
      const flight = flights.get(at(call));
      if (flight !== undefined) flight.attempt = attempt;
    },
    isShared: (call) => (flights.get(at(call))?.callers ?? 0) > 1,
    isInside: (call) => inside.getStore()?.has(at(call)) === true,
  };
}

/** A caller who gives up is answered at once where the execution goes on without them. */
function untilGivenUp(call: Call, flight: Flight): Promise<Result> {
  const { signal } = call;
  if (signal === undefined) return flight.result;
  return new Promise((resolve, reject) => {
    const leave = () => {
      const goesOn = flight.callers > 1 || flight.attempt?.dispatched === true;
      flight.callers -= 1;
      if (goesOn) resolve(refused(call, flight.attempt?.record, leftBehind(call)));
    };
    signal.addEventListener('abort', leave, { once: true });
    flight.result.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}

/** Each caller gets a value of its own, so that nobody changes another's. */
function shared(result: Result): Result {
  const receipt = { ...result.receipt, executed: false, replayed: result.ok };
  return result.ok ? { ...result, value: copyOf(result.value), receipt } : { ...result, receipt };
}

function copyOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  try {
    return structuredClone(value);
  } catch {
    return value;
  }
}
