// One history: a few processes, a few intents, faults for a while, then none, recovery, and the checker's word.

import type { Call, StepWork } from '../../src/call/index.ts';
import type { Contract } from '../../src/core/contract/contract.ts';
import { isSemelError } from '../../src/core/errors.ts';
import type { StoredRecord } from '../../src/store/store.ts';
import { type Asked, type FinalCall, makeCall } from './callers.ts';
import { chance as chanceOf } from './chance.ts';
import { check } from './checker.ts';
import { makePlan, type Plan } from './contracts.ts';
import { contractNumbers, describe, quietTermsIn } from './described.ts';
import { createEchoes } from './echoes.ts';
import { createFaults, type Faults, pickProfile } from './faults.ts';
import { countFeatures } from './features.ts';
import { type CallLog, createLog, overrunMs, type Violation } from './log.ts';
import type { NetworkOptions, Outage } from './network.ts';
import { operate } from './operators.ts';
import { createScheduler, drain, Endless, type Owner, stamp } from './scheduler.ts';
import type { Sim } from './sim.ts';
import { runStep, takeSteps } from './steps.ts';
import { createStoreHost } from './store-host.ts';
import { createStoreTime } from './store-time.ts';
import type { Table } from './table.ts';
import { toolFor } from './tools.ts';
import { recordKeyOf, simulatedFetch } from './wire.ts';
import type { Wish } from './wishes.ts';
import { startWorker, type Worker } from './worker.ts';
import { createWorld } from './world.ts';

export interface Outcome {
  readonly seed: number;
  readonly profile: string;
  readonly violations: readonly Violation[];
  readonly events: number;
  readonly effects: number;
  /** One number per contract that was generated for it. */
  readonly contracts: readonly number[];
  /** How calls were answered. */
  readonly told: readonly string[];
  /** A number that depends on every event, effect and answer. */
  readonly fingerprint: number;
}

export interface HistoryOptions {
  readonly seed: number;
  readonly table: Table;
  /** Faults are added to it. */
  readonly faultCounts: Float64Array;
  readonly features?: Float64Array;
  readonly trace?: (line: string) => void;
}

/** A history belongs to one log at a time: what production code rejects and nobody handles is its violation. */
let current: ((error: unknown) => void) | undefined;
process.on('unhandledRejection', (error) => {
  if (current === undefined) throw error;
  current(error);
});

const day = 24 * 3_600_000;

