// Collects bytes that come in pieces. The pieces are copied into blocks: a peer may send one byte at a time, and a buffer of
// one byte costs hundreds and keeps alive what it was read from.

const smallestBlock = 4 * 1024;
const largestBlock = 1024 * 1024;

export interface Gathering {
  readonly size: number;
  add(part: Buffer): void;
  /** All that was added, and `last` behind it; it starts empty again. */
  take(last?: Buffer): Buffer;
}

export function gathering(): Gathering {
  let full: Buffer[] = [];
  let block = nothing;
  /** Bytes of the last block that are in use. */
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
          block = Buffer.allocUnsafeSlow(Math.min(largestBlock, Math.max(smallestBlock, size)));
          used = 0;
        }
        const copied = part.copy(block, used, from);
        used += copied;
        from += copied;
        size += copied;
      }
    },
    take(last = nothing) {
      const all = size === 0 ? last : Buffer.concat([...full, block.subarray(0, used), last]);
      [full, block, used, size] = [[], nothing, 0, 0];
      return all;
    },
  };
}

const nothing = Buffer.alloc(0);
