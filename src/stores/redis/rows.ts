// A row as one packed text, and back: the revision that a swap compares, a short head, the texts one after the other as
// they are, and a checksum. A hash with values of this size would take twice the memory.

import { crc32 } from 'node:zlib';
import type { Found } from '../../store/far-backend.ts';
import { type Columns, columnsOf, rowOf } from '../../store/row-columns.ts';
import type { Row, StoreEvent } from '../../store/store.ts';
import { nameOf } from './names.ts';

/** What a packed record starts with as long as nobody else has written it. */
export function headOf(revision: number): string {
  return `${revision.toString(36)}\n`;
}

/** The checksum covers the name too: a value that was copied to another key is refused. */
export function pack(row: Row, revision: number): string {
  const [
    status,
    flags,
    fence,
    token,
    version,
    owner,
    created,
    settled,
    expires,
    args,
    content,
    result,
    asker,
    more,
  ] = columnsOf(row);
  const numbers = `${short(created)},${short(status)},${short(flags)},${short(fence)},${short(settled)},${short(expires)}`;
  const lengths = trimmed(
    `${sizeOf(args)},${sizeOf(content)},${sizeOf(result)},${sizeOf(asker)},${sizeOf(more)}`,
  );
  const names = `${tokenIn(token)},${escaped(version)},${escaped(owner)}`;
  const texts = `${args ?? ''}${content ?? ''}${result ?? ''}${asker ?? ''}${more ?? ''}`;
  const body = `${headOf(revision)}${numbers},${lengths}\n${names}\n${texts}`;
  return `${body}\n${checkOf(row.namespace, row.key, body)}`;
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
  if (packed.slice(end + 1) !== checkOf(namespace, key, packed.slice(0, end)))
    throw new Error('its checksum does not match');
  const [revision, head, names] = packed.split('\n', 3) as [string, string, string];
  const [created, status, flags, fence, settled, expires, ...lengths] = head.split(',').map(long);
  const [token, version, owner] = names.split(',').map(unescaped);
  let start = revision.length + head.length + names.length + 3;
  const texts = textColumns.map((index) => {
    const length = lengths[index] ?? null;
    if (length === null) return null;
    start += length;
    return packed.slice(start - length, start);
  });
  const hex = token ? tokenOf(token) : null;
  const columns = [status, flags, fence, hex, version, owner, created, settled, expires, ...texts];
  return { row: rowOf(namespace, key, columns as Columns), revision: long(revision) as number };
}

/** Arguments, content, result, asker, more. */
const textColumns = [0, 1, 2, 3, 4];

function checkOf(namespace: string, key: string, body: string): string {
  return crc32(body, crc32(nameOf(namespace, key))).toString(36);
}

/** Numbers take two thirds of the room so. */
export function short(value: number | null | undefined): string {
  return value === null || value === undefined ? '' : value.toString(36);
}

function long(text: string): number | null {
  return text === '' ? null : Number.parseInt(text, 36);
}

function sizeOf(text: string | null): string {
  return text === null ? '' : text.length.toString(36);
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
