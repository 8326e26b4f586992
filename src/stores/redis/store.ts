// The store in Redis. The swaps of a batch are one script per bucket. Before a script writes, it compares the record's
// revision, the time window and the ledger's id.

import { type Clock, type Random, systemClock, systemRandom } from '../../core/clock.ts';
import { SemelError } from '../../core/errors.ts';
import { groupBy } from '../../core/older-node.ts';
import { fullAddress, redactAddress } from '../../store/address.ts';
import { damagedRecord, isRecordDamage, readDamage } from '../../store/damage.ts';
import type { Raw } from '../../store/move/raw.ts';
import type { Found, RemoteBackend, Swap } from '../../store/remote/backend.ts';
import { remoteStore } from '../../store/remote/remote-store.ts';
import type { DamagedRecord, Store, StoreEvent } from '../../store/store.ts';
import { acceptLoss } from './accept-loss.ts';
import { adaptClient, type Node, type RedisClient, type Reply } from './client.ts';
import { connect, createConnector, describePlace } from './connection.ts';
import { findDueRecords, findDueSlots } from './exchange/due.ts';
import { createExchange, type Exchanged, runScript } from './exchange/exchange.ts';
import { append, layoutVersion, look, type Script } from './exchange/scripts.ts';
import { hasForgotten, isWrongType, judge } from './failure.ts';
import { createList, type ListContext } from './list.ts';
import { identify, type KnownLedger } from './meta.ts';
import { checkPrefix, joinName } from './names.ts';
import { checkServers, type ServerFacts, watchSettings } from './open.ts';
import { redisRaw } from './raw.ts';
import { packEvent, unpackEvent } from './rows.ts';

export interface RedisStoreOptions {
  /** `redis://user:password@host:6379/0`, or `rediss://…`; needs the package `redis` or `ioredis`. */
  readonly url?: string;
  /** An `ioredis` or `redis` client or cluster. You connect and close it. */
  readonly client?: RedisClient;
  /** Prefix of all keys of the ledger. @default 'semel' */
  readonly prefix?: string;
  /** `accept-loss`: also use a server that can lose confirmed writes. @default 'durable' */
  readonly durability?: 'durable' | 'accept-loss';
  /** Timeout per request, in milliseconds. @default 10_000 */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  readonly random?: Random;
}

export interface RedisStore extends Store {
  /**
   * Reopens a ledger that lost records, with what is left. For a person to decide; who decided, and why, is stored. Reads
   * every record, to raise its fence above any that may have been given before.
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

function clusterNotMovedError(where: string): SemelError {
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
  const where = describePlace(options.url, prefix);
  const timeoutMs = options.timeoutMs ?? 10_000;
  const connector = createConnector({
    connect: async () =>
      options.client === undefined
        ? connect(options.url ?? 'redis://127.0.0.1:6379', clock, timeoutMs)
        : adaptClient(options.client),
    isOurs: options.client === undefined,
    clock,
    timeoutMs,
  });
  const { connection } = connector;
  const address = fullAddress(options.url, { prefix: options.prefix, durability: options.durability });
  let incarnation: KnownLedger | undefined;
  let identifying: Promise<KnownLedger> | undefined;
  const acceptsLoss = options.durability === 'accept-loss';
  const records = createExchange(!acceptsLoss);
  const settings = watchSettings({ check: checkSettings, clock });

  const listRows = createList({
    clock,
    names: () => known().names,
    nodes,
    rows: readRows,
  });

  return {
    backend: {
      async open() {
        const facts = await checkSettings();
        await refreshLedger();
        return {
          kind: 'redis',
          location: `${where} (Redis ${facts.version})`,
          address,
          forgets: facts.forgets,
          clockProblem: undefined,
        };
      },
      now: () => readTime(0),
      exchange(swaps) {
        if (!acceptsLoss) settings.admit(swaps);
        return withKnownLedger(() => exchange(swaps));
      },
      list: listRows,
      async due(limit) {
        const context = { names: known().names, run, send };
        const found: Found[] = [];
        const buckets = await findDueSlots(context, readTime);
        for (const { bucket, now, slots } of buckets)
          if (slots.length > 0 && found.length < limit)
            found.push(...(await findDueRecords(context, bucket, slots, limit - found.length, now)));
        return { found, now: Math.min(...buckets.map(({ now }) => now)) };
      },
      remove: (removals) =>
        withKnownLedger(async () => {
          const done = await connector.ask((reached) =>
            Promise.all(removals.map((removal) => records.remove(reached, known(), removal))),
          );
          return done.filter((isDone) => isDone).length;
        }),
      append: (events) => withKnownLedger(() => appendEvents(events)),
      async history(namespace, key) {
        const { names } = known();
        const list = names.events(names.bucketOf(namespace, key), joinName(namespace, key));
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
      close: connector.end,
      judge: (error) =>
        // Unsafe settings only refuse new claims: running attempts in the same batch can still settle.
        error === settings.refusal() ? { error, concernsAll: false } : judge(error, where),
    },
    raw: redisRaw({
      run,
      send,
      nodes,
      async open() {
        await checkSettings();
        if ((await connection()).isCluster) throw clusterNotMovedError(where);
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

  function checkSettings(): Promise<ServerFacts> {
    return connector.ask((reached) => checkServers(reached, { where, acceptLoss: acceptsLoss }));
  }

  /** A damaged record fails the whole read, so the records are then read one by one. */
  async function readRows(namespace: string, keys: readonly string[]): ReturnType<ListContext['rows']> {
    if (keys.length === 0) return { rows: [], now: await readTime(0) };
    try {
      const { now, answers } = await exchange(keys.map((key) => ({ namespace, key, write: undefined })));
      const rows = answers.map((answer) => (answer.done ? undefined : answer.found?.row));
      return {
        rows: await Promise.all(
          rows.map((row, nth) => row ?? findForeignRow(namespace, keys[nth] as string)),
        ),
        now,
      };
    } catch (error) {
      if (!isRecordDamage(error)) throw error;
      if (keys.length === 1) return { rows: [readDamage(error)], now: await readTime(0) };
      const parts = await Promise.all(keys.map((key) => readRows(namespace, [key])));
      return { rows: parts.flatMap(({ rows }) => rows), now: Math.min(...parts.map(({ now }) => now)) };
    }
  }

