// Reads the write count from the bytes of the page that holds `meta`. SQLite itself always combines the ledger's file with
// its log, and this is needed for one without the other.

import { readSync } from 'node:fs';

/** `meta` is the first table, and its one row fits on its root page. */
export const metaPage = 2;

/** Parses the second column, `writes`, of a leaf page with one row. */
export function parseWrites(page: Buffer): number | undefined {
  if (page[0] !== 0x0d || page.readUInt16BE(3) !== 1) return undefined;
  let at = page.readUInt16BE(8);
  varint(); // the size of the row
  varint(); // its rowid
  const record = at;
  const values = record + varint();
  varint(); // `one` is the rowid, and is stored as null
  const size = [undefined, 1, 2, 3, 4, 6, 8, undefined, 0, 0][varint()];
  if (size === undefined || values + size > page.length) return undefined;
  // Types 8 and 9 stand for the values 0 and 1, without any bytes.
  if (size === 0) return page[at - 1] === 9 ? 1 : 0;
  return size === 8 ? Number(page.readBigInt64BE(values)) : page.readIntBE(values, size);

  function varint(): number {
    let value = 0;
    for (let byte = 0; byte < 9 && at < page.length; byte += 1) {
      const next = page[at] as number;
      at += 1;
      value = value * 128 + (next & 0x7f);
      if (next < 0x80) break;
    }
    return value;
  }
}

const cell = new Int32Array(new SharedArrayBuffer(4));

/** Retries, because another process may be writing the page. */
export function reachesCount(writes: number, found: () => number): boolean {
  for (let tries = 1; found() < writes; tries += 1) {
    if (tries === 4) return false;
    Atomics.wait(cell, 0, 0, 1);
  }
  return true;
}

/** Undefined if the file is too short. */
export function readBytes(file: number, at: number, length: number): Buffer | undefined {
  const bytes = Buffer.alloc(length);
  return readSync(file, bytes, 0, length, at) === length ? bytes : undefined;
}
