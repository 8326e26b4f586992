// A stream of bytes as lines, each as it came: what is only passed on must not change by a byte.

/** Nobody sends so much by intent. */
export const longestLine = 64 * 1024 * 1024;

/** Calls `see` with each whole line, its end included; `end` gives what is left without one. */
export function lineReader(see: (line: Buffer) => void): { read(chunk: Buffer): void; end(): void } {
  let parts: Buffer[] = [];
  let size = 0;
  const flush = (last: Buffer) => {
    const line = parts.length === 0 ? last : Buffer.concat([...parts, last]);
    parts = [];
    size = 0;
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
      size += chunk.length - start;
      if (size > longestLine) throw new Error(`A message is longer than ${longestLine} bytes.`);
      parts.push(chunk.subarray(start));
    },
    end: () => flush(Buffer.alloc(0)),
  };
}
