// What is asked of single records: looks, swaps and removals, each one script or one GET, all of a batch at once.

import type { Found, Removal, Swap, Swapped } from '../../store/far-backend.ts';
import type { StoreEvent } from '../../store/store.ts';
import type { Connection, Reply } from './client.ts';
import { replyCodeOf } from './failure.ts';
import type { Incarnation } from './incarnation.ts';
import { nameOf } from './names.ts';
import { dueSlot, type Filed, pack, packEvent, short, unpack } from './rows.ts';
import { layoutVersion, look, remove, type Script, swap } from './scripts.ts';

export interface Exchanged {
  readonly now: number;
  readonly floor: number;
  readonly answers: readonly Swapped[];
}

/** What a script answers about one key. */
interface Answer {
  readonly now: number;
  readonly swapped: Swapped;
}

export interface Exchange {
  exchange(connection: Connection, known: Incarnation, swaps: readonly Swap[]): Promise<Exchanged>;
  /** Whether it was still there as it was seen. */
  remove(connection: Connection, known: Incarnation, removal: Removal): Promise<boolean>;
}

export function exchanger(): Exchange {
  let floor = 0;
  return { exchange, remove: removeOne };

  async function exchange(
    reached: Connection,
    known: Incarnation,
    swaps: readonly Swap[],
  ): Promise<Exchanged> {
    // Asked first: by a later time a record could be judged that was renewed in between.
    const time = reached.isCluster || swaps.every(({ write }) => write) ? undefined : readTime(reached);
    const answers = await Promise.all(swaps.map((one) => answerOf(one, reached, known, time)));
    return {
      now: Math.min(...answers.map(({ now }) => now)),
      floor,
      answers: answers.map(({ swapped }) => swapped),
    };
  }

  async function answerOf(
    { namespace, key, write }: Swap,
    { isCluster, send: ask }: Connection,
    { names, of, saw }: Incarnation,
    time: Promise<number> | undefined,
  ): Promise<Answer> {
    const bucket = names.bucketOf(namespace, key);
    const name = nameOf(namespace, key);
    const record = names.record(bucket, name);
    const glance = async (there: string) => {
      if (time === undefined) return (await runBy(ask, look, [there], [])) as [number, string | null];
      // Together: when the connection ends both fail, and one that nobody waits for would end the program.
      return (await Promise.all([time, ask(there, ['get', there])])) as [number, string | null];
    };
    if (write === undefined) {
      const [now, value] = await glance(record);
      return { now, swapped: { done: false, found: found(namespace, key, value) } };
    }
    const others = write.beside.map((other) => ({ ...other, bucket: names.bucketOf(namespace, other.key) }));
    const apart = others.filter((other) => isCluster && other.bucket !== bucket);
    const beside = others.filter((other) => !apart.includes(other));
    for (const other of apart) {
      const [, value] = await glance(names.record(other.bucket, nameOf(namespace, other.key)));
      if (found(namespace, other.key, value)?.revision === other.revision) continue;
      const [now, present] = await glance(record);
      return { now, swapped: { done: false, found: found(namespace, key, present) } };
    }
    const { before, row, revision, events, at, until } = write;
    const slot = row === undefined ? '' : short(dueSlot(row));
    const { id, seq } = of(bucket);
    const [done, now, lowest, latest, value] = (await runBy(
      ask,
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

  async function removeOne(
    { send }: Connection,
    { names, of, saw }: Incarnation,
    { before, row, revision, events }: Removal,
  ): Promise<boolean> {
    const { namespace, key, fence } = before.row;
    const slot = short((before as Filed).slot);
    const bucket = names.bucketOf(namespace, key);
    const name = nameOf(namespace, key);
    const { id, seq } = of(bucket);
    const [done, latest] = (await runBy(
      send,
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
}

/** By its digest, which every server knows after the first time, until it is started anew. */
export async function runBy(
  send: Connection['send'],
  script: Script,
  keys: readonly string[],
  args: readonly string[],
): Promise<Reply> {
  const about = [String(keys.length), ...keys, ...args];
  const [first] = keys as [string];
  try {
    return await send(first, ['evalsha', script.sha, ...about]);
  } catch (error) {
    if (replyCodeOf(error) !== 'NOSCRIPT') throw error;
    return send(first, ['eval', script.text, ...about]);
  }
}

async function readTime({ send }: Connection): Promise<number> {
  const [seconds, micros] = (await send('', ['time'])) as [string, string];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

function found(namespace: string, key: string, value: string | null | undefined): Found | undefined {
  return value === null || value === undefined ? undefined : unpack(namespace, key, value);
}

function noted(event: StoreEvent): string {
  const [type, rest] = packEvent(event);
  return `${type}\n${event.at}\n${rest}`;
}
