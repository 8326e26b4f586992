// Resolves the store: an object, a database client, a URL, `SEMEL_STORE`, or the user's default ledger.

import type { Clock, Random } from '../../core/clock.ts';
import { SemelError } from '../../core/errors.ts';
import {
  dynamodbExample,
  looksLikeServer,
  postgresExample,
  readAddress,
  redisExample,
  s3Example,
} from '../../store/address.ts';
import { memoryStore } from '../../store/memory.ts';
import type { Store } from '../../store/store.ts';
import type { PostgresClient } from '../../stores/postgres/index.ts';
import type { RedisClient } from '../../stores/redis/index.ts';
import type { SqliteLike } from '../../stores/sqlite/index.ts';
import { readEnvironment } from './environment.ts';
import { moduleScheme, storeFromModule } from './store-module.ts';

export type StoreChoice = Store | SqliteLike | PostgresClient | RedisClient | string;

export function resolveStore(choice: StoreChoice | undefined, clock: Clock, random: Random): Store {
  const chosen = choice ?? readEnvironment('SEMEL_STORE') ?? 'sqlite:';
  if (typeof chosen === 'string') return lazyStoreAt(chosen, { clock, random });
  const isThing = (typeof chosen === 'object' || typeof chosen === 'function') && chosen !== null;
  if (!isThing) throw unusableStore(`${String(chosen)} is not a store`);
  if ('claim' in chosen) return chosen;
  if ('prepare' in chosen)
    return createLazy(async () => (await sqlite()).sqliteStore({ database: chosen, clock, random }));
  if ('query' in chosen || 'unsafe' in chosen)
    return createLazy(async () => (await postgres()).postgresStore({ client: chosen, clock, random }));
  if (typeof chosen === 'object' && ('call' in chosen || 'sendCommand' in chosen))
    return createLazy(async () => (await redis()).redisStore({ client: chosen, clock, random }));
  throw unusableStore('this object is neither a store nor a client of a database that semel knows');
}

interface StoreAtOptions {
  readonly clock?: Clock;
  readonly random?: Random;
  /** False: what is not there yet is not made, and what is old is left so. SQLite makes and mends its file anyway. */
  readonly migrate?: boolean;
}

/** The store itself, with all that its kind can do. Nothing is opened. */
export function storeAt(url: string, options: StoreAtOptions = {}): Promise<Store> {
  return storeMaker(url, options)();
}

/** The same, made when it is first used. */
export function lazyStoreAt(url: string, options: StoreAtOptions): Store {
  if (url === 'memory:') return memoryStore(options);
  return createLazy(storeMaker(url, options));
}

function storeMaker(url: string, { migrate, ...options }: StoreAtOptions): () => Promise<Store> {
  if (url === 'memory:') return async () => memoryStore(options);
  if (url.startsWith('sqlite:')) {
    const path = url.slice('sqlite:'.length);
    if (path === ':memory:') throw unusableStore("SQLite's ':memory:' is not supported; use 'memory:'");
    // Not repeated: it may hold a password.
    if (looksLikeServer(path)) throw unusableStore('sqlite: takes a path, and this looks like a host');
    return async () => (await sqlite()).sqliteStore({ ...(path === '' ? {} : { path }), ...options });
  }
  if (/^postgres(ql)?:\/\//.test(url)) {
    readAddress(url, postgresExample);
    const parameters = {
      ...options,
      ...(migrate === undefined ? {} : { migrate }),
      ...extractParameters(url, 'schema', 'durability'),
    };
    return async () => (await postgres()).postgresStore(parameters);
  }
  if (/^rediss?:\/\//.test(url)) {
    readAddress(url, redisExample);
    const parameters = { ...options, ...extractParameters(url, 'prefix', 'durability') };
    return async () => (await redis()).redisStore(parameters);
  }
  if (url.startsWith(moduleScheme)) return storeFromModule(url);
  if (url.startsWith('s3://')) {
    readAddress(url, s3Example);
    return async () => (await s3()).s3Store({ ...options, url });
  }
  if (url.startsWith('dynamodb://')) {
    readAddress(url, dynamodbExample);
    const parameters = { ...options, ...(migrate === undefined ? {} : { migrate }), url };
    return async () => (await dynamodb()).dynamodbStore(parameters);
  }
  const [, kind] = /^([a-z][a-z0-9+.-]{0,15}):/i.exec(url) ?? [];
  throw unusableStore(
    kind === undefined
      ? 'its address does not begin with a kind of store'
      : `${JSON.stringify(kind)} is not a kind of store`,
  );
}

/** `?schema=…`, `?prefix=…` and `?durability=…` are ours; a database knows no such parameters. */
function extractParameters(
  url: string,
  ...names: readonly string[]
): { url: string; [name: string]: string } {
  const parameters: { url: string; [name: string]: string } = { url };
  for (const name of names) {
    const [, before, value, after] =
      new RegExp(`^([^?]*\\?(?:.*&)?)${name}=([^&]*)&?(.*)$`).exec(parameters.url) ?? [];
    if (before === undefined || value === undefined) continue;
    parameters.url = (before + (after ?? '')).replace(/[?&]$/, '');
    parameters[name] = decodeURIComponent(value);
  }
  return parameters;
}

function unusableStore(why: string): SemelError {
  return new SemelError('CONTRACT_INVALID', `The store cannot be used: ${why}.`, {
    path: 'store',
    next: "Pass 'sqlite:path/to/ledger.db', 'postgres://…', 'redis://…', 'dynamodb://…', 's3://…', 'module:./my-store.js', 'memory:', a client of a database, or a store.",
  });
}

/** Loaded on first use, so that a program that brings its own store does not load another. */
const sqlite = () => import('../../stores/sqlite/index.ts');
const postgres = () => import('../../stores/postgres/index.ts');
const redis = () => import('../../stores/redis/index.ts');
const dynamodb = () => import('../../stores/dynamodb/index.ts');
const s3 = () => import('../../stores/s3/index.ts');

/** A store that is made on first use. From then on its methods are those of the store itself. */
function createLazy(make: () => Promise<Store>): Store {
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
    prune: async (limit, isBackground) => (await store()).prune(limit, isBackground),
    countExpired: async () => (await store()).countExpired(),
    close: async () => {
      // If creating it failed, a caller already got that error.
      const present = await made?.catch(() => undefined);
      await present?.close();
    },
  };
  return lazy;
}
