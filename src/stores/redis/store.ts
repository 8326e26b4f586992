// The store in Redis. Every swap is one script on one key, all of a batch sent together; what a script may write it
// compares first, with the revision that was seen, the time that was meant and the ledger that is known.

import { type Clock, type Random, systemClock, systemRandom } from '../../core/clock.ts';
import type { FarBackend, Found, Removal, Swap, Swapped } from '../../store/far-backend.ts';
import { farStore } from '../../store/far-store.ts';
import type { Store, StoreEvent } from '../../store/store.ts';
import { acceptLoss } from './accept-loss.ts';
import { connectionOf, type RedisClient, type Reply } from './client.ts';
import { dueIn, slotsDue } from './due.ts';
import { hasForgotten, judge, replyCodeOf } from './failure.ts';
import { type Incarnation, identify } from './incarnation.ts';
import { lister } from './list.ts';
import { checkPrefix, nameOf } from './names.ts';
import { checkServers } from './open.ts';
import { dueSlot, type Filed, pack, packEvent, short, unpack, unpackEvent } from './rows.ts';
import { append, layoutVersion, look, remove, type Script, swap } from './scripts.ts';
import { connect, placeOf } from './url.ts';
import { wayTo } from './way.ts';

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
   * may give out a fence that may have been given before.
   */
  acceptLoss(): Promise<void>;
}

/** What a script answers about one key. */
interface Answer {
  readonly now: number;
  readonly swapped: Swapped;
}

export function redisStore(options: RedisStoreOptions): RedisStore {
  const { clock = systemClock, random = systemRandom } = options;
  const ledger = redisBackend(options, clock, random);
  return { ...farStore(ledger.backend, { clock, random }), acceptLoss: ledger.acceptLoss };
}

