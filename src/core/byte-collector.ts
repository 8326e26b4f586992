// Collects bytes that arrive in pieces. Copies them into blocks: a peer may send one byte at a time, and a one-byte Buffer
// costs hundreds of bytes and keeps its source alive.

const smallestBlock = 1024;
const largestBlock = 1024 * 1024;

export interface ByteCollector {
  readonly size: number;
  add(part: Uint8Array): void;
  /** Returns everything added, followed by `last`, and starts empty again. */
  take(last?: Uint8Array): Buffer;
}

export function createByteCollector(): ByteCollector {
  let full: Buffer[] = [];
  let block = nothing;
  /** Bytes used in the last block. */
  let used = 0;
  let size = 0;
  return {
    get size() {
      return size;
    },
    add(part) {
      for (let from = 0; from < part.length; ) {
        if (used === block.length) {
          if (used > 0) full.push(block);
          block = Buffer.allocUnsafeSlow(
            Math.min(largestBlock, Math.max(smallestBlock, size, part.length - from)),
          );
          used = 0;
        }
        const copied = Math.min(block.length - used, part.length - from);
        block.set(part.subarray(from, from + copied), used);
        used += copied;
        from += copied;
        size += copied;
      }
    },
    take(last = nothing) {
      const all = Buffer.concat([...full, block.subarray(0, used), last]);
      [full, block, used, size] = [[], nothing, 0, 0];
      return all;
    },
  };
}

const nothing = Buffer.alloc(0);
