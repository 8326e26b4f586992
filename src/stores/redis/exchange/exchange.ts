// What is asked about records: looks, swaps and removals. The swaps of a batch are one script per bucket, and all is sent
// at once.

import type { Removal, Swap, Swapped } from '../../../store/remote/backend.ts';
import type { Connection, Reply } from '../client.ts';
import { replyCodeOf } from '../failure.ts';
import { type Incarnation, isCount } from '../meta.ts';
import { nameOf } from '../names.ts';
import { headOf, pack, unpack } from '../rows.ts';
import { batchOf, type Placed, type Writing } from './batch.ts';
import { layoutVersion, look, remove, type Script, swap } from './scripts.ts';

export interface Exchanged {
  readonly now: number;
  readonly floor: number;
  readonly answers: readonly Swapped[];
}

export interface Exchange {
  exchange(connection: Connection, known: Incarnation, swaps: readonly Swap[]): Promise<Exchanged>;
  /** Whether it was still there as it was seen. */
  remove(connection: Connection, known: Incarnation, removal: Removal): Promise<boolean>;
}

/** @param mustKeep A new record is made only where the server has evicted nothing. */
export function exchanger(mustKeep: boolean): Exchange {
  let floor = 0;
  return { exchange, remove: removeOne };

  async function exchange(
    reached: Connection,
    known: Incarnation,
    swaps: readonly Swap[],
  ): Promise<Exchanged> {
    const placed = swaps.map((one, n) => placeOf(known, one, n));
    const moot = reached.isCluster ? await mootOf(reached, known, placed) : nothing;
    const looks: Placed[] = [];
    const byBucket = new Map<number, Writing[]>();
    for (const one of placed) {
      if (!isWriting(one) || moot.has(one)) {
        looks.push(one);
        continue;
      }
      const together = byBucket.get(one.bucket);
      if (together === undefined) byBucket.set(one.bucket, [one]);
      else together.push(one);
    }
    const answers = new Array<Swapped>(swaps.length);
    const nows = await Promise.all([
      lookAt(reached, known, looks, answers),
      ...[...byBucket.values()].map((some) => swapIn(reached, known, some, answers)),
    ]);
    return { now: Math.min(...nows), floor, answers };
  }

  /** All of one bucket, by one script. Answers the time. */
  async function swapIn(
    { isCluster, send }: Connection,
    { names, of, saw }: Incarnation,
    writings: readonly Writing[],
    answers: Swapped[],
  ): Promise<number> {
    const [{ bucket }] = writings as [Writing, ...Writing[]];
    const { keys, args, order } = batchOf(writings, {
      names,
      bucket,
      known: of(bucket),
      isCluster,
      mustKeep,
    });
    const [now, lowest, latest, ...exceptions] = (await runBy(send, swap, keys, args)) as SwapReply;
    saw(bucket, Number(latest));
    floor = Math.max(floor, Number(lowest));
    for (const { n } of writings) answers[n] = swapDone;
    for (let index = 0; index < exceptions.length; index += 2) {
      const { n, namespace, key } = order[Number(exceptions[index]) - 1] as Writing;
      answers[n] = notDone(namespace, key, exceptions[index + 1]);
    }
    return now;
  }

  /** Answers the time; never one that is later than a look: a record could be judged by it that was renewed in between. */
  async function lookAt(
    { isCluster, isInOrder, send }: Connection,
    { names, of, saw }: Incarnation,
    placed: readonly Placed[],
    answers: Swapped[],
  ): Promise<number> {
    const [first] = placed;
    if (first === undefined) return Number.POSITIVE_INFINITY;
    if (!isCluster) {
      const asked = send('', ['time']);
      if (!isInOrder) await asked;
      // Together: when the connection ends all fail, and one that nobody waits for would end the program. What is read
      // of the ledger is no older than its records: whatever they tell of is confirmed, and must not be lost unnoticed.
      const [time, values, [lowest, closed, id, seq]] = (await Promise.all([
        asked,
        send(first.record, ['mget', ...placed.map(({ record }) => record)]),
        send(names.meta(0), ['hmget', names.meta(0), 'floor', 'closed', 'id', 'seq']),
      ])) as [[string, string], (string | null)[], (string | null)[]];
      if (typeof closed === 'string') throw new Error(`SEMEL${closed}`);
      if (!isCount(Number(lowest)) || !isCount(Number(seq))) throw new Error('SEMELFORGOT');
      floor = Math.max(floor, Number(lowest));
      if (id === of(0).id) saw(0, Number(seq));
      for (const [index, { n, namespace, key }] of placed.entries())
        answers[n] = notDone(namespace, key, values[index]);
      return Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000);
    }
    // The floor is that of the last write: to be told of it each look would have to be told by itself.
    const nows = await Promise.all(
      placed.map(async ({ n, namespace, key, record }) => {
        const [now, value] = (await runBy(send, look, [record], [])) as LookReply;
        answers[n] = notDone(namespace, key, value);
        return now;
      }),
    );
    return Math.min(...nows);
  }

  async function removeOne(
    { send }: Connection,
    { names, of, saw }: Incarnation,
    { before, row, revision, events }: Removal,
  ): Promise<boolean> {
    const { namespace, key, fence } = before.row;
    const bucket = names.bucketOf(namespace, key);
    const name = nameOf(namespace, key);
    const { id, seq } = of(bucket);
    const [done, latest] = (await runBy(
      send,
      remove,
      [names.record(bucket, name), names.meta(bucket), names.events(bucket, name)],
      [
        id,
        String(seq),
        String(layoutVersion),
        headOf(before.revision),
        String(fence),
        row === undefined ? '' : pack(row, revision),
        ...(events ?? []),
      ],
    )) as [number, number | string];
    saw(bucket, Number(latest));
    return done === 1;
  }
}

