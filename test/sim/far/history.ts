// One history of several clients of one far store: a seed is a history. Answers with what is wrong in it.

import type { Clock } from '../../../src/core/clock.ts';
import { remoteStore } from '../../../src/store/remote/remote-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { remoteMemoryBackend } from '../../stores/remote-memory-backend.ts';
import { type Chance, chance as chanceOf } from '../chance.ts';
import { createScheduler, Endless, type Owner, type Scheduler } from '../scheduler.ts';
import { ask, type Call, keysOf } from './calls.ts';
import { type Belief, connect, type Entry, type Journal, type Weather } from './network.ts';
import { allKeys, namespace, people } from './people.ts';
import { replay } from './replay.ts';

export interface Asked {
  readonly client: string;
  readonly call: Call;
  readonly keys: readonly string[];
  /** The journal's length when it was asked. */
  readonly since: number;
  /** By the store's clock. */
  readonly askedAt: number;
  /** No clock was moved, and no machine slept, until it was asked. */
  readonly isSteadySoFar: boolean;
  answer?: { readonly value: unknown; readonly by: number | undefined; readonly order: number };
  error?: unknown;
  /** The journal's length when it ended. */
  until: number;
}

export interface Told {
  readonly events: number;
  readonly calls: number;
  readonly answers: number;
  readonly swaps: number;
  /** Swaps that were done and whose answer never came. */
  readonly unheard: number;
  /** Exchanges that answered more than one call about the same keys. */
  readonly folded: number;
  /** Jumps of the store's clock. */
  readonly jumps: number;
  readonly violations: readonly string[];
}

const toleranceMs = 2 * 60_000;
const epoch = Date.UTC(2026, 5, 19);

const weathers: readonly Weather[] = [
  { lost: 0, twice: 0, late: 0, way: [1, 15] },
  { lost: 0.05, twice: 0.1, late: 0.1, way: [1, 15] },
  { lost: 0.15, twice: 0.3, late: 0.3, way: [1, 200] },
  { lost: 0.02, twice: 0.1, late: 0.05, way: [900, 3_000] },
];

const pauses = [0, 0, 0, 0, 1, 8, 60, 500, 1_990, 2_100, 6_000, 65_000] as const;

export function runFarHistory(seed: number, trace?: (line: string) => void): Told {
  const chance = chanceOf(seed);
  const scheduler = createScheduler(trace);
  const journal: Journal = { entries: [], hearing: undefined };
  const weather = chance.pick(weathers);
  const hasJumps = chance.happens(0.5);
  const hasLocks = chance.happens(0.2);
  let offMs = 0;
  let isSteadySoFar = true;
  const storeNow = () => epoch + scheduler.now + offMs;
  const far = remoteMemoryBackend(storeNow);
  const wire = { scheduler, chance, weather, far, storeNow, journal };
  const clients = ['ada', 'bob', 'cyd'].map((name) => createClient(name));
  const folk = people(chance, epoch + 60_000);
  const asked: Asked[] = [];
  const violations: string[] = [];
  let order = 0;
  let pruned = 0;
  let jumped = 0;

  let at = 0;
  const calls = chance.between(6, 22);
  for (let nth = 0; nth < calls; nth += 1) {
    at += chance.pick(pauses);
    if (hasJumps && chance.happens(0.12)) later(at, undefined, 'the clock jumps', jump);
    if (hasLocks && chance.happens(0.2)) lockAwhile(at);
    if (chance.happens(0.06)) later(at, undefined, 'prune', () => prune(chance.pick(clients)));
    const client = chance.pick(clients);
    later(at, client.owner, `${client.owner.name} asks`, () => put(client, folk.next()));
  }
  const closing = chance.happens(0.2) ? chance.pick(clients) : undefined;
  if (closing !== undefined) {
    later(at, undefined, `${closing.owner.name} is closed`, () => {
      closing.isClosed = true;
      void closing.store.close().catch(() => {});
    });
  }

  try {
    scheduler.run(() => {});
  } catch (error) {
    if (!(error instanceof Endless)) throw error;
    violations.push(`STUCK: ${error.message}`);
  }
  if (violations.length === 0) {
    for (const { client, call, answer, error } of asked)
      if (answer === undefined && error === undefined) violations.push(`${client}'s ${call.name} has no end`);
    violations.push(...replay({ journal, asked, far, trace }));
  }
  return {
    events: scheduler.events,
    calls: asked.length + pruned,
    answers: asked.filter(({ answer }) => answer !== undefined).length,
    swaps: journal.entries.length,
    unheard: journal.entries.filter(isUnheard).length,
    folded: foldedIn(asked),
    jumps: jumped,
    violations,
  };

  function later(ms: number, owner: Owner | undefined, label: string, run: () => void): void {
    scheduler.after(ms, owner, label, () => {
      journal.hearing = undefined;
      run();
    });
  }

  function createClient(name: string): Client {
    const owner: Owner = { name, alive: true, stoppedUntil: 0 };
    const { clock, sleep, isEven } = clockOf(scheduler, chance, owner, (run) => {
      journal.hearing = undefined;
      run();
    });
    // Clocks that run apart do so within a lease too, and nobody can make up for that.
    if (!isEven) isSteadySoFar = false;
    const belief = beliefOf(clock);
    const store = remoteStore(connect(wire, owner, belief), {
      clock,
      random: { token: () => '', fraction: () => chance.fraction() },
      soon: (run) => later(0, owner, `${name} sends`, run),
    });
    return { owner, store, sleep, isClosed: false };
  }

  function jump(): void {
    isSteadySoFar = false;
    jumped += 1;
    offMs = chance.happens(0.3) ? 0 : offMs + chance.pick(jumps);
    trace?.(`             the store's clock is off by ${offMs}`);
  }

  function lockAwhile(ms: number): void {
    const key = chance.pick(allKeys);
    later(ms, undefined, `${key} is locked`, () => far.lock(namespace, key));
    later(ms + chance.pick([20, 900, 7_000]), undefined, `${key} is free`, () => far.unlock(namespace, key));
  }

  function prune(client: Client): void {
    if (client.isClosed) return;
    pruned += 1;
    void client.store.prune(chance.pick([1, 10])).catch(() => {});
  }

  function put(client: Client, call: Call, tries = 1): void {
    if (client.isClosed) return;
    if (chance.happens(0.03)) {
      isSteadySoFar = false;
      client.sleep(chance.pick([1_000, 30_000, 600_000]));
    }
    const one: Asked = {
      client: client.owner.name,
      call,
      keys: keysOf(call),
      since: journal.entries.length,
      askedAt: storeNow(),
      isSteadySoFar,
      until: Number.POSITIVE_INFINITY,
    };
    asked.push(one);
    trace?.(
      `             ${client.owner.name} asks #${asked.length} ${call.name} ${JSON.stringify(call.request)}`,
    );
    const nth = asked.length;
    ask(client.store, call).then(
      (value) => {
        order += 1;
        one.answer = { value, by: journal.hearing, order };
        one.until = journal.entries.length;
        trace?.(`             #${nth} ⇒ (entry ${journal.hearing}) ${JSON.stringify(value)}`);
        folk.heard(call, value);
      },
      (error: unknown) => {
        one.error = error;
        one.until = journal.entries.length;
        trace?.(`             #${nth} ⇒ ${String(error)}`);
        if (/is closed/.test(String(error)))
          violations.push(`#${nth}: ${call.name} was asked before it was closed, and got no answer`);
        if (tries < 3 && chance.happens(0.6))
          later(chance.pick(pauses), client.owner, 'asks again', () => put(client, call, tries + 1));
      },
    );
  }
}

