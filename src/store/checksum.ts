// The checksum of a record, over its key and all its columns. It detects changes by hand or by a failing disk; it is not
// a signature.

import { crc32 } from 'node:zlib';
import type { Columns } from './columns.ts';

/** Signed, so that it fits a 4-byte integer column. */
export function checksum(namespace: string, key: string, columns: Columns): number {
  const [status, flags, fence, token, version, owner, created, settled, expires] = columns;
  const [, , , , , , , , , args, content, result, asker, more] = columns;
  return (
    crc32(
      `${namespace}\0${key}\0${status}\0${flags}\0${fence}\0${created}\0${version}\0${owner}${text(token)}${text(settled)}${text(expires)}${text(args)}${text(content)}${text(result)}${text(asker)}${text(more)}`,
    ) | 0
  );
}

/** Distinguishes null from an empty text. */
function text(value: string | number | null): string {
  return value === null ? '\u0001' : `\0${value}`;
}
