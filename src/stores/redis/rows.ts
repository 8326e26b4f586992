// A row as one packed text, and back: revision, the slot of time in which it is filed, a short head, and the texts one
// after the other as they are. A hash with values of this size would take twice the memory.

import type { Found } from '../../store/far-backend.ts';
import { type Columns, columnsOf, rowOf } from '../../store/row-columns.ts';
import type { Row, StoreEvent } from '../../store/store.ts';

/** A record as Redis has it. */
export interface Filed extends Found {
  /** Where retention will find it; empty: nowhere. */
  readonly slot: number | '';
}

/** Retention looks at the records of one minute together. */
const slotMs = 60_000;

export function slotOf(instant: number | null): number | '' {
  return instant === null ? '' : Math.floor(instant / slotMs);
}

/**
 * From when on retention should look at it: never later than it can go. Of what is running it depends on nothing that a
 * renewal changes, and of what was sent it is a success that is foreseen.
 */
export function dueSlot({ status, expiresAt, createdAt, retention, dispatched }: Row): number | '' {
  if (status !== 'running') return slotOf(expiresAt);
  if (retention === null) return slotOf(createdAt);
  if (!dispatched) return slotOf(createdAt + retention.failureWindowMs);
  const { periodEndsAt, windowMs } = retention;
  return slotOf(Math.min(Number.MAX_SAFE_INTEGER, Math.max(createdAt, periodEndsAt ?? 0) + windowMs));
}

/** Whatever follows revision and slot. */
export function pack(row: Row): string {
  const [status, flags, fence, token, version, owner, created, settled, expires, ...texts] = columnsOf(row);
  const head = [created, status, flags, fence, settled, expires, ...texts.map((text) => text?.length ?? null)]
    .map(short)
    .join();
  return `${head.replace(/,+$/, '')}\n${[tokenIn(token), version, owner].map(escaped).join()}\n${texts.join('')}`;
}

/** One that semel did not write is told as an error of Redis would be: it concerns nobody but who asks for it. */
export function unpack(namespace: string, key: string, packed: string): Filed {
  try {
    return unpacked(namespace, key, packed);
  } catch (cause) {
    throw new Error(`UNREADABLE record ${JSON.stringify(key)} in ${JSON.stringify(namespace)}`, { cause });
  }
}

function unpacked(namespace: string, key: string, packed: string): Filed {
  const [revision, slot, head, names] = packed.split('\n', 4) as [string, string, string, string];
  const [created, status, flags, fence, settled = null, expires = null, ...lengths] = head
    .split(',')
    .map(long);
  const [token, version, owner] = names.split(',').map(unescaped);
  let start = revision.length + slot.length + head.length + names.length + 4;
  const texts = [0, 1, 2, 3, 4].map((index) => {
    const length = lengths[index] ?? null;
    if (length === null) return null;
    start += length;
    return packed.slice(start - length, start);
  });
  const columns = [
    status,
    flags,
    fence,
    token === '' ? null : tokenOf(token as string),
    version,
    owner,
    created,
    settled,
    expires,
    ...texts,
  ];
  return {
    row: rowOf(namespace, key, columns as Columns),
    revision: long(revision) as number,
    slot: slot === '' ? '' : (long(slot) as number),
  };
}

/** Numbers take two thirds of the room so. */
export function short(value: number | null | undefined | ''): string {
  return value === null || value === undefined || value === '' ? '' : value.toString(36);
}

export function long(text: string): number | null {
  return text === '' ? null : Number.parseInt(text, 36);
}

/** A usual token is hexadecimal. */
function tokenIn(token: string | null): string {
  return token === null ? '' : Buffer.from(token, 'hex').toString('base64url');
}

function tokenOf(text: string): string {
  return Buffer.from(text, 'base64url').toString('hex');
}

function escaped(text: string): string {
  return text.replace(/[%,\n]/g, encodeURIComponent);
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
