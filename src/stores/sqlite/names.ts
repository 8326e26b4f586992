// How a key lies in the index: by its name, which is all of it but the rest of the digest.

import type { SqliteValue } from './driver.ts';

/** A key without its contract, as it is stored. */
export type Name = readonly [name: string, tail: string];

/** Before all others. */
export const first: Name = ['', ''];

const digestLength = 32;
const kept = 6;

/** Six characters of a digest tell the keys of one period apart, nearly always: the others are no part of the index. */
export function nameOf(rest: string): Name {
  const cut = rest.length - digestLength;
  if (rest[cut - 1] !== '/') return [rest, ''];
  return [rest.slice(0, cut + kept), rest.slice(cut + kept)];
}

/** What the names of all keys with this prefix start with. */
export function nameStart(prefix: string): string {
  return prefix.slice(0, prefix.lastIndexOf('/') + 1 + kept);
}

/** 16 bits, signed. */
export function nameSum(scope: number, name: string): number {
  let sum = scope;
  for (let n = 0; n < name.length; n += 1) sum = Math.imul(sum ^ name.charCodeAt(n), 0x01000193);
  return ((sum ^ (sum >>> 16)) << 16) >> 16;
}

/** Sorts right after every text that starts so. SQLite orders texts by their code points, and blobs after texts. */
export function afterAll(prefix: string): SqliteValue {
  const points = [...prefix].map((character) => character.codePointAt(0) as number);
  for (;;) {
    const last = points.pop();
    if (last === undefined) return new Uint8Array();
    if (last === 0x10ffff) continue;
    return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
  }
}
