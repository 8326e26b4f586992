// Packs a row into one text, and back: a head of fixed width that starts with the revision that a swap compares, a few
// numbers and names, the texts one after the other, and a checksum. Redis rounds sizes up to steps of 64 bytes, so every
// byte counts; a hash would take twice the memory.

import { crc32 } from 'node:zlib';
import { type Columns, fromColumns, toColumns } from '../../store/columns.ts';
import { damagedRecord, parseDetail } from '../../store/damage.ts';
import type { Found } from '../../store/remote/backend.ts';
import type { Row, StoreEvent } from '../../store/store.ts';
import { digit, digits2, digits6, digits7, parseNumber, parseNumbers, toBase36 } from './digits.ts';
import { joinName } from './names.ts';

// The head: revision, created, status and flags, fence, token.
const createdFrom = 7;
const stateFrom = 14;
/** Index of the digit that holds the status. */
export const statusAt = 15;
const fenceFrom = 16;
const tokenFrom = 25;
const headEnd = 36;
const statusBits = 3;
/** Bits after those of the columns' flags. */
const hasResult = 1 << 10;
const hasPlainAsker = 1 << 11;
/** For a token that is not 64 bits, which is stored with the rest. */
const noToken = '...........';
const minuteMs = 60_000;

/** How a packed record of this revision starts. */
export function encodeHead(revision: number): string {
  return digits7(revision);
}

/** The checksum includes the name, so a value copied to another key is refused. */
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
  const numbers = trimCommas(
    `${encodeNumber(settled)},${encodeNumber(minutes)},${encodeSize(args)},${encodeSize(content)},${encodeSize(asker)},${encodeSize(more)},${minutes === null ? encodeNumber(expires) : ''}`,
  );
  const head = `${digits7(revision)}${digits7(created)}${digits2(state)}${digits2(Math.floor(fence / 2 ** 42))}${digits7(fence % 2 ** 42)}${token === null ? noToken : encodeToken(token)}`;
  const names = `${version === usualVersion ? '' : escapeName(version)},${escapeName(owner)}`;
  const text = `${head}${numbers}\n${names}\n${args ?? ''}${content ?? ''}${asker ?? ''}${more ?? ''}${result ?? ''}`;
  return `${text}${checksum(row.namespace, row.key, text)}`;
}

function checksum(namespace: string, key: string, text: string): string {
  return digits6(crc32(joinName(namespace, key) + text));
}

const usualVersion = '1';

/** Throws if semel did not write this record, or if it was changed since. */
export function unpack(namespace: string, key: string, packed: string): Found {
  try {
    return parsePacked(namespace, key, packed);
  } catch (error) {
    throw damagedRecord(namespace, key, error instanceof Error ? error.message : String(error));
  }
}

function parsePacked(namespace: string, key: string, packed: string): Found {
  const end = packed.length - 6;
  if (packed.slice(end) !== checksum(namespace, key, packed.slice(0, end)))
    throw new Error('its checksum does not match');
  const numbersEnd = packed.indexOf('\n', headEnd);
  const namesEnd = packed.indexOf('\n', numbersEnd + 1);
  const state = parseNumber(packed, stateFrom, fenceFrom);
  const token = packed.slice(tokenFrom, headEnd);
  const numbers = parseNumbers(packed, headEnd, numbersEnd);
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
    parseNumber(packed, fenceFrom, tokenFrom),
    token === noToken ? null : decodeToken(token),
    version === '' ? usualVersion : unescapeName(version),
    unescapeName(packed.slice(comma + 1, namesEnd)),
    parseNumber(packed, createdFrom, stateFrom),
    settled,
    minutes === null ? (numbers[6] ?? null) : (settled as number) + minutes * minuteMs,
    args,
    content,
    (state & hasResult) === 0 ? null : packed.slice(start, end),
    (state & hasPlainAsker) === 0 ? asker : `["${asker}"]`,
    more,
  ];
  return { row: fromColumns(namespace, key, columns), revision: parseNumber(packed, 0, createdFrom) };
}

/** The status code in the digit at `statusAt`. */
export function parseStatus(code: number): number {
  return digit(code) & ((1 << statusBits) - 1);
}

/** Base 36 takes two thirds of the space of decimal digits. */
function encodeNumber(value: number | null): string {
  return value === null ? '' : toBase36(value);
}

function encodeSize(text: string | null): string {
  return text === null ? '' : toBase36(text.length);
}

function trimCommas(list: string): string {
  let end = list.length;
  while (end > 0 && list.charCodeAt(end - 1) === comma) end -= 1;
  return list.slice(0, end);
}

const comma = 44;

/** A usual token has 16 hex digits: 28 bits as five base-64 digits, and 36 bits as six. */
function encodeToken(token: string): string {
  return (
    digits6(Number.parseInt(token.slice(0, 7), 16)).slice(1) + digits6(Number.parseInt(token.slice(7), 16))
  );
}

const hexTriples = Array.from({ length: 4096 }, (_, value) => value.toString(16).padStart(3, '0'));

function decodeToken(text: string): string {
  let hex = digit(text.charCodeAt(0)).toString(16);
  for (let at = 1; at < text.length; at += 2) hex += hexTriples[parseNumber(text, at, at + 2)];
  return hex;
}

const special = /[%,\n]/;

function escapeName(text: string): string {
  return special.test(text) ? text.replace(/[%,\n]/g, encodeURIComponent) : text;
}

function unescapeName(text: string): string {
  return text.includes('%') ? decodeURIComponent(text) : text;
}

/** Without its instant, which the store may add. */
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
