// The processes of an outbox storm, each with a place that another takes when it is killed.

import { setTimeout as delay } from 'node:timers/promises';
import type { Chance } from '../../processes/chance.ts';
import type { NodeProcess } from '../../processes/node-process.ts';

export interface Crew {
  /** SIGKILL for one that has worked; false: nobody has. */
  kill(): Promise<boolean>;
  /** SIGSTOP for one for a while; some never wake up. */
  stop(leastMs: number, mostMs: number): Promise<boolean>;
  finish(): Promise<void>;
  disband(): Promise<void>;
}

interface Member {
  readonly process: NodeProcess<unknown>;
  isTaken: boolean;
}

export function startCrew(
  size: number,
  chance: Chance,
  start: (name: string, seed: number) => NodeProcess<unknown>,
): Crew {
  let births = 0;
  let isOver = false;
  let crash: Error | undefined;
  const stopped = new Set<Promise<void>>();
  const crew = Array.from({ length: size }, join);

  function join(): Member {
    births += 1;
    const process = start(`w${births}`, chance.whole(2 ** 32));
    process.ended
      .then(({ code, signal }) => {
        // Only we may end it: anything else is a bug, and no storm.
        if (signal !== 'SIGKILL' && !(isOver && code === 0))
          crash ??= new Error(`A process ended with ${code ?? signal}.\n${process.errors()}`);
      })
      .catch(() => undefined);
    return { process, isTaken: false };
  }

  /** One that nobody is at, once it has done something. */
  function pick(): number | undefined {
    if (crash !== undefined) throw crash;
    const places = [...crew.keys()].filter((place) => {
      const member = crew[place] as Member;
      return !member.isTaken && member.process.lines.length > 0;
    });
    if (places.length === 0) return undefined;
    const place = chance.pick(places);
    (crew[place] as Member).isTaken = true;
    return place;
  }

  async function kill(place: number): Promise<void> {
    await (crew[place] as Member).process.kill();
    if (!isOver) crew[place] = join();
  }

  async function pause(place: number, ms: number): Promise<void> {
    const member = crew[place] as Member;
    member.process.signal('SIGSTOP');
    await delay(ms);
    if (chance.is(0.2) && !isOver) return kill(place);
    member.process.signal('SIGCONT');
    member.isTaken = false;
  }

  return {
    async kill() {
      const place = pick();
      if (place !== undefined) await kill(place);
      return place !== undefined;
    },
    async stop(leastMs, mostMs) {
      const place = pick();
      if (place === undefined) return false;
      const done = pause(place, chance.between(leastMs, mostMs)).finally(() => stopped.delete(done));
      stopped.add(done);
      return true;
    },
    async finish() {
      isOver = true;
      await Promise.all(stopped);
      await Promise.all(crew.map(({ process }) => process.finish()));
      if (crash !== undefined) throw crash;
    },
    async disband() {
      isOver = true;
      await Promise.all(crew.map(({ process }) => process.kill()));
    },
  };
}
