// A stream of server-sent events, each as it came and with its data.

import { longestLine } from './lines.ts';

/** Calls `see` with the bytes of each whole event, and its data where it has some. */
export function eventReader(see: (event: Buffer, data: string | undefined) => void): {
  read(chunk: Buffer): void;
} {
  let rest: Buffer = Buffer.alloc(0);
  return {
    read(chunk) {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      if (rest.length > longestLine) throw new Error(`An event is longer than ${longestLine} bytes.`);
      for (let end = endOf(rest); end > 0; end = endOf(rest)) {
        const event = rest.subarray(0, end);
        rest = rest.subarray(end);
        see(event, dataIn(event.toString()));
      }
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

function dataIn(event: string): string | undefined {
  const lines = event.split(/\r\n|\n|\r/).filter((line) => line.startsWith('data:'));
  return lines.length === 0 ? undefined : lines.map((line) => line.slice(5).replace(/^ /, '')).join('\n');
}
