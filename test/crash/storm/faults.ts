// What a storm can do, how often it shall, and how often it did.

import { setTimeout as delay } from 'node:timers/promises';
import type { Chance } from '../../processes/chance.ts';
import type { Server } from '../../servers/server.ts';
import type { Crew } from './crew.ts';

/** With how likely each is chosen beside the others. */
const weights = {
  /** SIGKILL for a worker, and another takes its place. */
  kill: 14,
  /** SIGSTOP for a worker until its lease is over. */
  stop: 6,
  /** The server of the ledger ends without a word, and comes back. */
  crash: 2,
  /** The server of the ledger stands still for a while. */
  pause: 1,
  /** The clock of the server is set forward or back. */
  clock: 2,
  /** The clock of a worker is set forward or back. */
  workerClock: 2,
} as const;

export type FaultName = keyof typeof weights;
export type FaultCounts = Readonly<Partial<Record<FaultName, number>>>;

export const faultNames = Object.keys(weights) as readonly FaultName[];

export interface Faults {
  /** One more of those that are still owed. */
  next(): Promise<void>;
  readonly isDone: boolean;
  readonly counts: Record<FaultName, number>;
}

export function faultsOf(
  wanted: FaultCounts,
  crew: Crew,
  server: Server | undefined,
  chance: Chance,
): Faults {
  const counts: Record<FaultName, number> = {
    kill: 0,
    stop: 0,
    crash: 0,
    pause: 0,
    clock: 0,
    workerClock: 0,
  };
  const acts: Record<FaultName, () => Promise<boolean>> = {
    kill: crew.kill,
    stop: crew.stop,
    async crash() {
      await server?.kill(chance.is(0.5) ? 'SIGKILL' : undefined);
      await delay(chance.between(0, 400));
      await server?.restart();
      return server !== undefined;
    },
    async pause() {
      await server?.pause();
      await delay(chance.between(100, 1_500));
      await server?.resume();
      return server !== undefined;
    },
    async clock() {
      server?.moveClock(byHowMuch());
      return server !== undefined;
    },
    workerClock: () => crew.moveClock(byHowMuch()),
  };
  /** By a lease, by a while, or by so much that nobody can take it for true. */
  const byHowMuch = () => {
    const most = chance.pick([1_000, 60_000, 86_400_000]);
    return Math.round(chance.between(-most, most));
  };
  const owed = () => faultNames.filter((name) => counts[name] < (wanted[name] ?? 0));

  return {
    async next() {
      const names = owed();
      if (names.length === 0) return;
      const name = chance.pick(names.flatMap((one) => Array<FaultName>(weights[one]).fill(one)));
      if (await acts[name]()) counts[name] += 1;
    },
    get isDone() {
      return owed().length === 0;
    },
    counts,
  };
}
