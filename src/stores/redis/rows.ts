// A row as one packed text, and back: the revision that a swap compares, a short head, the texts one after the other as
// they are, and a checksum. A hash with values of this size would take twice the memory.

import { crc32 } from 'node:zlib';
import { type Columns, columnsOf, rowOf } from '../../store/columns.ts';
import type { Found } from '../../store/remote/backend.ts';
import type { Row, StoreEvent } from '../../store/store.ts';
import { numbersIn, toBase36 } from './base36.ts';
import { nameOf } from './names.ts';

/** What a packed record starts with as long as nobody else has written it. */
export function headOf(revision: number): string {
  return `${toBase36(revision)}\n`;
}

/** The checksum covers the name too: a value that was copied to another key is refused. */
export function pack(row: Row, revision: number): string {
  const columns = columnsOf(row);
  const [status, flags, fence, token, version, owner, created, settled, expires] = columns;
  const [, , , , , , , , , args, content, result, asker, more] = columns;
  const numbers = `${short(created)},${short(status)},${short(flags)},${short(fence)},${short(settled)},${short(expires)}`;
  const lengths = trimmed(
    `${sizeOf(args)},${sizeOf(content)},${sizeOf(result)},${sizeOf(asker)},${sizeOf(more)}`,
  );
  const names = `${tokenIn(token)},${escaped(version)},${escaped(owner)}`;
  const texts = `${args ?? ''}${content ?? ''}${result ?? ''}${asker ?? ''}${more ?? ''}`;
  const name = nameOf(row.namespace, row.key);
  const whole = `${name}${headOf(revision)}${numbers},${lengths}\n${names}\n${texts}`;
  return `${whole.slice(name.length)}\n${toBase36(crc32(whole))}`;
}

/** A record that semel did not write, or that was changed since, is reported as an error of Redis would be. */
export function unpack(namespace: string, key: string, packed: string): Found {
  try {
    return unpacked(namespace, key, packed);
  } catch (cause) {
    throw new Error(`UNREADABLE record ${JSON.stringify(key)} in ${JSON.stringify(namespace)}`, { cause });
  }
}

function unpacked(namespace: string, key: string, packed: string): Found {
  const end = packed.lastIndexOf('\n');
  if (packed.slice(end + 1) !== toBase36(crc32(nameOf(namespace, key) + packed.slice(0, end))))
    throw new Error('its checksum does not match');
  const headEnd = packed.indexOf('\n');
  const numbersEnd = packed.indexOf('\n', headEnd + 1);
  const namesEnd = packed.indexOf('\n', numbersEnd + 1);
  const [revision] = numbersIn(packed, 0, headEnd) as [number];
  const numbers = numbersIn(packed, headEnd + 1, numbersEnd);
  const [created, status, flags, fence] = numbers as [number, number, number, number];
  const names = packed.slice(numbersEnd + 1, namesEnd).split(',');
  const [token, version, owner] = names.map(unescaped) as [string, string, string];
  let start = namesEnd + 1;
  const text = (nth: number): string | null => {
    const length = numbers[nth] ?? null;
    if (length === null) return null;
    start += length;
    return packed.slice(start - length, start);
  };
  const columns: Columns = [
    status,
    flags,
    fence,
    token === '' ? null : tokenOf(token),
    version,
    owner,
    created,
    numbers[4] ?? null,
    numbers[5] ?? null,
    text(6),
    text(7),
    text(8),
    text(9),
    text(10),
  ];
  return { row: rowOf(namespace, key, columns), revision };
}

/** Numbers take two thirds of the room so. */
export function short(value: number | null): string {
  return value === null ? '' : toBase36(value);
}

function sizeOf(text: string | null): string {
  return text === null ? '' : toBase36(text.length);
}

/** Without the commas at its end. */
function trimmed(list: string): string {
  let end = list.length;
  while (end > 0 && list.charCodeAt(end - 1) === comma) end -= 1;
  return list.slice(0, end);
}

const comma = 44;

/** A usual token is hexadecimal. */
function tokenIn(token: string | null): string {
  return token === null ? '' : Buffer.from(token, 'hex').toString('base64url');
}

function tokenOf(text: string): string {
  return Buffer.from(text, 'base64url').toString('hex');
}

const special = /[%,\n]/;

function escaped(text: string): string {
  return special.test(text) ? text.replace(/[%,\n]/g, encodeURIComponent) : text;
}

function unescaped(text: string): string {
  return text.includes('%') ? decodeURIComponent(text) : text;
}

/** Without its instant, which may be the store's to tell. */
export function packEvent(event: Omit<StoreEvent, 'at'>): [type: string, rest: string] {
  return [event.type, `${event.generation}\n${event.fence}\n${JSON.stringify(event.detail)}`];
}

export function packNoted(event: StoreEvent): string {
  const [type, rest] = packEvent(event);
  return `${type}\n${event.at}\n${rest}`;
}

export function unpackEvent(namespace: string, key: string, packed: string): StoreEvent {
  const [type, at, generation, fence] = packed.split('\n', 4) as [StoreEvent['type'], string, string, string];
  const start = type.length + at.length + generation.length + fence.length + 4;
  return {
    at: Number(at),
    namespace,
    key,
    generation: Number(generation),
    fence: Number(fence),
    type,
    detail: JSON.parse(packed.slice(start)),
  };
}
