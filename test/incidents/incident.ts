// What an incident is: something that happened to people, played by real processes, once for each way of doing it.

import type { Ended } from '../processes/node-process.ts';
import type { EffectServer } from '../support/effect-server/index.ts';

/** `bare` is how it was done when it happened; the others are contracts. */
export interface Way {
  readonly name: string;
  readonly effects: number;
  readonly inDoubt: number;
}

export interface Incident {
  readonly title: string;
  /** The file in this folder. */
  readonly file: string;
  /** The shell script that a person would write; without it, the file marks its contract. */
  readonly script?: string;
  readonly happened: string;
  /** What semel does about it, where neither the contract nor the numbers say so. */
  readonly answer?: string;
  /** How many effects should land. */
  readonly wanted: number;
  /** The first one is `bare`. */
  readonly ways: readonly Way[];
  readonly targets?: Parameters<EffectServer['behave']>[1];
  /** Plays it in one way. */
  readonly play: (stage: Stage) => Promise<void>;
}

export interface Job {
  readonly way: string;
  readonly url: string;
  readonly ledger: string;
  readonly folder: string;
}

export interface Actor {
  readonly ended: Promise<Ended>;
  line(isWanted: (line: unknown) => boolean): Promise<unknown>;
  finish(): Promise<Ended>;
}

export interface Stage {
  readonly way: string;
  readonly server: EffectServer;
  readonly folder: string;
  /** Starts one process of the incident: its own file, with the job and what is said here. */
  start(part?: Record<string, unknown>, where?: Where): Actor;
  /** The same, to its end. It ends well, or is killed by itself where that is its part. */
  act(part?: Record<string, unknown>, where?: Where): Promise<Ended>;
}

export interface Where {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}
