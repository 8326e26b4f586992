// Calls of one key that this process is executing right now: equal calls share one flight, and a call from
// inside its own run is told so instead of waiting for itself.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Result } from './receipt.ts';

export interface Flight {
  readonly fingerprint: string | null;
  readonly result: Promise<Result>;
  callers: number;
}

export interface Flights {
  find(at: string): Flight | undefined;
  lead(at: string, fingerprint: string | null, start: () => Promise<Result>): Flight;
  /** The code that runs now was started by an execution of this key. */
  isInside(at: string): boolean;
  inside<T>(at: string, work: () => T): T;
  all(): Promise<Result>[];
}

export function createFlights(): Flights {
  const flights = new Map<string, Flight>();
  const running = new AsyncLocalStorage<ReadonlySet<string>>();

  return {
    find: (at) => flights.get(at),
    lead(at, fingerprint, start) {
      const result = start().finally(() => {
        if (flights.get(at) === flight) flights.delete(at);
      });
      const flight: Flight = { fingerprint, result, callers: 1 };
      if (!flights.has(at)) flights.set(at, flight);
      return flight;
    },
    isInside: (at) => running.getStore()?.has(at) === true,
    inside: (at, work) => running.run(new Set(running.getStore()).add(at), work),
    all: () => [...flights.values()].map(({ result }) => result),
  };
}
