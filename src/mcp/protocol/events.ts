// Splits a stream of server-sent events, keeping each event's bytes.

import { createByteCollector } from '../../core/byte-collector.ts';
import { limits } from '../../core/limits.ts';
import { createReservation } from '../../core/reservations.ts';

/** An event's fields. */
export interface EventFields {
  readonly data: string | undefined;
  /** The stream can be resumed after it. */
  readonly id: string | undefined;
  /** How long to wait before resuming. */
  readonly retryMs: number | undefined;
  /** Its name; without one it is a message. */
  readonly event: string | undefined;
}

/** Retrying does not help: the message stays too long. */
export class TooLong extends Error {}

/**
 * Calls `see` with each complete event. Reads each byte once, however the stream is cut: a long event comes in thousands
 * of chunks, and a chunk may hold thousands of events.
 */
export function createEventReader(see: (event: Buffer, fields: EventFields) => void): {
  read(chunk: Buffer): void;
  /** Drops an incomplete event. */
  end(): void;
} {
  const begun = createByteCollector();
  const line = lineState();
  const held = createReservation('servers');
  let isFirst = true;

  function drop(): void {
    begun.take();
    held.end();
  }

  function finish(last: Buffer): void {
    const whole = begun.take(last);
    held.end();
    // A byte order mark at the start of a stream is not part of its first line; anywhere else it is.
    const event =
      isFirst && whole.subarray(0, byteOrderMark.length).equals(byteOrderMark)
        ? whole.subarray(byteOrderMark.length)
        : whole;
    isFirst = false;
    if (event.length > 0) see(event, fieldsIn(event));
  }

  return {
    read(chunk) {
      let from = 0;
      for (let at = 0; at < chunk.length; at += 1) {
        const ends = line.next(chunk[at] as number);
        if (ends === 'here') {
          finish(chunk.subarray(from, at + 1));
          from = at + 1;
        } else if (ends === 'before') {
          finish(chunk.subarray(from, at));
          from = at;
        }
      }
      if (from === chunk.length) return;
      const isShort = begun.size + chunk.length - from <= limits.messageBytes;
      if (!isShort || !held.take(chunk.length - from))
        throw new TooLong(
          `An event is longer than ${limits.messageBytes} bytes, or too much is received at once.`,
        );
      begun.add(chunk.subarray(from));
    },
    end: drop,
  };
}

const byteOrderMark = Buffer.from('\ufeff');
const LF = 10;
const CR = 13;

/** Finds the end of an event: an empty line, with any line ending. */
function lineState(): { next(byte: number): 'here' | 'before' | undefined } {
  let isEmpty = true;
  /** The last line ended in CR; an LF that follows belongs to it. */
  let isAfterCr = false;
  /** An empty line ended in CR; its LF may follow. */
  let isEnding = false;

  return {
    next(byte) {
      if (isEnding) {
        isEnding = false;
        if (byte === LF) return 'here';
        start(byte);
        return 'before';
      }
      if (byte === LF) {
        const isEnd = isEmpty && !isAfterCr;
        isAfterCr = false;
        isEmpty = true;
        return isEnd ? 'here' : undefined;
      }
      if (byte === CR && isEmpty) {
        // Two in a row: this stream uses CR alone.
        if (isAfterCr) {
          isAfterCr = false;
          return 'here';
        }
        isEnding = true;
        return undefined;
      }
      start(byte);
      return undefined;
    },
  };

  function start(byte: number): void {
    isAfterCr = byte === CR;
    isEmpty = isAfterCr;
  }
}

const nothing: EventFields = { data: undefined, id: undefined, retryMs: undefined, event: undefined };
const shortest = 'id:\n\n'.length;
const SPACE = 32;
const [dataStart, idStart, retryStart, eventStart] = ['data:', 'id:', 'retry:', 'event:'].map((start) =>
  Buffer.from(start),
) as [Buffer, Buffer, Buffer, Buffer];

/** Where a value begins and ends. */
type Place = readonly [from: number, end: number];

/** One pass and no object per line: an event may have tens of millions of lines. */
function fieldsIn(event: Buffer): EventFields {
  if (event.length < shortest) return nothing;
  const data = Buffer.allocUnsafe(event.length);
  let size = -1;
  let id: Place | undefined;
  let retry: Place | undefined;
  let name: Place | undefined;
  for (let from = 0, end = 0; from < event.length; from = end + 1) {
    end = from;
    while (end < event.length && event[end] !== LF && event[end] !== CR) end += 1;
    let at = valueAt(event, from, end, dataStart);
    if (at >= 0) {
      if (size >= 0) data[size] = LF;
      size += 1;
      for (; at < end; at += 1, size += 1) data[size] = event[at] as number;
      continue;
    }
    at = valueAt(event, from, end, idStart);
    if (at >= 0) id = [at, end];
    at = valueAt(event, from, end, retryStart);
    if (at >= 0) retry = [at, end];
    at = valueAt(event, from, end, eventStart);
    if (at >= 0) name = [at, end];
  }
  const textAt = (place: Place | undefined) => place && event.toString('utf8', ...place);
  const asked = textAt(retry) ?? '';
  return {
    data: size < 0 ? undefined : data.toString('utf8', 0, size),
    id: textAt(id),
    retryMs: /^\d{1,6}$/.test(asked) ? Number(asked) : undefined,
    event: textAt(name),
  };
}

/** Where the value of a line with this field begins; -1 for another field. */
function valueAt(event: Buffer, from: number, end: number, start: Buffer): number {
  const at = from + start.length;
  if (at > end) return -1;
  for (let nth = 0; nth < start.length; nth += 1) if (event[from + nth] !== start[nth]) return -1;
  return at < end && event[at] === SPACE ? at + 1 : at;
}