function redisBackend(
  options: RedisStoreOptions,
  clock: Clock,
  random: Random,
): { backend: FarBackend; acceptLoss(): Promise<void> } {
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
  let incarnation: Incarnation | undefined;
  let identifying: Promise<Incarnation> | undefined;
  let floor = 0;

  const listRows = lister({
    clock,
    names: () => known().names,
    nodes: async () =>
      (await (await connection()).nodes()).map(
        (node) =>
          (...command) =>
            way.ask(() => node(...command)),
      ),
    async rows(namespace, keys) {
      const { now, answers } = await exchange(keys.map((key) => ({ namespace, key, write: undefined })));
      const rows = answers.map((answer) => (answer.done ? undefined : answer.found?.row));
      return { rows, now: keys.length === 0 ? await nowOf(0) : now };
    },
  });

  return {
    backend: {
      async open() {
        const facts = await way.ask((reached) =>
          checkServers(reached, { where, acceptLoss: options.durability === 'accept-loss' }),
        );
        await identified();
        return {
          kind: 'redis',
          location: `${where} (Redis ${facts.version})`,
          address: options.url,
          forgets: facts.forgets,
          clockProblem: undefined,
        };
      },
      now: () => nowOf(0),
      exchange: (swaps) => asKnown(() => exchange(swaps)),
      list: listRows,
      async due(limit) {
        const ways = { names: known().names, run, send };
        const found: Filed[] = [];
        const buckets = await slotsDue(ways, nowOf);
        for (const { bucket, now, slots } of buckets)
          if (slots.length > 0 && found.length < limit)
            found.push(...(await dueIn(ways, bucket, slots, limit - found.length, now)));
        return { found, now: Math.min(...buckets.map(({ now }) => now)) };
      },
      remove: (removals) =>
        asKnown(async () => {
          const done = await Promise.all(removals.map(removeOne));
          return done.filter((isDone) => isDone).length;
        }),
      append: appendEvents,
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
      judge: (error) => judge(error, where),
    },
    async acceptLoss() {
      try {
        const reached = await connection();
        await acceptLoss({ run, nodes: reached.nodes, prefix, isCluster: reached.isCluster, random });
        incarnation = undefined;
      } catch (error) {
        throw judge(error, where).error;
      }
    },
  };

  function send(key: string, command: readonly string[]): Promise<Reply> {
    return way.ask(({ send: ask }) => ask(key, command));
  }

  /** By its digest, which every server knows after the first time, until it is started anew. */
  async function run(script: Script, keys: readonly string[], args: readonly string[]): Promise<Reply> {
    const about = [String(keys.length), ...keys, ...args];
    const [first] = keys as [string];
    try {
      return await send(first, ['evalsha', script.sha, ...about]);
    } catch (error) {
      if (replyCodeOf(error) !== 'NOSCRIPT') throw error;
      return send(first, ['eval', script.text, ...about]);
    }
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

  async function exchange(
    swaps: readonly Swap[],
  ): Promise<{ now: number; floor: number; answers: readonly Swapped[] }> {
    const answers = await Promise.all(swaps.map(answerOf));
    return {
      now: Math.min(...answers.map(({ now }) => now)),
      floor,
      answers: answers.map(({ swapped }) => swapped),
    };
  }

  async function answerOf({ namespace, key, write }: Swap): Promise<Answer> {
    const { names, of, saw } = known();
    const bucket = names.bucketOf(namespace, key);
    const name = nameOf(namespace, key);
    const record = names.record(bucket, name);
    if (write === undefined) {
      const [now, value] = (await run(look, [record], [])) as [number, string | null];
      return { now, swapped: { done: false, found: found(namespace, key, value) } };
    }
    const { isCluster } = await connection();
    const others = write.beside.map((other) => ({ ...other, bucket: names.bucketOf(namespace, other.key) }));
    const apart = others.filter((other) => isCluster && other.bucket !== bucket);
    const beside = others.filter((other) => !apart.includes(other));
    for (const other of apart) {
      const there = names.record(other.bucket, nameOf(namespace, other.key));
      const [now, value] = (await run(look, [there], [])) as [number, string | null];
      // It is about several keys: who asked looks at all of them again.
      if (found(namespace, other.key, value)?.revision !== other.revision)
        return { now, swapped: { done: false, found: undefined } };
    }
    const { before, row, revision, events, at, until } = write;
    const slot = row === undefined ? '' : short(dueSlot(row));
    const { id, seq } = of(bucket);
    const [done, now, lowest, latest, value] = (await run(
      swap,
      [
        record,
        names.meta(bucket),
        names.slots(bucket),
        names.namespaces(bucket),
        names.due(bucket, slot),
        names.events(bucket, name),
        ...beside.map((other) => names.record(other.bucket, nameOf(namespace, other.key))),
      ],
      [
        id,
        String(seq),
        String(layoutVersion),
        short(before?.revision),
        short(revision),
        String(at),
        String(until),
        String(row?.fence ?? 0),
        slot,
        String(names.nameStart(bucket)),
        namespace,
        row === undefined ? '' : pack(row),
        String(events.length),
        ...events.map(noted),
        ...beside.map((other) => short(other.revision)),
      ],
    )) as [number, number, string, number | string, string | null];
    saw(bucket, Number(latest));
    floor = Math.max(floor, Number(lowest));
    return {
      now,
      swapped: done === 1 ? { done: true } : { done: false, found: found(namespace, key, value) },
    };
  }

  async function removeOne({ before, row, revision, events }: Removal): Promise<boolean> {
    const { names, of, saw } = known();
    const { namespace, key, fence } = before.row;
    const slot = short((before as Filed).slot);
    const bucket = names.bucketOf(namespace, key);
    const name = nameOf(namespace, key);
    const { id, seq } = of(bucket);
    const [done, latest] = (await run(
      remove,
      [
        names.record(bucket, name),
        names.meta(bucket),
        names.slots(bucket),
        names.due(bucket, slot),
        names.events(bucket, name),
      ],
      [
        id,
        String(seq),
        String(layoutVersion),
        short(before.revision),
        short(revision),
        String(fence),
        slot,
        String(names.nameStart(bucket)),
        row === undefined ? '' : pack(row),
        ...(events ?? []),
      ],
    )) as [number, number | string];
    saw(bucket, Number(latest));
    return done === 1;
  }

  async function appendEvents(events: readonly Omit<StoreEvent, 'at'>[]): Promise<void> {
    const { names } = known();
    const byRecord = new Map<string, { keys: readonly string[]; args: string[] }>();
    for (const event of events) {
      const name = nameOf(event.namespace, event.key);
      const bucket = names.bucketOf(event.namespace, event.key);
      const one = byRecord.get(name) ?? {
        keys: [names.record(bucket, name), names.events(bucket, name)],
        args: [],
      };
      one.args.push(...packEvent(event));
      byRecord.set(name, one);
    }
    await Promise.all([...byRecord.values()].map(({ keys, args }) => run(append, keys, args)));
  }
}

function found(namespace: string, key: string, value: string | null | undefined): Found | undefined {
  return value === null || value === undefined ? undefined : unpack(namespace, key, value);
}

function noted(event: StoreEvent): string {
  const [type, rest] = packEvent(event);
  return `${type}\n${event.at}\n${rest}`;
}
