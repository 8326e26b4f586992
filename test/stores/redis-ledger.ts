// Ledgers in a real Redis for tests: one prefix each, and a server's clock that stands still until it is moved. Scripts
// are sent with the test's instant in the place of TIME.

import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { scripts } from '../../src/stores/redis/exchange/scripts.ts';
import {
  type RedisClient,
  type RedisStore,
  type RedisStoreOptions,
  redisStore,
} from '../../src/stores/redis/index.ts';

export type Driver = 'ioredis' | 'redis';

export interface RedisLedger {
  readonly prefix: string;
  readonly client: RedisClient;
  open(options?: Partial<RedisStoreOptions>): Promise<RedisStore>;
  /** As it was when it was made, but that fences start at one. */
  empty(): Promise<void>;
  setClock(ms: number): void;
  ask(...command: string[]): Promise<unknown>;
  end(): Promise<void>;
}

let ledgers = 0;

export async function movableLedger(url: string, driver: Driver): Promise<RedisLedger> {
  ledgers += 1;
  const prefix = `ledger-${process.pid}-${ledgers}`;
  let now = 0;
  const { client, ask, end } = await (driver === 'ioredis' ? withIoRedis(url) : withNodeRedis(url));
  const asMoved = (...command: string[]) => {
    const [name, sha, ...rest] = command;
    const instant = [String(Math.floor(now / 1000)), String((now % 1000) * 1000)];
    if (name === 'time') return Promise.resolve(instant);
    const script = name === 'evalsha' && scripts.find((one) => one.sha === sha);
    if (!script) return ask(...command);
    return ask('eval', script.text.replace("redis.call('TIME')", `{${instant.join()}}`), ...rest);
  };
  const movable = (
    driver === 'ioredis' ? { call: asMoved } : { sendCommand: (command: string[]) => asMoved(...command) }
  ) as RedisClient;
  return {
    prefix,
    client,
    async open(options = {}) {
      const store = redisStore({ client: movable, prefix, ...options });
      await store.open();
      return store;
    },
    async empty() {
      const keys = (await ask('keys', `${prefix}{*`)) as string[];
      if (keys.length > 0) await ask('del', ...keys);
      const store = redisStore({ client: movable, prefix });
      await store.open();
      await store.close();
      await ask('hset', `${prefix}{0}meta`, 'floor', '0');
    },
    setClock(ms) {
      now = ms;
    },
    ask,
    end,
  };
}

async function withIoRedis(url: string) {
  const client = new Redis(url);
  const ask = (...[name, ...args]: string[]) => client.call(name as string, ...args);
  return { client, ask, end: async () => client.disconnect() };
}

async function withNodeRedis(url: string) {
  const client = createClient({ url });
  client.on('error', () => {});
  await client.connect();
  const ask = (...command: string[]) => client.sendCommand(command);
  return { client: client as unknown as RedisClient, ask, end: async () => client.destroy() };
}
