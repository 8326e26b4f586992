// Passes what a command prints on as it comes, byte for byte, and keeps a part of it.

import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Pipe } from './life/liveness.ts';

export interface Passing {
  /** The command has ended: what it had printed is read. `isWanted` waits for those that it left writing, for a while. */
  settled(isWanted: boolean): Promise<void>;
  /** What was read has been passed on, or cannot be. */
  drained(): Promise<void>;
  /** It could not be passed on. */
  hasFailed(): boolean;
}

/** After the command's end, what comes this long after the last word is not its own. */
const lingerMs = 200;
/** Output that is kept is waited for: `exec > >(tee log)` writes after the command has ended. */
const wantedMs = 10_000;

const nothing: Passing = {
  settled: async () => undefined,
  drained: async () => undefined,
  hasFailed: () => false,
};

/** `to` opens the stream when there is something to pass on; undefined: it is only looked at. */
export function passOn(
  { reading, writing }: Pipe,
  to: (() => NodeJS.WriteStream) | 'unused' | undefined,
  seen: (chunk: Buffer) => void,
  /** It is still wanted, although nobody takes it any more. */
  isKept: () => boolean = () => false,
): Passing {
  closeSync(writing);
  if (to === 'unused') {
    closeSync(reading);
    return nothing;
  }
  const from = new Socket({ fd: reading, readable: true, writable: false });
  const ended = new Promise<void>((resolve) => from.once('close', () => resolve()));
  let hasFailed = false;
  let out: NodeJS.WriteStream | undefined;
  from.on('error', () => from.destroy());
  from.on('data', (chunk: Buffer) => {
    seen(chunk);
    if (hasFailed && !isKept()) from.destroy();
  });
  if (to !== undefined) from.once('data', (chunk: Buffer) => begin(to(), chunk));
  const isHeldUp = () => out?.writableNeedDrain === true && !hasFailed;

  function begin(stream: NodeJS.WriteStream, first: Buffer): void {
    out = stream;
    // The reader may stop reading, and a disk may be full: then the command hears of it, as if it were not guarded.
    stream.removeAllListeners('error');
    stream.on('error', () => {
      hasFailed = true;
      from.unpipe();
      if (isKept()) from.resume();
      else from.destroy();
    });
    stream.write(first);
    from.pipe(stream, { end: false });
  }

  async function quiet(forMs: number): Promise<void> {
    for (let last = -1; last !== from.bytesRead && !from.destroyed; ) {
      last = from.bytesRead;
      await Promise.race([ended, pause(forMs)]);
    }
  }

  return {
    settled: (isWanted) =>
      isWanted ? Promise.race([ended, pause(wantedMs)]) : Promise.race([ended, quiet(lingerMs)]),
    async drained() {
      while (isHeldUp()) await pause(lingerMs);
      await Promise.race([ended, quiet(lingerMs)]);
      from.destroy();
    },
    hasFailed: () => hasFailed,
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}

export function lastBytes(most: number) {
  let chunks: Buffer[] = [];
  let size = 0;
  return {
    add(chunk: Buffer) {
      chunks.push(chunk);
      size += chunk.length;
      // Joined now and then, not at every chunk.
      if (size > 4 * most) {
        chunks = [Buffer.concat(chunks).subarray(-most)];
        size = most;
      }
    },
    bytes: () => Buffer.from(Buffer.concat(chunks).subarray(-most)),
  };
}

export function firstBytes(most: number) {
  let chunks: Buffer[] = [];
  let size = 0;
  return {
    add(chunk: Buffer) {
      size += chunk.length;
      if (size <= most) chunks.push(chunk);
      else chunks = [];
    },
    count: () => size,
    /** Undefined where there was more than is kept. */
    bytes: () => (size <= most ? Buffer.concat(chunks) : undefined),
  };
}
