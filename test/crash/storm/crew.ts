// The workers of a storm, and what is done to them: killed and replaced, stopped past their lease and woken.

import { setTimeout as delay } from 'node:timers/promises';
import type { Chance } from '../../processes/chance.ts';
import { type NodeProcess, startNode } from '../../processes/node-process.ts';
import { type FakeClock, fakeClock } from '../../servers/fake-clock.ts';
import type { WorkEntry } from '../../support/checker/index.ts';
import { paceOf } from './terms.ts';
import type { WorkerJob, WorkerLine } from './worker.ts';

interface Member {
  readonly name: string;
  readonly process: NodeProcess<WorkerLine>;
  readonly clock: FakeClock | undefined;
  /** How many calls it may make before anything happens to it: by its work, not by the clock of a busy machine. */
  readonly spared: number;
  /** How many of its lines were read for doubts. */
  heard: number;
  isDead: boolean;
  isStopped: boolean;
}

export interface Crew {
  /** SIGKILL for one that chance picks; false: nobody has worked long enough. */
  kill(): Promise<boolean>;
  /** SIGSTOP for one until its lease is over. The storm goes on while it stands still. */
  stop(): Promise<boolean>;
  /** Sets the wall clock of one forward or back. */
  moveClock(ms: number): Promise<boolean>;
  /** Keys of which a caller was told "in doubt" since it was last asked. */
  newDoubts(): readonly string[];
  /** Wakes everybody, asks them to finish, and answers who died before. */
  finish(): Promise<readonly Extract<WorkEntry, { kind: 'died' }>[]>;
  /** Nobody is left behind, whatever happened. */
  disband(): Promise<void>;
}

export interface CrewOptions {
  readonly size: number;
  readonly chance: Chance;
  readonly job: Omit<WorkerJob, 'worker' | 'log' | 'seed'>;
  readonly logOf: (worker: string) => string;
  /** A folder of its own for each worker whose clock can be moved; undefined: none can be. */
  readonly clockOf: ((worker: string) => string) | undefined;
}

export function startCrew({ size, chance, job, logOf, clockOf }: CrewOptions): Crew {
  const deaths: Extract<WorkEntry, { kind: 'died' }>[] = [];
  const { stopMs } = paceOf(job.ledger);
  const births = new Map<number, number>();
  const crew = Array.from({ length: size }, (_, place) => join(place));
  let isOver = false;
  let crash: Error | undefined;

  function join(place: number): Member {
    const birth = (births.get(place) ?? 0) + 1;
    births.set(place, birth);
    const name = `w${place}.${birth}`;
    const clock = clockOf === undefined ? undefined : fakeClock(clockOf(name));
    const process = startNode<WorkerLine>(
      new URL('./worker.ts', import.meta.url),
      { ...job, worker: name, log: logOf(name), seed: chance.whole(2 ** 32) } satisfies WorkerJob,
      clock === undefined ? {} : { env: clock.env },
    );
    const spared = chance.whole(8);
    const member: Member = { name, process, clock, spared, heard: 0, isDead: false, isStopped: false };
    process.ended
      .then(({ code, signal }) => {
        if (isOver && code === 0) return;
        deaths.push({ kind: 'died', at: Date.now(), worker: name });
        // Only we may end it: anything else is a bug, and no storm.
        if (signal !== 'SIGKILL')
          crash ??= new Error(`${name} ended with ${code ?? signal}.\n${process.errors()}`);
      })
      .catch(() => undefined);
    return member;
  }

  async function kill(place: number): Promise<void> {
    const member = crew[place] as Member;
    // Nobody else may pick it, or two would take its place.
    member.isDead = true;
    await member.process.kill();
    if (!isOver) crew[place] = join(place);
  }

  async function stop(place: number): Promise<void> {
    const member = crew[place] as Member;
    member.isStopped = true;
    member.process.signal('SIGSTOP');
    await delay(chance.between(...stopMs));
    // Some never wake up.
    if (chance.is(0.2) && !isOver) return kill(place);
    member.process.signal('SIGCONT');
    member.isStopped = false;
  }

  function pick(): number | undefined {
    if (crash !== undefined) throw crash;
    const places = [...crew.keys()].filter((place) => {
      const { process, spared, isDead, isStopped } = crew[place] as Member;
      return !isDead && !isStopped && process.lines.length > spared;
    });
    return places.length === 0 ? undefined : chance.pick(places);
  }

  return {
    async kill() {
      const place = pick();
      if (place !== undefined) await kill(place);
      return place !== undefined;
    },
    async stop() {
      const place = pick();
      if (place !== undefined) stop(place).catch(() => undefined);
      return place !== undefined;
    },
    async moveClock(ms) {
      const place = pick();
      if (place !== undefined) crew[place]?.clock?.move(ms);
      return place !== undefined;
    },
    newDoubts() {
      const keys = crew.flatMap((member) => {
        const lines = member.process.lines.slice(member.heard);
        member.heard += lines.length;
        return lines.flatMap((line) => ('doubt' in line && line.doubt !== undefined ? [line.doubt] : []));
      });
      return [...new Set(keys)];
    },
    async finish() {
      isOver = true;
      for (const { process } of crew) process.signal('SIGCONT');
      await Promise.all(crew.map(({ process }) => process.finish()));
      if (crash !== undefined) throw crash;
      return deaths;
    },
    async disband() {
      isOver = true;
      await Promise.all(crew.map(({ process }) => process.kill()));
    },
  };
}