  async function nodes(): Promise<readonly Node[]> {
    const found = await (await connection()).nodes();
    return found.map(
      (node) =>
        (...command) =>
          connector.ask(() => node(...command)),
    );
  }

  async function exchange(swaps: readonly Swap[]): Promise<Exchanged> {
    try {
      return await connector.ask((reached) => records.exchange(reached, known(), swaps));
    } catch (error) {
      if (!isWrongType(error)) throw error;
      for (const { namespace, key } of swaps) {
        const problem = await findForeignValue(namespace, key);
        if (problem !== undefined) throw problem;
      }
      throw error;
    }
  }

  /** MGET returns nothing for values that are not strings. The scan found the key, so it has another type or is gone by now. */
  async function findForeignRow(namespace: string, key: string): Promise<DamagedRecord | undefined> {
    const problem = await findForeignValue(namespace, key);
    return problem && readDamage(problem);
  }

  /** An error if the record's key holds another type of value. */
  async function findForeignValue(namespace: string, key: string): Promise<SemelError | undefined> {
    const { names } = known();
    const record = names.record(names.bucketOf(namespace, key), joinName(namespace, key));
    const type = String(await send(record, ['type', record]));
    return type === 'string' || type === 'none'
      ? undefined
      : damagedRecord(namespace, key, `Redis has a ${type} in its place`);
  }

  function send(key: string, command: readonly string[]): Promise<Reply> {
    return connector.ask(({ send: ask }) => ask(key, command));
  }

  function run(script: Script, keys: readonly string[], args: readonly string[]): Promise<Reply> {
    return runScript(send, script, keys, args);
  }

  async function refreshLedger(): Promise<KnownLedger> {
    identifying ??= connection()
      .then(({ isCluster }) => identify(run, { prefix, isCluster, random }, incarnation))
      .finally(() => {
        identifying = undefined;
      });
    incarnation = await identifying;
    return incarnation;
  }

  function known(): KnownLedger {
    if (incarnation === undefined) throw new Error('SEMELFORGOT');
    return incarnation;
  }

  /** Retries once if the ledger was lost: a person may have accepted that meanwhile. */
  async function withKnownLedger<T>(ask: () => Promise<T>): Promise<T> {
    try {
      if (incarnation === undefined) await refreshLedger();
      return await ask();
    } catch (error) {
      if (!hasForgotten(error)) throw error;
      await refreshLedger();
      return ask();
    }
  }

  async function readTime(bucket: number): Promise<number> {
    const [now] = (await run(look, [known().names.record(bucket, '')], [])) as [number];
    return now;
  }

  async function appendEvents(events: readonly Omit<StoreEvent, 'at'>[]): Promise<void> {
    const { names, of } = known();
    const byBucket = groupBy(events, ({ namespace, key }) => names.bucketOf(namespace, key));
    // Even with nothing to write, check that the ledger may be written.
    if (byBucket.size === 0) byBucket.set(0, []);
    await Promise.all(
      [...byBucket].map(([bucket, some]) => {
        const { id, seq } = of(bucket);
        const lists = some.flatMap(({ namespace, key }) => {
          const name = joinName(namespace, key);
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