export function runHistory({ seed, table, faultCounts, features, trace }: HistoryOptions): Outcome {
  const chance = chanceOf(seed);
  const profile = pickProfile(chance);
  const faults = createFaults(chance, profile);
  const scheduler = createScheduler(trace);
  const log = createLog();
  current = (error) =>
    log.violated('no rejection is left unhandled', String((error as Error)?.stack ?? error));
  const time = createStoreTime(scheduler);
  const plans = Array.from({ length: chance.pick([1, 1, 1, 2]) }, (_, index) =>
    makePlan(chance, index + 1, profile.bias),
  );
  const hasForms = plans.some(({ versions }) => versions.length > 1);
  const host = createStoreHost({
    scheduler,
    time,
    table,
    log,
    trace,
    quietTerms: quietTermsIn(plans),
    hasForms,
  });
  const world = createWorld(scheduler, chance, faults, log);
  const workers: Worker[] = [];
  const sim: Sim = {
    chance,
    scheduler,
    faults,
    log,
    world,
    host,
    plans,
    workers,
    derived: new Map(),
    onTheWire: new Map(),
    besides,
    takeSteps,
    taken: new Map(),
    trace,
  };
  const echoes = createEchoes({ scheduler, chance, faults, host, log });
  const network: NetworkOptions = {
    scheduler,
    chance,
    faults,
    outages: outagesOf(sim),
    store: host.store,
    echoes,
    log,
    processes: new Map(),
  };
  const fates = new Map<Owner, Fate>();
  const finals: FinalCall[] = [];
  trace?.(`seed ${seed}, profile ${profile.name}`);
  if (trace !== undefined) for (const plan of plans) for (const line of describe(plan)) trace(line);

  let starts = 0;
  function start(slot: number): Worker {
    starts += 1;
    const runs = (worker: Worker, work: StepWork, call: Call) => runStep(sim, worker, work, call);
    const worker = startWorker(`p${starts}`, network, runs, {
      isCaching: chance.happens(0.5),
      isNear: chance.happens(0.5),
    });
    if (faults.active) fates.set(worker, fateOf(sim));
    workers[slot] = worker;
    return worker;
  }

  function crash(slot: number): void {
    if (!(workers[slot] as Worker).alive) return;
    faults.count('crash');
    end(slot);
  }

  function end(slot: number): void {
    const dead = workers[slot] as Worker;
    dead.alive = false;
    trace?.(`${stamp(scheduler.now)} ${dead.name} dies`);
    scheduler.after(chance.between(5, 6_000), undefined, `a process takes the place of ${dead.name}`, () =>
      restart(slot, dead),
    );
  }

  function restart(slot: number, dead: Worker): void {
    if (workers[slot] !== dead) return;
    start(slot);
    // A queue delivers again what was not acknowledged.
    for (const call of log.calls)
      if (call.worker === dead && call.told === undefined && call.home === undefined && chance.happens(0.8))
        makeCall(sim, { ...call.asked, slot, byHand: false, final: false });
  }

  /** It gives what it runs a while, ends it, and exits; some programs go on for a while with other work. */
  async function close(worker: Worker): Promise<void> {
    if (worker.isClosing === true || !faults.active) return;
    faults.count('process closed');
    const goesOnMs = chance.happens(0.5) ? chance.between(0, 100) : chance.between(100, 60_000);
    // A store that does not answer is reported, and ends no program later than `close` says.
    await worker.close(chance.pick([0, 0, 500, 10_000])).catch((error: unknown) => {
      if (!isSemelError(error, 'STORE_UNAVAILABLE')) throw error;
    });
    scheduler.after(goesOnMs, worker, 'exits', () => end(workers.indexOf(worker)));
  }

  function before(owner: Owner): void {
    const fate = fates.get(owner);
    if (fate === undefined || !faults.active) return;
    fate.events += 1;
    if (fate.events === fate.crashAt) crash(workers.indexOf(owner as Worker));
    else if (fate.events === fate.stopAt) {
      faults.count(fate.sleeps ? 'sleep' : 'pause');
      if (fate.sleeps) scheduler.sleep(owner, fate.stopMs);
      else owner.stoppedUntil = scheduler.now + fate.stopMs;
      trace?.(
        `${stamp(scheduler.now)} ${owner.name} ${fate.sleeps ? 'sleeps' : 'is stopped'} for ${fate.stopMs} ms`,
      );
    }
  }

  function askLater(atMs: number, asked: Omit<Asked, 'slot'>): void {
    scheduler.after(atMs, undefined, `a call of ${asked.plan.name} is due`, () => {
      const up = workers.flatMap((worker, slot) => (isUp(worker) ? [slot] : []));
      if (up.length === 0) return;
      const slot = chance.pick(up);
      const make = () => {
        const call = makeCall(sim, { ...asked, slot });
        if (asked.final) finals.push({ call, plan: asked.plan });
      };
      const worker = workers[slot] as Worker;
      // A process that stands still calls nobody before it goes on.
      if (worker.stoppedUntil > scheduler.now) scheduler.after(0, worker, 'a call was due', make);
      else make();
    });
  }

  function plan(): void {
    const workersCount = chance.pick([1, 2, 2, 3]);
    for (let slot = 0; slot < workersCount; slot += 1) start(slot);
    const burst = chance.happens(0.5);
    for (let made = 0; made < profile.calls; made += 1) {
      const plan = chance.pick(plans);
      const at = burst && made < 3 ? chance.between(0, 60) : chance.between(0, profile.chaosMs);
      const byHand = !plan.hasPrepare && chance.happens(0.12);
      askLater(at, { plan, wish: wishOf(plan), caller: callerOf(plan), byHand, final: false });
    }
    times(profile.operator, () => withWorker('an operator looks', (worker) => act(worker, false)));
    times(profile.prune, () =>
      withWorker('retention runs', (worker) => worker.records.prune().catch(ignored)),
    );
    times(0.5, () => withWorker('a sweep runs', (worker) => swept(worker)));
    times(profile.crash / 3, () => withWorker('closes', close));
    times(profile.clockJump, jump);
    if (chance.happens(profile.crash * 0.06))
      scheduler.after(chance.between(0, profile.chaosMs), undefined, 'the machine is started again', reboot);
    scheduler.after(profile.chaosMs, undefined, 'faults stop', heal);
  }

  /** Mostly the first one, so that calls meet. */
  function wishOf({ wishes }: Plan): Wish {
    return chance.happens(0.65) ? (wishes[0] as Wish) : chance.pick(wishes);
  }

  function callerOf({ callers }: Plan): string | undefined {
    return chance.happens(0.6) ? callers[0] : chance.pick(callers);
  }

  /** On average this often, at any time while faults go on. */
  function times(average: number, what: () => void): void {
    const count = Math.floor(average) + (chance.happens(average % 1) ? 1 : 0);
    for (let done = 0; done < count; done += 1)
      scheduler.after(chance.between(0, profile.chaosMs), undefined, 'something is due', what);
  }

  function withWorker(label: string, work: (worker: Worker) => Promise<unknown>): void {
    const up = workers.filter(isUp);
    if (up.length === 0) return;
    const worker = chance.pick(up);
    scheduler.after(0, worker, label, () => void work(worker));
  }

  function act(worker: Worker, thorough: boolean): Promise<unknown> {
    const known = [...log.keys.keys()];
    if (known.length === 0) return Promise.resolve();
    return operate(sim, worker, chance.pick(known), thorough);
  }

  async function besides(plan: Plan, worker: Worker, { asked }: CallLog): Promise<void> {
    if (!plan.nests || !faults.active || !chance.happens(0.4)) return;
    const [outer, inner] = plans;
    if (plan !== outer || inner === undefined || chance.happens(0.4)) {
      await swept(worker);
      return;
    }
    const slot = workers.indexOf(worker);
    // As `call/modes/inner-calls.ts` does: calls from inside a run are the outer caller's, unless they say otherwise.
    const words = { wish: wishOf(inner), caller: callerOf(inner) ?? asked.caller };
    await makeCall(sim, { ...words, plan: inner, slot, byHand: false, final: false }).over;
  }

  function swept(worker: Worker): Promise<unknown> {
    const sweep = { worker, from: scheduler.now, until: Number.POSITIVE_INFINITY };
    log.sweeps.push(sweep);
    return worker
      .sweep((name) => {
        const plan = plans.find((each) => {
          const { contract } = worker.deployed(each);
          return contract.name === name || contract.was.some((form) => form.name === name);
        });
        if (plan === undefined) return undefined;
        const { contract } = worker.deployed(plan);
        return toolFor(sim, plan, contract, worker, (mark) => sweeping(plan, contract, worker, mark()));
      }, chance.happens(0.8))
      .catch(ignored)
      .finally(() => {
        sweep.until = scheduler.now;
      });
  }

  /** A run of a sweep stands for the call that the record was made for. */
  async function sweeping(plan: Plan, contract: Contract, worker: Worker, mark: string): Promise<CallLog> {
    const recordKey = await recordKeyOf(sim, mark);
    const known = log.keyLog(recordKey);
    const first = known.wanted.get(known.attempts.at(-1)?.generation ?? 0) as CallLog;
    return {
      ...first,
      id: 'sweep',
      contract,
      asked: { ...first.asked, plan },
      key: recordKey,
      sent: [],
      sentAt: undefined,
      returned: false,
      gaveUp: false,
      waitsFor: undefined,
      askedAt: scheduler.now,
      told: undefined,
      found: false,
      toldAt: 0,
      threw: false,
      worker,
    };
  }

  function jump(): void {
    if (!faults.active) return;
    const by = chance.pick([-30 * day, -day, -3_600_000, 3_600_000, day, 30 * day]);
    if (chance.happens(0.6)) {
      faults.count('store clock jump');
      time.setOffset(by);
      trace?.(`${stamp(scheduler.now)} the store's wall clock is off by ${by}`);
      if (chance.happens(0.6))
        scheduler.after(chance.between(1_000, 60_000), undefined, "the store's clock is corrected", () =>
          time.setOffset(0),
        );
    } else {
      faults.count('client clock jump');
      chance.pick(workers).clockOffset = by;
    }
  }

  function reboot(): void {
    if (!faults.active) return;
    faults.count('reboot');
    for (const slot of workers.keys()) crash(slot);
    time.reboot();
  }

  function heal(): void {
    faults.active = false;
    time.setOffset(0);
    for (const [slot, worker] of workers.entries()) {
      scheduler.wake(worker);
      worker.clockOffset = 0;
      if (worker.isClosing === true) worker.alive = false;
      if (!worker.alive) restart(slot, worker);
    }
    const contracts = plans.flatMap(({ versions }) =>
      versions.map((version) => version.contracts[0] as Contract),
    );
    const longest = Math.max(...contracts.map(inFlightForMs)) + 15_000;
    // Between the last sweep, which may run a record again with all its tries, and the calls that must be answered.
    const lastTriesMs = 60_000 + Math.max(...contracts.map(pausesMs));
    for (const plan of plans) {
      const [wish, ...others] = plan.wishes as [Wish, ...Wish[]];
      const caller = callerOf(plan);
      if (chance.happens(0.6)) askLater(12_000, { plan, wish, caller, byHand: false, final: false });
      askLater(15_000 + longest + lastTriesMs, { plan, wish, caller, byHand: false, final: true });
      if (plan.callerKey !== undefined) continue;
      for (const other of others)
        if (chance.happens(0.4))
          askLater(15_000 + longest + lastTriesMs, { plan, wish: other, caller, byHand: false, final: true });
    }
    if (chance.happens(0.5))
      scheduler.after(13_000 + longest, undefined, 'the last sweep', () => withWorker('a sweep runs', swept));
    scheduler.after(14_000 + longest, undefined, 'the last look', () => {
      for (const key of log.keys.keys())
        if (chance.happens(0.8)) withWorker('an operator looks', (worker) => operate(sim, worker, key, true));
    });
    if (chance.happens(0.3))
      scheduler.after(20_000, undefined, 'retention', () =>
        withWorker('retention runs', (worker) => worker.records.prune()),
      );
  }

  const realFetch = globalThis.fetch;
  globalThis.fetch = simulatedFetch(sim);
  plan();
  try {
    scheduler.run(before);
  } catch (error) {
    // Whatever it is that stops a history, it is not the end that every history must have.
    if (error instanceof Endless) log.violated('STUCK: every history ends', error.message);
    else log.violated('nothing is thrown past a call', String((error as Error)?.stack ?? error));
  }
  check({ log, faults, finals, records: lookAt(host, log.keys.keys()) });
  globalThis.fetch = realFetch;
  current = undefined;
  if (features !== undefined) for (const plan of plans) countFeatures(features, plan);
  add(faultCounts, faults);
  return {
    seed,
    profile: profile.name,
    violations: log.violations,
    events: scheduler.events,
    effects: log.effects.length,
    contracts: plans.flatMap(contractNumbers),
    told: log.calls.map(({ told }) => (told === undefined ? 'nothing' : told.ok ? 'ok' : told.error.code)),
    fingerprint: fingerprintOf(sim),
  };
}

