// Which store is meant: an object, a database handle, a URL, `SEMEL_STORE`, or the ledger of the user.

import type { Clock, Random } from '../../core/clock.ts';
import { SemelError } from '../../core/errors.ts';
import { looksLikeServer, postgresExample, readAddress, redisExample } from '../../store/address.ts';
import { memoryStore } from '../../store/memory.ts';
import type { Store } from '../../store/store.ts';
import type { PostgresClient } from '../../stores/postgres/index.ts';
import type { RedisClient } from '../../stores/redis/index.ts';
import type { SqliteLike } from '../../stores/sqlite/index.ts';
import { environmentText } from './environment.ts';

export type StoreChoice = Store | SqliteLike | PostgresClient | RedisClient | string;

export function storeOf(choice: StoreChoice | undefined, clock: Clock, random: Random): Store {
  const chosen = choice ?? environmentText('SEMEL_STORE') ?? 'sqlite:';
  if (typeof chosen === 'string') return storeUnder(chosen, { clock, random });
  const isThing = (typeof chosen === 'object' || typeof chosen === 'function') && chosen !== null;
  if (!isThing) throw unknownStore(`${String(chosen)} is none`);
  if ('claim' in chosen) return chosen;
  if ('prepare' in chosen)
    return later(async () => (await sqlite()).sqliteStore({ database: chosen, clock, random }));
  if ('query' in chosen || 'unsafe' in chosen)
    return later(async () => (await postgres()).postgresStore({ client: chosen, clock, random }));
  if (typeof chosen === 'object' && ('call' in chosen || 'sendCommand' in chosen))
    return later(async () => (await redis()).redisStore({ client: chosen, clock, random }));
  throw unknownStore('this object is neither a store nor a client of a database that semel knows');
}

interface StoreAtOptions {
  readonly clock?: Clock;
  readonly random?: Random;
  /** False: what is not there yet is not made, and what is old is left so. SQLite makes and mends its file anyway. */
  readonly migrate?: boolean;
}

/** The store itself, with all that its kind can do. Nothing is opened. */
export function storeAt(url: string, options: StoreAtOptions = {}): Promise<Store> {
  return makerOf(url, options)();
}

/** The same, made when it is first used. */
export function storeUnder(url: string, options: StoreAtOptions): Store {
  if (url === 'memory:') return memoryStore(options);
  return later(makerOf(url, options));
}

function makerOf(url: string, { migrate, ...options }: StoreAtOptions): () => Promise<Store> {
  if (url === 'memory:') return async () => memoryStore(options);
  if (url.startsWith('sqlite:')) {
    const path = url.slice('sqlite:'.length);
    if (path === ':memory:') throw unknownStore("SQLite's own memory is none; 'memory:' is");
    // Not repeated: it may hold a password.
    if (looksLikeServer(path)) throw unknownStore('sqlite: takes a path, and this looks like a host');
    return async () => (await sqlite()).sqliteStore({ ...(path === '' ? {} : { path }), ...options });
  }
  if (/^postgres(ql)?:\/\//.test(url)) {
    readAddress(url, postgresExample);
    const said = {
      ...options,
      ...(migrate === undefined ? {} : { migrate }),
      ...saidIn(url, 'schema', 'durability'),
    };
    return async () => (await postgres()).postgresStore(said);
  }
  if (/^rediss?:\/\//.test(url)) {
    readAddress(url, redisExample);
    const said = { ...options, ...saidIn(url, 'prefix', 'durability') };
    return async () => (await redis()).redisStore(said);
  }
  const [, kind] = /^([a-z][a-z0-9+.-]{0,15}):/i.exec(url) ?? [];
  throw unknownStore(
    kind === undefined
      ? 'its address does not begin with a kind of store'
      : `${JSON.stringify(kind)} is not a kind of store`,
  );
}

/** `?schema=…`, `?prefix=…` and `?durability=…` are ours; a database knows no such parameters. */
function saidIn(url: string, ...names: readonly string[]): { url: string; [name: string]: string } {
  const said: { url: string; [name: string]: string } = { url };
  for (const name of names) {
    const [, before, value, after] =
      new RegExp(`^([^?]*\\?(?:.*&)?)${name}=([^&]*)&?(.*)$`).exec(said.url) ?? [];
    if (before === undefined || value === undefined) continue;
    said.url = (before + (after ?? '')).replace(/[?&]$/, '');
    said[name] = decodeURIComponent(value);
  }
  return said;
}

function unknownStore(why: string): SemelError {
  return new SemelError('CONTRACT_INVALID', `The store cannot be used: ${why}.`, {
    path: 'store',
    next: "Pass 'sqlite:path/to/ledger.db', 'postgres://…', 'redis://…', 'memory:', a client of a database, or a store.",
  });
}

/** Loaded on first use, so that a program that brings its own store does not load another. */
const sqlite = () => import('../../stores/sqlite/index.ts');
const postgres = () => import('../../stores/postgres/index.ts');
const redis = () => import('../../stores/redis/index.ts');

/** A store that is made on first use. From then on its methods are those of the store itself. */
function later(make: () => Promise<Store>): Store {
  let made: Promise<Store> | undefined;
  const store = () => {
    made ??= make().then((present) => Object.assign(lazy, present));
    return made;
  };
  const lazy: Store = {
    open: async () => (await store()).open(),
    claim: async (request) => (await store()).claim(request),
    renew: async (request) => (await store()).renew(request),
    dispatch: async (request) => (await store()).dispatch(request),
    clear: async (request) => (await store()).clear(request),
    settle: async (request) => (await store()).settle(request),
    resolve: async (request) => (await store()).resolve(request),
    read: async (namespace, key) => (await store()).read(namespace, key),
    list: async (query) => (await store()).list(query),
    append: async (events) => (await store()).append(events),
    history: async (namespace, key) => (await store()).history(namespace, key),
    namespaces: async () => (await store()).namespaces(),
    prune: async (limit) => (await store()).prune(limit),
    countExpired: async () => (await store()).countExpired(),
    close: async () => {
      // What could not be made was told to the caller that asked; here it would hide that error behind a second one.
      const present = await made?.catch(() => undefined);
      await present?.close();
    },
  };
  return lazy;
}