function isUnheard(entry: Entry, place: number): boolean {
  if (entry.type === 'removal' || entry.sent.heard === place) return false;
  return entry.reply.answers.some(({ done }) => done);
}

function foldedIn(asked: readonly Asked[]): number {
  const groups = new Map<string, number>();
  for (const { keys, answer, call } of asked) {
    if (answer === undefined || call.name === 'read') continue;
    const name = `${answer.by} ${keys.join()}`;
    groups.set(name, (groups.get(name) ?? 0) + 1);
  }
  return [...groups.values()].filter((count) => count > 1).length;
}

interface Client {
  readonly owner: Owner;
  readonly store: Store;
  sleep(ms: number): void;
  isClosed: boolean;
}

const jumps = [-86_400_000, -400_000, -30_000, -1_900, -300, -3, 3, 300, 1_900, 30_000, 400_000, 86_400_000];

/** Clocks of one machine: off from the start, a little too fast or slow, and standing still while it sleeps. */
function clockOf(
  scheduler: Scheduler,
  chance: Chance,
  owner: Owner,
  turn: (run: () => void) => void,
): { readonly clock: Clock; readonly isEven: boolean; sleep(ms: number): void } {
  const wallOff = chance.pick([0, 0, 0, 50_000, -3_000_000]);
  const rate = 1 + chance.pick([0, 0, 5e-5, -5e-5]);
  const base = chance.below(1_000_000);
  let slept = 0;
  return {
    isEven: rate === 1,
    clock: {
      now: () => epoch + scheduler.now + wallOff,
      mono: () => base + (scheduler.now - slept) * rate,
      setTimeout: (run, ms) => scheduler.after(ms, owner, 'a timer', () => turn(run)),
      clearTimeout: (timer) => scheduler.cancel(timer as never),
    },
    sleep(ms) {
      slept += ms;
      owner.stoppedUntil = scheduler.now + ms;
    },
  };
}

/** What a client has to believe of the store's clock and floor, told once more. */
function beliefOf(clock: Clock): { now(): Belief; heard(storeNow: number, floor: number): void } {
  let first: { readonly store: number; readonly mono: number } | undefined;
  let steady = true;
  let highest = 0;
  return {
    now: () => ({ steady, floor: highest }),
    heard(storeNow, floor) {
      const mono = clock.mono();
      first ??= { store: storeNow, mono };
      const isEven = Math.abs(storeNow - first.store - (mono - first.mono)) <= toleranceMs;
      const agrees = Math.abs(storeNow - clock.now()) <= toleranceMs;
      if (!isEven && agrees) first = { store: storeNow, mono };
      steady = isEven || agrees;
      highest = Math.max(highest, floor);
    },
  };
}
