// What the library's tests share: a clock that a test moves, a store that can be taken away, a target that
// answers as told and counts what landed.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, createSemel, type Random, type Semel, type SemelOptions, type Store } from 'semel';
import { memoryStore } from 'semel/memory';
import { afterAll } from 'vitest';

export interface FakeClock extends Clock {
  /** Moves time, firing every timer that falls due on the way, each with its consequences. */
  advance(ms: number): Promise<void>;
  /** Moves both clocks without letting anything run: a blocked event loop, or a process that slept. */
  jump(ms: number): void;
  /** Lets time pass, timer by timer, until the promise has settled. */
  until<T>(promise: Promise<T>): Promise<T>;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/** Enough turns of the event loop for any chain of promises to come to rest. */
export async function rest(): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

export function fakeClock(start = Date.UTC(2026, 5, 19, 9, 2)): FakeClock {
  let passed = 0;
  const timers = new Set<Timer>();

  function nextTimer(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of timers) if (next === undefined || timer.at < next.at) next = timer;
    return next;
  }

  async function fire(timer: Timer): Promise<void> {
    timers.delete(timer);
    passed = Math.max(passed, timer.at);
    timer.run();
    await rest();
  }

  return {
    now: () => start + passed,
    mono: () => 5_000 + passed,
    setTimeout(run, ms) {
      const timer = { at: passed + ms, run };
      timers.add(timer);
      return timer;
    },
    clearTimeout: (timer) => void timers.delete(timer as Timer),
    jump(ms) {
      passed += ms;
    },
    async advance(ms) {
      await rest();
      const to = passed + ms;
      for (let timer = nextTimer(); timer !== undefined && timer.at <= to; timer = nextTimer())
        await fire(timer);
      passed = Math.max(passed, to);
      await rest();
    },
    async until(promise) {
      let settled = false;
      const done = promise.finally(() => {
        settled = true;
      });
      done.catch(() => undefined);
      for (let idle = 0; !settled; ) {
        await rest();
        if (settled) break;
        const timer = nextTimer();
        if (timer !== undefined) {
          idle = 0;
          await fire(timer);
        } else if (++idle > 200) throw new Error('Nothing is left that could settle this promise.');
        else await new Promise((resolve) => setTimeout(resolve, 5));
      }
      return done;
    },
  };
}

/** Tokens that differ, jitter that does not. */
export function plainRandom(): Random {
  let count = 0;
  return { token: () => `t${++count}-${Math.random().toString(36).slice(2)}`, fraction: () => 0.5 };
}

export interface Rig {
  readonly semel: Semel;
  readonly store: FlakyStore;
  readonly clock: FakeClock;
  readonly warnings: string[];
  /** Another process on the same store. */
  another(options?: SemelOptions): Semel;
}

/** A semel on a memory store whose time and whose store the test holds in its hand. */
export function rig(options: SemelOptions = {}): Rig {
  const clock = fakeClock();
  const store = flaky(memoryStore({ clock }));
  const warnings: string[] = [];
  const create = (more: SemelOptions = {}) =>
    createSemel({
      store,
      clock,
      random: plainRandom(),
      namespace: 'test',
      cache: false,
      onWarning: (message) => warnings.push(message),
      ...options,
      ...more,
    });
  return { semel: create(), store, clock, warnings, another: create };
}

/** A semel on real time and a memory store of its own. */
export function quick(options: SemelOptions = {}): Semel {
  return createSemel({ store: 'memory:', namespace: 'test', onWarning: () => undefined, ...options });
}

type Method = keyof Store;

export interface FlakyStore extends Store {
  /** These methods fail until `repair`; without names, all do. */
  break(...methods: Method[]): void;
  repair(): void;
  /** Called before each method that is not broken. */
  before: ((method: Method) => void | Promise<void>) | undefined;
  /** Called when it is done, before its answer is given. */
  after: ((method: Method) => void | Promise<void>) | undefined;
  readonly calls: Method[];
}

/** As a store that has to be waited for: it cannot be glanced at. */
export function flaky(inner: Store): FlakyStore {
  const broken = new Set<Method>();
  const wrapped: Partial<Record<Method, unknown>> = {};
  const calls: Method[] = [];
  for (const method of Object.keys(inner) as Method[]) {
    wrapped[method] = async (...args: unknown[]) => {
      calls.push(method);
      if (broken.has(method)) throw new Error('connection lost');
      await store.before?.(method);
      const answer = await (inner[method] as (...args: unknown[]) => unknown)(...args);
      await store.after?.(method);
      return answer;
    };
  }
  const store: FlakyStore = {
    ...(wrapped as unknown as Store),
    calls,
    before: undefined,
    after: undefined,
    break(...methods) {
      for (const method of methods.length === 0 ? (Object.keys(inner) as Method[]) : methods)
        broken.add(method);
    },
    repair: () => broken.clear(),
  };
  return store;
}

/** The target does not answer when it is first asked whether the effect landed. */
export function afterOutage<Asked extends readonly unknown[], Answer>(verify: (...asked: Asked) => Answer) {
  let isFirst = true;
  return (...asked: Asked): Answer => {
    if (!isFirst) return verify(...asked);
    isFirst = false;
    throw new Error('the target is down');
  };
}

export async function isEmpty({ store }: { store: Store }): Promise<boolean> {
  return (await store.list({ namespace: 'test', limit: 10 })).items.length === 0;
}

/** A promise whose end the test decides. */
export function gate<T = void>() {
  return Promise.withResolvers<T>();
}

export interface Target {
  readonly url: string;
  readonly host: string;
  /** Requests that arrived, with the key that each carried. */
  readonly requests: { method: string; path: string; key: string | undefined; body: string }[];
  close(): Promise<void>;
}

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** `/status/422` answers 422; `/hang` never answers; `/reset` cuts the line after it took the request. */
const usual: Answer = (request, response) => {
  const path = request.url ?? '/';
  const status = /^\/status\/(\d+)/.exec(path)?.[1];
  if (path.startsWith('/hang')) return;
  if (path.startsWith('/reset')) return void request.socket.destroy();
  if (path.startsWith('/cut')) {
    response.writeHead(200, { 'content-length': '100' });
    response.write('half');
    return void setTimeout(() => request.socket.destroy(), 10);
  }
  response.writeHead(Number(status ?? 200), { 'content-type': 'application/json' });
  response.end(JSON.stringify({ path }));
};

const targets: Target[] = [];

export async function target(answer: Answer = usual): Promise<Target> {
  const requests: Target['requests'] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const key = request.headers['idempotency-key'];
      requests.push({
        method: request.method ?? '',
        path: request.url ?? '',
        key: Array.isArray(key) ? key[0] : key,
        body,
      });
      answer(request, response, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const made: Target = {
    url: `http://127.0.0.1:${port}`,
    host: `127.0.0.1:${port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  targets.push(made);
  return made;
}

/** An address at which nobody listens. */
export async function deafAddress(): Promise<string> {
  const { url, close } = await target();
  await close();
  return url;
}

afterAll(async () => {
  for (const each of targets) await each.close();
});

/** What a dead process asks is never answered. */
export function mortal(store: Store, life: { isDead: boolean }): Store {
  const forever = () => new Promise<never>(() => undefined);
  return new Proxy(store, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]) => {
        if (life.isDead) return forever();
        const asked = (method as (...args: unknown[]) => Promise<unknown>)(...args);
        return asked.then((answer) => (life.isDead ? forever() : answer));
      };
    },
  });
}
