// A row as one packed text, and back: a head of fixed width that starts with the revision that a swap compares, a few numbers
// and names, the texts one after the other as they are, and a checksum. Redis rounds sizes up to steps of 64 bytes, so a few
// bytes may cost many; a hash with values of this size would take twice the memory.

import { crc32 } from 'node:zlib';
import { type Columns, fromColumns, toColumns } from '../../store/columns.ts';
import { damagedRecord, parseDetail } from '../../store/damage.ts';
import type { Found } from '../../store/remote/backend.ts';
import type { Row, StoreEvent } from '../../store/store.ts';
import { digit, digits2, digits6, digits7, numberIn, numbersIn, toBase36 } from './digits.ts';
import { nameOf } from './names.ts';

// The head: revision, created, status and flags, fence, token.
const createdFrom = 7;
const stateFrom = 14;
/** Where the digit stands that holds the status, counted from zero. */
export const statusAt = 15;
const fenceFrom = 16;
const tokenFrom = 25;
const headEnd = 36;
const statusBits = 3;
/** Behind the flags of the columns. */
const hasResult = 1 << 10;
const hasPlainAsker = 1 << 11;
/** Of a record whose token is not 64 bits: it is among the rest. */
const noToken = '...........';
const minuteMs = 60_000;

/** What a packed record starts with as long as nobody else has written it. */
export function headOf(revision: number): string {
  return digits7(revision);
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
    askers,
    more,
  ] = toColumns(row);
  const isPlain = askers?.startsWith('["') === true && askers.endsWith('"]');
  const asker = isPlain ? askers.slice(2, -2) : askers;
  const state =
    status | (flags << statusBits) | (result === null ? 0 : hasResult) | (isPlain ? hasPlainAsker : 0);
  const windowMs = expires !== null && settled !== null ? expires - settled : -1;
  const minutes = windowMs >= 0 && windowMs % minuteMs === 0 ? windowMs / minuteMs : null;
  const numbers = trimmed(
    `${short(settled)},${short(minutes)},${sizeOf(args)},${sizeOf(content)},${sizeOf(asker)},${sizeOf(more)},${minutes === null ? short(expires) : ''}`,
  );
  const head = `${digits7(revision)}${digits7(created)}${digits2(state)}${digits2(Math.floor(fence / 2 ** 42))}${digits7(fence % 2 ** 42)}${token === null ? noToken : tokenIn(token)}`;
  const names = `${version === usualVersion ? '' : escaped(version)},${escaped(owner)}`;
  const text = `${head}${numbers}\n${names}\n${args ?? ''}${content ?? ''}${asker ?? ''}${more ?? ''}${result ?? ''}`;
  return `${text}${checksum(row.namespace, row.key, text)}`;
}

function checksum(namespace: string, key: string, text: string): string {
  return digits6(crc32(nameOf(namespace, key) + text));
}

const usualVersion = '1';

/** Throws the damage of this one record: that semel did not write it, or that it was changed since. */
export function unpack(namespace: string, key: string, packed: string): Found {
  try {
    return unpacked(namespace, key, packed);
  } catch (error) {
    throw damagedRecord(namespace, key, error instanceof Error ? error.message : String(error));
  }
}

function unpacked(namespace: string, key: string, packed: string): Found {
  const end = packed.length - 6;
  if (packed.slice(end) !== checksum(namespace, key, packed.slice(0, end)))
    throw new Error('its checksum does not match');
  const numbersEnd = packed.indexOf('\n', headEnd);
  const namesEnd = packed.indexOf('\n', numbersEnd + 1);
  const state = numberIn(packed, stateFrom, fenceFrom);
  const token = packed.slice(tokenFrom, headEnd);
  const numbers = numbersIn(packed, headEnd, numbersEnd);
  const [settled = null, minutes = null] = numbers;
  const comma = packed.indexOf(',', numbersEnd);
  const version = packed.slice(numbersEnd + 1, comma);
  let start = namesEnd + 1;
  const text = (nth: number): string | null => {
    const length = numbers[nth] ?? null;
    if (length === null) return null;
    start += length;
    return packed.slice(start - length, start);
  };
  const args = text(2);
  const content = text(3);
  const asker = text(4);
  const more = text(5);
  const columns: Columns = [
    state & ((1 << statusBits) - 1),
    (state & (hasResult - 1)) >> statusBits,
    numberIn(packed, fenceFrom, tokenFrom),
    token === noToken ? null : tokenOf(token),
    version === '' ? usualVersion : unescaped(version),
    unescaped(packed.slice(comma + 1, namesEnd)),
    numberIn(packed, createdFrom, stateFrom),
    settled,
    minutes === null ? (numbers[6] ?? null) : (settled as number) + minutes * minuteMs,
    args,
    content,
    (state & hasResult) === 0 ? null : packed.slice(start, end),
    (state & hasPlainAsker) === 0 ? asker : `["${asker}"]`,
    more,
  ];
  return { row: fromColumns(namespace, key, columns), revision: numberIn(packed, 0, createdFrom) };
}

/** The code of the status, by the digit that stands at `statusAt`. */
export function statusIn(code: number): number {
  return digit(code) & ((1 << statusBits) - 1);
}

/** Numbers take two thirds of the room so. */
function short(value: number | null): string {
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

/** A usual token is 16 hexadecimal digits: 28 bits in five digits of ours, and 36 in six. */
function tokenIn(token: string): string {
  return (
    digits6(Number.parseInt(token.slice(0, 7), 16)).slice(1) + digits6(Number.parseInt(token.slice(7), 16))
  );
}

const hexTriples = Array.from({ length: 4096 }, (_, value) => value.toString(16).padStart(3, '0'));

function tokenOf(text: string): string {
  let hex = digit(text.charCodeAt(0)).toString(16);
  for (let at = 1; at < text.length; at += 2) hex += hexTriples[numberIn(text, at, at + 2)];
  return hex;
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
  const [type = '', at = '', generation = '', fence = ''] = packed.split('\n', 4);
  const start = type.length + at.length + generation.length + fence.length + 4;
  return {
    at: Number(at),
    namespace,
    key,
    generation: Number(generation),
    fence: Number(fence),
    type: type as StoreEvent['type'],
    detail: parseDetail(packed.slice(start)),
  };
}
