// Splits a byte stream into lines, keeping every byte.

import { createByteCollector } from '../../core/byte-collector.ts';
import { limits } from '../../core/limits.ts';

/** The last line may lack its newline, and a server would wait for it. */
export function withEnd(line: Buffer): Buffer {
  return line.at(-1) === 10 ? line : Buffer.concat([line, Buffer.from('\n')]);
}

/** Some servers also end a line at a carriage return: the text between two would be a message of its own. */
export function isOneLine(line: Buffer): boolean {
  const at = line.indexOf(13);
  return at < 0 || at >= line.length - 2;
}

export function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 32 || (byte >= 9 && byte <= 13));
}

/** Calls `see` with each line including its newline; `end` passes the rest. */
export function createLineReader(see: (line: Buffer) => void): { read(chunk: Buffer): void; end(): void } {
  const begun = createByteCollector();
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
