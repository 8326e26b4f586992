// The store in Redis. The swaps of a batch are one script per bucket; what a script may write it
// compares first, with the revision that was seen, the time that was meant and the ledger that is known.

import { type Clock, type Random, systemClock, systemRandom } from '../../core/clock.ts';
import { SemelError } from '../../core/errors.ts';
import { fullAddress, redactAddress } from '../../store/address.ts';
import { damagedRecord, isRecordDamage, readDamage } from '../../store/damage.ts';
import type { Raw } from '../../store/move/raw.ts';
import type { Found, RemoteBackend, Swap } from '../../store/remote/backend.ts';
import { remoteStore } from '../../store/remote/remote-store.ts';
import type { DamagedRecord, Store, StoreEvent } from '../../store/store.ts';
import { acceptLoss } from './accept-loss.ts';
import { connectionOf, type Node, type RedisClient, type Reply } from './client.ts';
import { connect, placeOf, wayTo } from './connection.ts';
import { dueIn, slotsDue } from './exchange/due.ts';
import { type Exchanged, exchanger, runBy } from './exchange/exchange.ts';
import { append, layoutVersion, look, type Script } from './exchange/scripts.ts';
import { hasForgotten, isWrongType, judge } from './failure.ts';
import { lister, type Scanned } from './list.ts';
import { type Incarnation, identify } from './meta.ts';
import { checkPrefix, nameOf } from './names.ts';
import { checkServers, type ServerFacts, settingsWatch } from './open.ts';
import { redisRaw } from './raw.ts';
import { packEvent, unpackEvent } from './rows.ts';

export interface RedisStoreOptions {
  /** `redis://user:password@host:6379/0`, or `rediss://…`; uses the package `redis` or `ioredis`. */
  readonly url?: string;
  /** A client of `ioredis` or `redis`, or a cluster of either; yours to connect and to close. */
  readonly client?: RedisClient;
  /** What all keys of the ledger start with. @default 'semel' */
  readonly prefix?: string;
  /** `accept-loss`: also a server that can lose what it has confirmed. @default 'durable' */
  readonly durability?: 'durable' | 'accept-loss';
  /** How long an answer is waited for, in milliseconds. @default 10_000 */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  readonly random?: Random;
}

export interface RedisStore extends Store {
  /**
   * For a person, after the ledger has forgotten: opens it again with what is there. Reads every record, because none
   * may give out a fence that may have been given before. Who said so, and why, is kept.
   */
  acceptLoss(said?: { readonly by: string; readonly note: string | null }): Promise<void>;
}

export function redisStore(options: RedisStoreOptions): RedisStore {
  const { clock = systemClock, random = systemRandom } = options;
  const { backend, raw, acceptLoss: accept } = redisBackend(options, clock, random);
  return { ...remoteStore(backend, { clock, random }), raw, acceptLoss: accept };
}

interface RedisBackend extends Pick<RedisStore, 'acceptLoss'> {
  readonly backend: RemoteBackend;
  readonly raw: Raw;
}

function notMoved(where: string): SemelError {
  return new SemelError(
    'STORE_UNSAFE',
    `The ledger in the Redis cluster at ${where} cannot be moved as it is.`,
    {
      next: 'Nothing was changed. Export its records, and import them into another ledger.',
    },
  );
}

