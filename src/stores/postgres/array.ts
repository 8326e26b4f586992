// Encodes lists as Postgres arrays: as text, which every driver can send, or in binary, which costs the database less.

export type Value = string | number | null;

/** Escapes that JSON and Postgres arrays read differently. */
const oddEscape = /\\[bfnrtu]/;

/** A Postgres array looks like a JSON list, except for its brackets and for characters that JSON escapes with a letter. */
export function encodeArray(values: readonly Value[]): string {
  const list = JSON.stringify(values);
  const inside = oddEscape.test(list) ? values.map(encodeElement).join(',') : list.slice(1, -1);
  return `{${inside}}`;
}

function encodeElement(value: Value): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  return `"${refusable(value).replace(/["\\]/g, '\\$&')}"`;
}

/** A lone surrogate would be replaced on the way. Postgres refuses a NUL, so send that instead. */
function refusable(text: string): string {
  return text.isWellFormed() ? text : '\0';
}

/** Element types: their OIDs, and the size of a value in bytes (0: it varies). */
const elements = {
  'text[]': { oid: 25, size: 0 },
  'bytea[]': { oid: 17, size: 0 },
  'bigint[]': { oid: 20, size: 8 },
  'integer[]': { oid: 23, size: 4 },
  'smallint[]': { oid: 21, size: 2 },
} as const;
export type ListType = keyof typeof elements;

export function isListType(type: string): type is ListType {
  return type in elements;
}

const headerSize = 20;

export function encodeBinaryArray(type: ListType, values: readonly Value[]): Buffer {
  const { oid, size } = elements[type];
  let length = headerSize + 4 * values.length;
  for (const value of values)
    if (typeof value === 'string')
      length += type === 'bytea[]' ? countBytes(value) : Buffer.byteLength(refusable(value));
    else if (value !== null) length += size;
  const buffer = Buffer.allocUnsafe(length);
  buffer.writeInt32BE(1, 0); // dimensions
  buffer.writeInt32BE(1, 4); // may hold nulls
  buffer.writeInt32BE(oid, 8);
  buffer.writeInt32BE(values.length, 12);
  buffer.writeInt32BE(1, 16); // counted from
  let at = headerSize;
  for (const value of values) {
    let written = -1;
    if (typeof value === 'string')
      written =
        type === 'bytea[]'
          ? buffer.write(value.slice(2), at + 4, 'hex')
          : buffer.write(refusable(value), at + 4);
    else if (value !== null) written = writeNumber(buffer, value, at + 4, size);
    buffer.writeInt32BE(written, at);
    at += 4 + Math.max(0, written);
  }
  return buffer;
}

/** In the text form of a bytea: `\\x`, then two digits per byte. */
function countBytes(text: string): number {
  return text.length / 2 - 1;
}

function writeNumber(buffer: Buffer, value: number, at: number, size: number): number {
  if (size === 8) {
    const high = Math.floor(value / 2 ** 32);
    buffer.writeInt32BE(high, at);
    buffer.writeUInt32BE(value - high * 2 ** 32, at + 4);
  } else if (size === 4) buffer.writeInt32BE(value, at);
  else buffer.writeInt16BE(value, at);
  return size;
}
