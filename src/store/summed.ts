// JSON that starts with its own checksum, over every byte behind it and over what it is about: a text that was changed, or
// copied to another place, is noticed. Not a signature.

import { crc32 } from 'node:zlib';

export function encodeSummed(about: string, value: object): string {
  const body = JSON.stringify(value).slice(1);
  return `{"sum":${sumOf(about, body)},${body}`;
}

export function isIntact(about: string, text: string): boolean {
  const [start, sum] = /^\{"sum":(\d{1,10}),/.exec(text) ?? [];
  return start !== undefined && Number(sum) === sumOf(about, text.slice(start.length));
}

function sumOf(about: string, body: string): number {
  return crc32(`${about}\0${body}`);
}
