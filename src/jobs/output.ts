// What a command prints: passed on as it comes, byte for byte, partly kept, and stored.

import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Pipe } from './liveness/liveness.ts';

export interface Passing {
  /** After the command's exit: resolves once its output is read. `isKept` also waits a while for processes it left writing. */
  settled(isKept: boolean): Promise<void>;
  /** Resolves once everything read was passed on, or cannot be. */
  drained(): Promise<void>;
  hasFailed(): boolean;
}

/** After the command's exit, output that follows a pause this long is not its own. */
const lingerMs = 200;
/** Stored output may still grow: `exec > >(tee log)` writes after the command has exited. */
const keptOutputMs = 10_000;

const unused: Passing = {
  settled: async () => undefined,
  drained: async () => undefined,
  hasFailed: () => false,
};

/** `to` opens the target stream on the first output; undefined: the output is only kept. */
export function passOn(
  { reading, writing }: Pipe,
  to: (() => NodeJS.WriteStream) | 'unused' | undefined,
  onChunk: (chunk: Buffer) => void,
  /** Whether to go on reading when the target takes no more. */
  isStillKept: () => boolean = () => false,
): Passing {
  closeSync(writing);
  if (to === 'unused') {
    closeSync(reading);
    return unused;
  }
  const from = new Socket({ fd: reading, readable: true, writable: false });
  const ended = new Promise<void>((resolve) => from.once('close', () => resolve()));
  let hasFailed = false;
  let out: NodeJS.WriteStream | undefined;
  from.on('error', () => from.destroy());
  from.on('data', (chunk: Buffer) => {
    onChunk(chunk);
    if (hasFailed && !isStillKept()) from.destroy();
  });
  if (to !== undefined) from.once('data', (chunk: Buffer) => begin(to(), chunk));
  const isBlocked = () => out?.writableNeedDrain === true && !hasFailed;

  function begin(stream: NodeJS.WriteStream, first: Buffer): void {
    out = stream;
    // If the reader has gone or the disk is full, the command gets the error, as it would unguarded.
    stream.removeAllListeners('error');
    stream.on('error', () => {
      hasFailed = true;
      from.unpipe();
      if (isStillKept()) from.resume();
      else from.destroy();
    });
    stream.write(first);
    from.pipe(stream, { end: false });
  }

  async function untilQuiet(forMs: number): Promise<void> {
    for (let last = -1; last !== from.bytesRead && !from.destroyed; ) {
      last = from.bytesRead;
      await Promise.race([ended, pause(forMs)]);
    }
  }

  return {
    settled: (isKept) =>
      isKept ? Promise.race([ended, pause(keptOutputMs)]) : Promise.race([ended, untilQuiet(lingerMs)]),
    async drained() {
      while (isBlocked()) await pause(lingerMs);
      await Promise.race([ended, untilQuiet(lingerMs)]);
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
      // Joining at every chunk would be quadratic.
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
    /** Undefined if there was more than `most`. */
    bytes: () => (size <= most ? Buffer.concat(chunks) : undefined),
  };
}

/** Text is stored as text, so that people can read the ledger. */
export function textOrBytes(bytes: Buffer): string | Uint8Array {
  const text = bytes.toString('utf8');
  const isText = Buffer.from(text, 'utf8').equals(bytes) && !isLongerAsJson(text, bytes);
  return isText ? text : new Uint8Array(bytes);
}

const largeBytes = 1_048_576;

/** Each control character takes six characters of JSON: such text may only fit as bytes. */
function isLongerAsJson(text: string, { length }: Buffer): boolean {
  return length > largeBytes && Buffer.byteLength(JSON.stringify(text)) > 1.5 * length;
}

export function toBytes(stored: string | Uint8Array): Uint8Array {
  return typeof stored === 'string' ? Buffer.from(stored, 'utf8') : stored;
}
