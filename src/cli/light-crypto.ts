// Stands for node:crypto in the built command (scripts/build.ts): to load that takes 6 ms, and all that a start needs of
// it are a few digests of short texts and a few random bytes. Whatever is more is left to node:crypto.

import type * as crypto from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';

const whole = (): typeof crypto => process.getBuiltinModule('node:crypto');

/** Of longer texts, node:crypto is faster, with the time to load it. */
const shortBytes = 4096;

export function hash(
  algorithm: string,
  data: string | NodeJS.ArrayBufferView,
  encoding: crypto.BinaryToTextEncoding | 'buffer' = 'hex',
): string | Buffer {
  const isShort = typeof data === 'string' && data.length <= shortBytes;
  if (algorithm !== 'sha256' || !isShort)
    return whole().hash(algorithm, data, encoding as crypto.BinaryToTextEncoding);
  const digest = sha256(Buffer.from(data, 'utf8'));
  return encoding === 'buffer' ? digest : digest.toString(encoding);
}

export function randomFillSync<Bytes extends Uint8Array>(bytes: Bytes): Bytes {
  try {
    const source = openSync('/dev/urandom', 'r');
    try {
      if (readSync(source, bytes) === bytes.length) return bytes;
    } finally {
      closeSync(source);
    }
  } catch {
    // Not every system has it.
  }
  return whole().randomFillSync(bytes);
}

export function randomBytes(size: number): Buffer {
  return randomFillSync(Buffer.alloc(size));
}

export const createHash: typeof crypto.createHash = (...given) => whole().createHash(...given);

export const randomUUID: typeof crypto.randomUUID = (...given) => whole().randomUUID(...given);

export default { hash };

// FIPS 180-4. The names are those of the standard.
const K = Int32Array.of(
  0x428a2f98,
  0x71374491,
  0xb5c0fbcf,
  0xe9b5dba5,
  0x3956c25b,
  0x59f111f1,
  0x923f82a4,
  0xab1c5ed5,
  0xd807aa98,
  0x12835b01,
  0x243185be,
  0x550c7dc3,
  0x72be5d74,
  0x80deb1fe,
  0x9bdc06a7,
  0xc19bf174,
  0xe49b69c1,
  0xefbe4786,
  0x0fc19dc6,
  0x240ca1cc,
  0x2de92c6f,
  0x4a7484aa,
  0x5cb0a9dc,
  0x76f988da,
  0x983e5152,
  0xa831c66d,
  0xb00327c8,
  0xbf597fc7,
  0xc6e00bf3,
  0xd5a79147,
  0x06ca6351,
  0x14292967,
  0x27b70a85,
  0x2e1b2138,
  0x4d2c6dfc,
  0x53380d13,
  0x650a7354,
  0x766a0abb,
  0x81c2c92e,
  0x92722c85,
  0xa2bfe8a1,
  0xa81a664b,
  0xc24b8b70,
  0xc76c51a3,
  0xd192e819,
  0xd6990624,
  0xf40e3585,
  0x106aa070,
  0x19a4c116,
  0x1e376c08,
  0x2748774c,
  0x34b0bcb5,
  0x391c0cb3,
  0x4ed8aa4a,
  0x5b9cca4f,
  0x682e6ff3,
  0x748f82ee,
  0x78a5636f,
  0x84c87814,
  0x8cc70208,
  0x90befffa,
  0xa4506ceb,
  0xbef9a3f7,
  0xc67178f2,
);
const W = new Int32Array(64);

function sha256(message: Buffer): Buffer {
  const padded = Buffer.alloc(((message.length + 8) >> 6) * 64 + 64);
  message.copy(padded);
  padded[message.length] = 0x80;
  // A short message: its bits fit into the lower word of the length.
  padded.writeUInt32BE(message.length * 8, padded.length - 4);
  const H = Int32Array.of(
    0x6a09e667,
    0xbb67ae85,
    0x3c6ef372,
    0xa54ff53a,
    0x510e527f,
    0x9b05688c,
    0x1f83d9ab,
    0x5be0cd19,
  );
  for (let at = 0; at < padded.length; at += 64) addBlock(H, padded, at);
  const digest = Buffer.alloc(32);
  for (const [n, word] of H.entries()) digest.writeInt32BE(word, n * 4);
  return digest;
}

function addBlock(H: Int32Array, padded: Buffer, at: number): void {
  for (let t = 0; t < 16; t += 1) W[t] = padded.readInt32BE(at + t * 4);
  for (let t = 16; t < 64; t += 1) {
    const x = W[t - 15] as number;
    const y = W[t - 2] as number;
    const s0 = rotated(x, 7) ^ rotated(x, 18) ^ (x >>> 3);
    const s1 = rotated(y, 17) ^ rotated(y, 19) ^ (y >>> 10);
    W[t] = (W[t - 16] as number) + s0 + (W[t - 7] as number) + s1;
  }
  let [a, b, c, d, e, f, g, h] = H as unknown as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  for (let t = 0; t < 64; t += 1) {
    const S1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
    const T1 = (h + S1 + ((e & f) ^ (~e & g)) + (K[t] as number) + (W[t] as number)) | 0;
    const S0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
    const T2 = (S0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + T1) | 0;
    d = c;
    c = b;
    b = a;
    a = (T1 + T2) | 0;
  }
  for (const [n, word] of [a, b, c, d, e, f, g, h].entries()) H[n] = (H[n] as number) + word;
}

function rotated(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}