interface Fate {
  events: number;
  readonly crashAt: number;
  readonly stopAt: number;
  readonly stopMs: number;
  readonly sleeps: boolean;
}

/** When a process dies or is stopped is counted in its own events, so that every place between two is as likely. */
function fateOf({ chance, faults: { profile }, plans }: Sim): Fate {
  const leaseMs = chance.pick(plans).versions[0]?.contracts[0]?.leaseMs ?? 0;
  const never = Number.POSITIVE_INFINITY;
  const sleeps = chance.happens(0.5);
  return {
    events: 0,
    crashAt: chance.happens(profile.crash) ? chance.between(1, 24) : never,
    stopAt: chance.happens(profile.pause) ? chance.between(1, 24) : never,
    // A machine may sleep for longer than anything is waited for.
    stopMs: Math.round(leaseMs * (0.6 + 4 * chance.fraction())) * (sleeps ? chance.pick([1, 10]) : 1),
    sleeps,
  };
}

function outagesOf({ chance, faults: { profile } }: Sim): Outage[] {
  if (!chance.happens(profile.outage)) return [];
  return Array.from({ length: chance.between(1, 3) }, () => {
    const from = chance.between(0, Math.min(profile.chaosMs, 20_000));
    return { from, to: from + chance.between(20, 6_000), after: chance.happens(0.5) };
  });
}

