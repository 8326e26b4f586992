// One process of the simulation: the production ledger and pipeline, on a clock, chance and network of its own.

import {
  type Call,
  createPipeline,
  type KeyUse,
  newKeyUse,
  type Pipeline,
  type StepWork,
  type Tool,
} from '../../src/call/index.ts';
import type { Clock, Random } from '../../src/core/clock.ts';
import type { Contract } from '../../src/core/contract/contract.ts';
import type { StandardSchema } from '../../src/core/contract/standard-schema.ts';
import { createLedger } from '../../src/ledger/index.ts';
import { createCallFactory } from '../../src/semel/calls/call-factory.ts';
import type { CallOptions } from '../../src/semel/definition.ts';
import { createRecords, type Doubts, type Records } from '../../src/semel/records/records.ts';
import { sweep } from '../../src/semel/sweep.ts';
import { createStepTool, createToolbox } from '../../src/semel/toolbox.ts';
import type { Chance } from './chance.ts';
import type { Plan, Version } from './contracts.ts';
import { connect, type NetworkOptions } from './network.ts';
import type { Owner, Scheduler, Timer } from './scheduler.ts';
import { namespace } from './store-host.ts';
import { epoch } from './store-time.ts';

export interface Worker extends Owner {
  /** By how much its wall clock is off. */
  clockOffset: number;
  readonly pipeline: Pipeline;
  readonly clock: Clock;
  readonly records: Records;
  readonly doubts: Doubts;
  call(tool: Tool, schema: StandardSchema | undefined, args: unknown, options: CallOptions): Promise<Call>;
  /** What of a tool this process was started with. */
  deployed(plan: Plan): Deployed;
  /** What this process has seen of a tool's keys. */
  keyUseOf(contract: Contract): KeyUse;
  sweep(toolOf: (contract: string) => Tool | undefined, execute: boolean): Promise<unknown>;
  close(graceMs: number): Promise<void>;
}

export interface Deployed {
  readonly version: Version;
  readonly contract: Contract;
}

const maxBytes = 100_000;
const limits = { maxArgsBytes: maxBytes, maxStoredArgsBytes: maxBytes, maxDepth: 10 };

export interface Setting {
  readonly isCaching: boolean;
  /** Its store is embedded: it can be glanced at. */
  readonly isNear: boolean;
}

/** Makes the call of a step. */
export type StepRunner = (worker: Worker, work: StepWork, call: Call) => Promise<unknown>;

const notHere = () => {
  throw new Error('Only steps are made by this toolbox.');
};

export function startWorker(
  name: string,
  network: NetworkOptions,
  runStep: StepRunner,
  { isCaching, isNear }: Setting,
): Worker {
  const { scheduler, chance, processes } = network;
  const owner: Owner & { clockOffset: number } = { name, alive: true, stoppedUntil: 0, clockOffset: 0 };
  const number = Number(name.slice(1));
  const mark = number.toString(16).padStart(12, '0');
  processes.set(mark, owner);
  const clock = clockOf(scheduler, owner);
  const deployments = new Map<Plan, Deployed>();
  const keyUses = new Map<Contract, KeyUse>();
  const random = randomOf(chance);
  const ledger = createLedger({
    store: connect(network, owner, isNear),
    clock,
    random,
    cache: { maxBytes: isCaching ? 100_000 : 0, maxAgeMs: 5_000 },
  });
  const pipeline = createPipeline({
    ledger,
    clock,
    random,
    // One host, and process ids repeat: neither may tell two claims apart.
    owner: 'host:1',
    provableOwner: `host:1~${mark}`,
    loneOwner: `host:1~${mark}.alone`,
    // Only some machines can tell.
    isDead: (other) => number % 3 !== 0 && processes.get(other.slice(7, 19))?.alive === false,
    maxResultBytes: maxBytes,
    mayRunUnguarded: true,
    warn: () => undefined,
    async runStep(step) {
      const tool = createStepTool(toolbox, step);
      return runStep(owner as Worker, step.work, await calls.make(tool, undefined, { of: step.of }, {}));
    },
  });
  const toolbox = createToolbox({
    defaults: {},
    isDevelopment: false,
    warnOnce: () => undefined,
    prepare: notHere,
    entry: { run: notHere },
    clone: notHere,
  });
  const source = { namespace, address: () => undefined, permissions: [], now: () => clock.now(), limits };
  const calls = createCallFactory(source);
  const records = createRecords({
    ledger,
    namespace,
    clock,
    random,
    user: 'operator',
    login: 'operator',
    maxResultBytes: maxBytes,
  });
  return Object.assign(owner, {
    pipeline,
    clock,
    ...records,
    call: async (tool: Tool, schema: StandardSchema | undefined, args: unknown, options: CallOptions) =>
      calls.make(tool, schema, args, options),
    deployed(plan: Plan): Deployed {
      const known = deployments.get(plan);
      if (known !== undefined) return known;
      const version = chance.pick(plan.versions);
      const made = { version, contract: chance.pick(version.contracts) };
      deployments.set(plan, made);
      return made;
    },
    keyUseOf(contract: Contract): KeyUse {
      const known = keyUses.get(contract) ?? newKeyUse();
      keyUses.set(contract, known);
      return known;
    },
    sweep: (toolOf: (contract: string) => Tool | undefined, execute: boolean) =>
      sweep(ledger, pipeline, namespace, (contract) => knownAs(toolOf(contract)), { execute }),
    async close(graceMs: number) {
      owner.isClosing = true;
      pipeline.closing.addEventListener('abort', () => {
        owner.closedAt = scheduler.now;
      });
      await pipeline.close(graceMs);
      await ledger.close();
    },
  });
}

function knownAs(tool: Tool | undefined) {
  return tool && { tool, schema: undefined, isExternal: false };
}

function clockOf(scheduler: Scheduler, owner: Owner & { clockOffset: number }): Clock {
  return {
    now: () => epoch + scheduler.now + owner.clockOffset,
    mono: () => Math.max(scheduler.now, owner.wakesAt ?? 0) - (owner.asleepMs ?? 0),
    setTimeout: (run, ms) => scheduler.after(ms, owner, 'timer', run),
    clearTimeout: (timer) => scheduler.cancel(timer as Timer | undefined),
  };
}

function randomOf(chance: Chance): Random {
  return {
    token: () => `t${chance.below(0xffffffff).toString(36)}${chance.below(0xffffffff).toString(36)}`,
    fraction: () => chance.fraction(),
  };
}
