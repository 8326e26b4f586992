// What all actors of one history share.

import type { Call, StepWork } from '../../src/call/index.ts';
import type { Chance } from './chance.ts';
import type { Plan } from './contracts.ts';
import type { Faults } from './faults.ts';
import type { CallLog, Log } from './log.ts';
import type { Scheduler } from './scheduler.ts';
import type { Taken } from './steps.ts';
import type { StoreHost } from './store-host.ts';
import type { OnTheWire, Run, Value } from './wire.ts';
import type { Worker } from './worker.ts';
import type { World } from './world.ts';

export interface Sim {
  readonly chance: Chance;
  readonly scheduler: Scheduler;
  readonly faults: Faults;
  readonly log: Log;
  readonly world: World;
  readonly host: StoreHost;
  readonly plans: readonly Plan[];
  /** The processes that are up; a dead one is replaced in its place. */
  readonly workers: Worker[];
  /** Calls by their words, with key and fingerprint. */
  readonly derived: Map<string, Call>;
  /** Requests that `ctx.fetch` may bring, by their addresses. */
  readonly onTheWire: Map<string, OnTheWire>;
  /** What a run of this tool does besides its own effect: it calls another tool, or sweeps. */
  besides(plan: Plan, worker: Worker, call: CallLog): Promise<void>;
  /** All steps of a run. */
  takeSteps(run: Run): Promise<Value>;
  /** The steps that were taken, by what they do. */
  readonly taken: Map<StepWork, Taken>;
  readonly trace: ((line: string) => void) | undefined;
}