function redisBackend(options: RedisStoreOptions, clock: Clock, random: Random): RedisBackend {
  const prefix = checkPrefix(options.prefix ?? 'semel');
  const where = placeOf(options.url, prefix);
  const timeoutMs = options.timeoutMs ?? 10_000;
  const way = wayTo({
    connect: async () =>
      options.client === undefined
        ? connect(options.url ?? 'redis://127.0.0.1:6379', clock, timeoutMs)
        : connectionOf(options.client),
    isOurs: options.client === undefined,
    clock,
    timeoutMs,
  });
  const { connection } = way;
  const address = fullAddress(options.url, { prefix: options.prefix, durability: options.durability });
  let incarnation: Incarnation | undefined;
  let identifying: Promise<Incarnation> | undefined;
  const acceptsLoss = options.durability === 'accept-loss';
  const records = exchanger(!acceptsLoss);
  const settings = settingsWatch({ check: factsOfServers, clock });

  const listRows = lister({
    clock,
    names: () => known().names,
    nodes,
    rows: rowsOf,
  });

  return {
    backend: {
      async open() {
        const facts = await factsOfServers();
        await identified();
        return {
          kind: 'redis',
          location: `${where} (Redis ${facts.version})`,
          address,
          forgets: facts.forgets,
          clockProblem: undefined,
        };
      },
      now: () => nowOf(0),
      exchange(swaps) {
        if (!acceptsLoss) settings.admit(swaps);
        return asKnown(() => exchange(swaps));
      },
      list: listRows,
      async due(limit) {
        const ways = { names: known().names, run, send };
        const found: Found[] = [];
        const buckets = await slotsDue(ways, nowOf);
        for (const { bucket, now, slots } of buckets)
          if (slots.length > 0 && found.length < limit)
            found.push(...(await dueIn(ways, bucket, slots, limit - found.length, now)));
        return { found, now: Math.min(...buckets.map(({ now }) => now)) };
      },
      remove: (removals) =>
        asKnown(async () => {
          const done = await way.ask((reached) =>
            Promise.all(removals.map((removal) => records.remove(reached, known(), removal))),
          );
          return done.filter((isDone) => isDone).length;
        }),
      append: (events) => asKnown(() => appendEvents(events)),
      async history(namespace, key) {
        const { names } = known();
        const list = names.events(names.bucketOf(namespace, key), nameOf(namespace, key));
        const events = (await send(list, ['lrange', list, '0', '-1'])) as readonly string[];
        return events.map((event) => unpackEvent(namespace, key, event));
      },
      async namespaces() {
        const { names } = known();
        const sets = await Promise.all(
          Array.from({ length: names.buckets }, (_, bucket) => {
            const set = names.namespaces(bucket);
            return send(set, ['smembers', set]) as Promise<readonly string[]>;
          }),
        );
        return [...new Set(sets.flat())].sort();
      },
      close: way.end,
      judge: (error) =>
        // What is under way is settled all the same: it is asked again without the new claims beside it.
        error === settings.refusal() ? { error, concernsAll: false } : judge(error, where),
    },
    raw: redisRaw({
      run,
      send,
      nodes,
      async open() {
        await factsOfServers();
        if ((await connection()).isCluster) throw notMoved(where);
      },
      prefix,
      where,
      address: address === undefined ? where : redactAddress(address),
      random,
    }),
    async acceptLoss(said = { by: '', note: null }) {
      try {
        const { isCluster } = await connection();
        await acceptLoss({ run, nodes, prefix, isCluster, random, said });
        incarnation = undefined;
      } catch (error) {
        throw judge(error, where).error;
      }
    },
  };

  function factsOfServers(): Promise<ServerFacts> {
    return way.ask((reached) => checkServers(reached, { where, acceptLoss: acceptsLoss }));
  }

  /** One that is damaged fails all that are read with it: they are then read one by one. */
  async function rowsOf(namespace: string, keys: readonly string[]): ReturnType<Scanned['rows']> {
    if (keys.length === 0) return { rows: [], now: await nowOf(0) };
    try {
      const { now, answers } = await exchange(keys.map((key) => ({ namespace, key, write: undefined })));
      const rows = answers.map((answer) => (answer.done ? undefined : answer.found?.row));
      return {
        rows: await Promise.all(rows.map((row, nth) => row ?? strangeRow(namespace, keys[nth] as string))),
        now,
      };
    } catch (error) {
      if (!isRecordDamage(error)) throw error;
      if (keys.length === 1) return { rows: [readDamage(error)], now: await nowOf(0) };
      const parts = await Promise.all(keys.map((key) => rowsOf(namespace, [key])));
      return { rows: parts.flatMap(({ rows }) => rows), now: Math.min(...parts.map(({ now }) => now)) };
    }
  }

  async function nodes(): Promise<readonly Node[]> {
    const asked = await (await connection()).nodes();
    return asked.map(
      (node) =>
        (...command) =>
          way.ask(() => node(...command)),
    );
  }

  async function exchange(swaps: readonly Swap[]): Promise<Exchanged> {
    try {
      return await way.ask((reached) => records.exchange(reached, known(), swaps));
    } catch (error) {
      if (!isWrongType(error)) throw error;
      for (const { namespace, key } of swaps) {
        const problem = await strangeAt(namespace, key);
        if (problem !== undefined) throw problem;
      }
      throw error;
    }
  }

  /** MGET returns nothing for values that are not strings. The scan found the key, so it has another type or is gone by now. */
  async function strangeRow(namespace: string, key: string): Promise<DamagedRecord | undefined> {
    const problem = await strangeAt(namespace, key);
    return problem && readDamage(problem);
  }

  /** The damage of a record in whose place something else lies. */
  async function strangeAt(namespace: string, key: string): Promise<SemelError | undefined> {
    const { names } = known();
    const record = names.record(names.bucketOf(namespace, key), nameOf(namespace, key));
    const type = String(await send(record, ['type', record]));
    return type === 'string' || type === 'none'
      ? undefined
      : damagedRecord(namespace, key, `Redis has a ${type} in its place`);
  }

  function send(key: string, command: readonly string[]): Promise<Reply> {
    return way.ask(({ send: ask }) => ask(key, command));
  }

  function run(script: Script, keys: readonly string[], args: readonly string[]): Promise<Reply> {
    return runBy(send, script, keys, args);
  }

  async function identified(): Promise<Incarnation> {
    identifying ??= connection()
      .then(({ isCluster }) => identify(run, { prefix, isCluster, random }, incarnation))
      .finally(() => {
        identifying = undefined;
      });
    incarnation = await identifying;
    return incarnation;
  }

  function known(): Incarnation {
    if (incarnation === undefined) throw new Error('SEMELFORGOT');
    return incarnation;
  }

  /** Where a person has accepted what was lost meanwhile, it goes on with what is there. */
  async function asKnown<T>(ask: () => Promise<T>): Promise<T> {
    try {
      if (incarnation === undefined) await identified();
      return await ask();
    } catch (error) {
      if (!hasForgotten(error)) throw error;
      await identified();
      return ask();
    }
  }

  async function nowOf(bucket: number): Promise<number> {
    const [now] = (await run(look, [known().names.record(bucket, '')], [])) as [number];
    return now;
  }

  async function appendEvents(events: readonly Omit<StoreEvent, 'at'>[]): Promise<void> {
    const { names, of } = known();
    const byBucket = Map.groupBy(events, ({ namespace, key }) => names.bucketOf(namespace, key));
    // Also where there is nothing to write, whether one may is asked.
    if (byBucket.size === 0) byBucket.set(0, []);
    await Promise.all(
      [...byBucket].map(([bucket, some]) => {
        const { id, seq } = of(bucket);
        const lists = some.flatMap(({ namespace, key }) => {
          const name = nameOf(namespace, key);
          return [names.record(bucket, name), names.events(bucket, name)];
        });
        return run(
          append,
          [names.slots(bucket), names.meta(bucket), ...lists],
          [id, String(seq), String(layoutVersion), ...some.flatMap(packEvent)],
        );
      }),
    );
  }
}