/** When nothing of an attempt can be on its way any more, however it ended. */
const inFlightForMs = ({ inFlightForMs, timeoutMs, leaseMs }: Contract) =>
  inFlightForMs + (Number.isFinite(timeoutMs) ? timeoutMs + overrunMs(timeoutMs) : leaseMs);

/** What all tries of an attempt wait for at most, one after the other. */
function pausesMs({ retry: { tries, backoffMs, maxBackoffMs } }: Contract): number {
  let sum = 0;
  for (let pause = 0; pause < tries - 1; pause += 1) sum += Math.min(maxBackoffMs, backoffMs * 2 ** pause);
  return sum;
}

function lookAt(host: Sim['host'], keys: Iterable<string>): Map<string, StoredRecord | undefined> {
  const records = new Map<string, StoredRecord | undefined>();
  for (const key of keys) void host.look(key).then((record) => records.set(key, record));
  drain();
  return records;
}

const ignored = () => undefined;

const isUp = ({ alive, isClosing }: Worker) => alive && isClosing !== true;

function add(sum: Float64Array, { counts }: Faults): void {
  for (let at = 0; at < counts.length; at += 1) sum[at] = (sum[at] as number) + (counts[at] as number);
}

function fingerprintOf({ scheduler, log }: Sim): number {
  let word = scheduler.fingerprint ^ log.effects.length;
  for (const { told, toldAt } of log.calls) {
    const text = told === undefined ? '-' : told.ok ? 'ok' : told.error.code;
    for (let at = 0; at < text.length; at += 1) word = Math.imul(word ^ text.charCodeAt(at), 16777619);
    word = Math.imul(word ^ toldAt, 16777619);
  }
  return word >>> 0;
}
