// A stream of server-sent events, each as it came and with what it says.

import { limits } from '../core/limits.ts';

/** What is in an event, where it has it. */
export interface EventFields {
  readonly data: string | undefined;
  /** From here the stream can be taken up again. */
  readonly id: string | undefined;
  /** How long to wait before that. */
  readonly retryMs: number | undefined;
}

/** However often it is asked for, it is as long. */
export class TooLong extends Error {
  constructor() {
    super(`An event is longer than ${limits.messageBytes} bytes.`);
  }
}

/** Calls `see` with the bytes of each whole event, and what it says. */
export function eventReader(see: (event: Buffer, fields: EventFields) => void): {
  read(chunk: Buffer): void;
} {
  let parts: Buffer[] = [];
  let size = 0;
  /** Of what is left: an end may lie across two chunks. */
  let last = Buffer.alloc(0);
  return {
    read(chunk) {
      const seam = Buffer.concat([last, chunk]);
      parts.push(chunk);
      size += chunk.length;
      last = seam.subarray(-3);
      if (size > limits.messageBytes) throw new TooLong();
      // Only what is new is looked at: a long event comes in thousands of chunks.
      if (endOf(seam) < 0) return;
      let rest = Buffer.concat(parts);
      for (let end = endOf(rest); end > 0; end = endOf(rest)) {
        const event = rest.subarray(0, end);
        rest = rest.subarray(end);
        see(event, fieldsIn(event.toString()));
      }
      parts = [rest];
      size = rest.length;
      last = rest.subarray(-3);
    },
  };
}

/** Where the first event ends: after an empty line, however lines end. */
function endOf(bytes: Buffer): number {
  const ends = ['\n\n', '\r\n\r\n', '\r\r']
    .map((mark) => ({ at: bytes.indexOf(mark), length: mark.length }))
    .filter(({ at }) => at >= 0)
    .map(({ at, length }) => at + length);
  return ends.length === 0 ? -1 : Math.min(...ends);
}

function fieldsIn(event: string): EventFields {
  const lines = event.split(/\r\n|\n|\r/);
  const valuesOf = (field: string) =>
    lines
      .filter((line) => line.startsWith(`${field}:`))
      .map((line) => line.slice(field.length + 1).replace(/^ /, ''));
  const data = valuesOf('data');
  const retry = valuesOf('retry').at(-1) ?? '';
  return {
    data: data.length === 0 ? undefined : data.join('\n'),
    id: valuesOf('id').at(-1),
    retryMs: /^\d{1,6}$/.test(retry) ? Number(retry) : undefined,
  };
}
