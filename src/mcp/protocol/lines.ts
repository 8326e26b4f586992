// A stream of bytes as lines, each as it came: what is only passed on must not change by a byte.

import { limits } from '../../core/limits.ts';
import { gathering } from './gather.ts';

/** The last line may lack its end; a server would wait for it. */
export function withEnd(line: Buffer): Buffer {
  return line.at(-1) === 10 ? line : Buffer.concat([line, Buffer.from('\n')]);
}

/** Some servers read a line for each carriage return: what stands between two would be a message of its own. */
export function isOneLine(line: Buffer): boolean {
  const at = line.indexOf(13);
  return at < 0 || at >= line.length - 2;
}

/** Nothing but white space: it can be no message. */
export function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 32 || (byte >= 9 && byte <= 13));
}

/** Calls `see` with each whole line, its end included; `end` gives what is left without one. */
export function lineReader(see: (line: Buffer) => void): { read(chunk: Buffer): void; end(): void } {
  const begun = gathering();
  const flush = (last?: Buffer) => {
    const line = begun.take(last);
    if (line.length > 0) see(line);
  };
  return {
    read(chunk) {
      let start = 0;
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
        flush(chunk.subarray(start, end + 1));
        start = end + 1;
      }
      if (start === chunk.length) return;
      if (begun.size + chunk.length - start > limits.messageBytes)
        throw new Error(`A message is longer than ${limits.messageBytes} bytes.`);
      begun.add(chunk.subarray(start));
    },
    end: () => flush(),
  };
}
