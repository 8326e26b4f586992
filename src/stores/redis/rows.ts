// A row as one packed text, and back: revision, the slot of time in which it is filed, a short head, and the texts one
// after the other as they are. A hash with values of this size would take twice the memory.

import { dueAt } from '../../store/due.ts';
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

export function dueSlot(row: Row): number | '' {
  return slotOf(dueAt(row));
}

/** Whatever follows revision and slot. */
export function pack(row: Row): string {
  const [status, flags, fence, token, version, owner, created, settled, expires, ...texts] = columnsOf(row);
  const head: unknown[] = [created, status, flags, fence, token, version, owner, settled, expires];
  for (const text of texts) head.push(text === null ? null : text.length);
  while (head.at(-1) === null) head.pop();
  return `${JSON.stringify(head).slice(1, -1)}\n${texts.join('')}`;
}

export function unpack(namespace: string, key: string, packed: string): Filed {
  const [revision, slot, head] = packed.split('\n', 3) as [string, string, string];
  const [created, status, flags, fence, token, version, owner, settled = null, expires = null, ...lengths] =
    JSON.parse(`[${head}]`);
  let start = revision.length + slot.length + head.length + 3;
  const texts = [0, 1, 2, 3, 4].map((index) => {
    const length: number | null = lengths[index] ?? null;
    if (length === null) return null;
    start += length;
    return packed.slice(start - length, start);
  });
  const columns = [status, flags, fence, token, version, owner, created, settled, expires, ...texts];
  return {
    row: rowOf(namespace, key, columns as Columns),
    revision: Number(revision),
    slot: slot === '' ? '' : Number(slot),
  };
}

/** Without its instant, which may be the store's to tell. */
export function packEvent(event: Omit<StoreEvent, 'at'>): [type: string, rest: string] {
  return [event.type, `${event.generation}\n${event.fence}\n${JSON.stringify(event.detail)}`];
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
