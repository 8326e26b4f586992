// Reads, swaps and removes records. The swaps of a batch are one script per bucket, and all scripts are sent at once.

import type { Removal, Swap, Swapped } from '../../../store/remote/backend.ts';
import type { Connection, Reply } from '../client.ts';
import { readReplyCode } from '../failure.ts';
import { isCount, type KnownLedger } from '../meta.ts';
import { joinName } from '../names.ts';
import { encodeHead, pack, unpack } from '../rows.ts';
import { buildBatch, type PlacedSwap, type PlacedWrite } from './batch.ts';
import { layoutVersion, look, remove, type Script, swap } from './scripts.ts';

export interface Exchanged {
  readonly now: number;
  readonly floor: number;
  readonly answers: readonly Swapped[];
}

interface Exchange {
  exchange(connection: Connection, known: KnownLedger, swaps: readonly Swap[]): Promise<Exchanged>;
  /** False if the record changed since it was read. */
  remove(connection: Connection, known: KnownLedger, removal: Removal): Promise<boolean>;
}

/** @param mustKeep Create new records only if the server has evicted nothing. */
export function createExchange(mustKeep: boolean): Exchange {
  let floor = 0;
  return { exchange, remove: removeOne };

  async function exchange(
    connection: Connection,
    known: KnownLedger,
    swaps: readonly Swap[],
  ): Promise<Exchanged> {
    const placed = swaps.map((one, n) => locate(known, one, n));
    const moot = connection.isCluster ? await findMoot(connection, known, placed) : nothing;
    const looks: PlacedSwap[] = [];
    const byBucket = new Map<number, PlacedWrite[]>();
    for (const one of placed) {
      if (!isPlacedWrite(one) || moot.has(one)) {
        looks.push(one);
        continue;
      }
      const together = byBucket.get(one.bucket);
      if (together === undefined) byBucket.set(one.bucket, [one]);
      else together.push(one);
    }
    const answers = new Array<Swapped>(swaps.length);
    const nows = await Promise.all([
      lookAt(connection, known, looks, answers),
      ...[...byBucket.values()].map((some) => swapIn(connection, known, some, answers)),
    ]);
    return { now: Math.min(...nows), floor, answers };
  }

  /** Runs one script for all writes of a bucket. Returns the time. */
  async function swapIn(
    { isCluster, send }: Connection,
    { names, of, markSeen }: KnownLedger,
    writes: readonly PlacedWrite[],
    answers: Swapped[],
  ): Promise<number> {
    const [{ bucket }] = writes as [PlacedWrite, ...PlacedWrite[]];
    const { keys, args, order } = buildBatch(writes, {
      names,
      bucket,
      known: of(bucket),
      isCluster,
      mustKeep,
    });
    const [now, lowest, latest, ...exceptions] = (await runScript(send, swap, keys, args)) as SwapReply;
    markSeen(bucket, Number(latest));
    floor = Math.max(floor, Number(lowest));
    for (const { n } of writes) answers[n] = swapDone;
    for (let index = 0; index < exceptions.length; index += 2) {
      const { n, namespace, key } = order[Number(exceptions[index]) - 1] as PlacedWrite;
      answers[n] = notDone(namespace, key, exceptions[index + 1]);
    }
    return now;
  }

  /** Returns the time, never later than a read: otherwise a record renewed in between could be judged by it. */
  async function lookAt(
    { isCluster, isInOrder, send }: Connection,
    { names, of, markSeen }: KnownLedger,
    placed: readonly PlacedSwap[],
    answers: Swapped[],
  ): Promise<number> {
    const [first] = placed;
    if (first === undefined) return Number.POSITIVE_INFINITY;
    if (!isCluster) {
      const readingTime = send('', ['time']);
      if (!isInOrder) await readingTime;
      // Awaited together: if the connection ends all fail, and an unhandled rejection would end the program. `meta` is
      // read after the records, so `seq` covers everything that they show.
      const [time, values, [lowest, closed, id, seq]] = (await Promise.all([
        readingTime,
        send(first.record, ['mget', ...placed.map(({ record }) => record)]),
        send(names.meta(0), ['hmget', names.meta(0), 'floor', 'closed', 'id', 'seq']),
      ])) as [[string, string], (string | null)[], (string | null)[]];
      if (typeof closed === 'string') throw new Error(`SEMEL${closed}`);
      if (!isCount(Number(lowest)) || !isCount(Number(seq))) throw new Error('SEMELFORGOT');
      floor = Math.max(floor, Number(lowest));
      if (id === of(0).id) markSeen(0, Number(seq));
      for (const [index, { n, namespace, key }] of placed.entries())
        answers[n] = notDone(namespace, key, values[index]);
      return Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000);
    }
    // Uses the floor of the last write: reading it here would cost one more command per record.
    const nows = await Promise.all(
      placed.map(async ({ n, namespace, key, record }) => {
        const [now, value] = (await runScript(send, look, [record], [])) as LookReply;
        answers[n] = notDone(namespace, key, value);
        return now;
      }),
    );
    return Math.min(...nows);
  }

  async function removeOne(
    { send }: Connection,
    { names, of, markSeen }: KnownLedger,
    { before, row, revision, events }: Removal,
  ): Promise<boolean> {
    const { namespace, key, fence } = before.row;
    const bucket = names.bucketOf(namespace, key);
    const name = joinName(namespace, key);
    const { id, seq } = of(bucket);
    const [done, latest] = (await runScript(
      send,
      remove,
      [names.record(bucket, name), names.meta(bucket), names.events(bucket, name)],
      [
        id,
        String(seq),
        String(layoutVersion),
        encodeHead(before.revision),
        String(fence),
        row === undefined ? '' : pack(row, revision),
        ...(events ?? []),
      ],
    )) as [number, number | string];
    markSeen(bucket, Number(latest));
    return done === 1;
  }
}

type SwapReply = [now: number, floor: string, seq: number | string, ...exceptions: (number | string)[]];

const swapDone: Swapped = { done: true };
const nothing: ReadonlySet<PlacedSwap> = new Set();

function isPlacedWrite(placed: PlacedSwap): placed is PlacedWrite {
  return placed.write !== undefined;
}

function locate({ names }: KnownLedger, { namespace, key, write }: Swap, n: number): PlacedSwap {
  const bucket = names.bucketOf(namespace, key);
  const name = joinName(namespace, key);
  return { namespace, key, write, bucket, name, record: names.record(bucket, name), n };
}

/** Writes whose condition on a record in another bucket no longer holds; their own script cannot read it. */
async function findMoot(
  connection: Connection,
  { names }: KnownLedger,
  placed: readonly PlacedSwap[],
): Promise<ReadonlySet<PlacedSwap>> {
  const moot = new Set<PlacedSwap>();
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
        const record = names.record(bucket, joinName(one.namespace, other.key));
        const [, value] = (await runScript(connection.send, look, [record], [])) as LookReply;
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

/** Runs a script by its digest, and sends its text to a server that does not know it yet. */
export async function runScript(
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
    if (readReplyCode(error) !== 'NOSCRIPT') throw error;
    return send(first, ['eval', script.text, ...command.slice(2)]);
  }
}