type SwapReply = [now: number, floor: string, seq: number | string, ...exceptions: (number | string)[]];

const swapDone: Swapped = { done: true };
const nothing: ReadonlySet<Placed> = new Set();

function isWriting(placed: Placed): placed is Writing {
  return placed.write !== undefined;
}

function placeOf({ names }: Incarnation, { namespace, key, write }: Swap, n: number): Placed {
  const bucket = names.bucketOf(namespace, key);
  const name = nameOf(namespace, key);
  return { namespace, key, write, bucket, name, record: names.record(bucket, name), n };
}

/** Those that depend on records of other buckets, which no script of theirs may read, and which are no longer as they were. */
async function mootOf(
  reached: Connection,
  { names }: Incarnation,
  placed: readonly Placed[],
): Promise<ReadonlySet<Placed>> {
  const moot = new Set<Placed>();
  const others = placed.flatMap((one) =>
    (one.write?.beside ?? []).map((other) => ({
      one,
      other,
      bucket: names.bucketOf(one.namespace, other.key),
    })),
  );
  await Promise.all(
    others
      .filter(({ one, bucket }) => bucket !== one.bucket)
      .map(async ({ one, other, bucket }) => {
        const record = names.record(bucket, nameOf(one.namespace, other.key));
        const [, value] = (await runBy(reached.send, look, [record], [])) as LookReply;
        const found = value === null ? undefined : unpack(one.namespace, other.key, value);
        if (found?.revision !== other.revision) moot.add(one);
      }),
  );
  return moot;
}

type LookReply = [now: number, value: string | null];

function notDone(namespace: string, key: string, value: string | number | null | undefined): Swapped {
  return { done: false, found: typeof value === 'string' ? unpack(namespace, key, value) : undefined };
}

/** By its digest, which every server knows after the first time, until it is started anew. */
export async function runBy(
  send: Connection['send'],
  script: Script,
  keys: readonly string[],
  args: readonly string[],
): Promise<Reply> {
  const [first] = keys as [string];
  const command = ['evalsha', script.sha, String(keys.length), ...keys, ...args];
  try {
    return await send(first, command);
  } catch (error) {
    if (replyCodeOf(error) !== 'NOSCRIPT') throw error;
    return send(first, ['eval', script.text, ...command.slice(2)]);
  }
}
