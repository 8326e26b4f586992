// The text of a cell: a record with its history; or what is left of one that was removed, so that its fence is not used
// again while a request that was sent before may still arrive.

import { type Columns, fromColumns, toColumns } from '../columns.ts';
import { damagedRecord } from '../damage.ts';
import type { Found } from '../remote/backend.ts';
import type { StoreEvent } from '../store.ts';
import { encodeSummed, isIntact } from '../summed.ts';
import type { CellName } from './cells.ts';

export interface Cell {
  readonly key: string;
  /** Undefined: the record was removed. */
  readonly found: Found | undefined;
  /** The fence of the record, or of the one that was removed. */
  readonly fence: number;
  /** When it was removed. */
  readonly goneAt: number;
  readonly events: readonly StoreEvent[];
  readonly pending: Pending | undefined;
}

/** Written, but valid only once somebody has checked that the other forms of its key had not changed. */
export interface Pending {
  readonly beside: readonly (readonly [key: string, revision: number | null])[];
  /** The cell as it was before; null: there was no record. */
  readonly undo: string | null;
}

/** A cell of a newer version is refused. */
const version = 1;

type PackedEvent = [
  at: number,
  generation: number,
  fence: number,
  type: StoreEvent['type'],
  detail: StoreEvent['detail'],
];

interface Packed {
  readonly v: number;
  readonly key: string;
  readonly revision?: number;
  readonly row?: Columns;
  readonly events?: readonly PackedEvent[];
  readonly pending?: Pending;
  readonly gone?: readonly [fence: number, at: number];
}

export function encodeRecord(
  { row, revision }: Found,
  events: readonly StoreEvent[],
  pending?: Pending | undefined,
): string {
  const packed: Packed = {
    v: version,
    key: row.key,
    revision,
    row: toColumns(row),
    ...packEvents(events),
    ...(pending === undefined ? {} : { pending }),
  };
  return encodeSummed(row.namespace, packed);
}

export function encodeGrave(
  { namespace, key }: CellName,
  fence: number,
  goneAt: number,
  events: readonly StoreEvent[] = [],
): string {
  const packed: Packed = { v: version, key, gone: [fence, goneAt], ...packEvents(events) };
  return encodeSummed(namespace, packed);
}

/** Throws if semel did not write this cell, or if it was changed since. `key`: the one that it must have. */
export function decodeCell(namespace: string, text: string, key?: string): Cell {
  let name = key ?? '(unreadable)';
  try {
    const packed = JSON.parse(text) as Packed;
    if (key === undefined && typeof packed.key === 'string') name = packed.key;
    if (!isIntact(namespace, text)) throw new Error('its checksum does not match');
    return unpack(namespace, name, packed);
  } catch (error) {
    throw damagedRecord(namespace, name, error instanceof Error ? error.message : String(error));
  }
}

function unpack(namespace: string, key: string, packed: Packed): Cell {
  if (packed.v !== version)
    throw new Error(
      packed.v > version ? 'a newer version of semel wrote it' : 'semel did not write it, or it was changed',
    );
  if (packed.key !== key) throw new Error('it belongs to another key');
  const { row: columns, revision = 0, gone } = packed;
  const events = (packed.events ?? []).map((event) => unpackEvent(namespace, key, event));
  if (columns === undefined) {
    if (gone === undefined) throw new Error('it has no record');
    const [fence, goneAt] = gone;
    return { key, found: undefined, fence, goneAt, events, pending: undefined };
  }
  const row = fromColumns(namespace, key, columns);
  return {
    key,
    found: { row, revision },
    fence: row.fence,
    goneAt: 0,
    events,
    pending: packed.pending,
  };
}

function packEvents(events: readonly StoreEvent[]): Pick<Packed, 'events'> {
  if (events.length === 0) return {};
  return {
    events: events.map(({ at, generation, fence, type, detail }) => [at, generation, fence, type, detail]),
  };
}

function unpackEvent(
  namespace: string,
  key: string,
  [at, generation, fence, type, detail]: PackedEvent,
): StoreEvent {
  return { at, namespace, key, generation, fence, type, detail };
}
