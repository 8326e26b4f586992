// A ledger as it lies there, beside the rules: for `semel store`, which moves it as a whole. Nothing here claims or
// settles; a record leaves and arrives with its token, its fence and its history, so that whoever holds it goes on.

import { leaseLeftMs, type Time } from '../../rules/state.ts';
import { toColumns } from '../columns.ts';
import type { Row, StoreEvent } from '../store.ts';
import type { Standing } from './ledger-state.ts';

/**
 * What a store offers to be moved. All of it works while the ledger is sealed or being filled, when every other call is
 * refused. Writing is for whoever closed the ledger with `fill(from)`, `from` being the incarnation of the source: each
 * write checks in its own step that this is still so.
 */
export interface Raw {
  about(): Promise<About>;
  /** All records in any order that does not change, or only the open ones; `after` is the `next` of the page before. */
  page(query: RawQuery): Promise<RawPage>;
  /** What is there under these names. */
  find(names: readonly Name[]): Promise<readonly (RawRecord | undefined)[]>;
  /** A durable write that changes nothing, to measure one. */
  probe(): Promise<void>;

  /** From here on every other write is refused with STORE_MOVED; one that was under way is done when this answers. */
  seal(to: string): Promise<void>;
  unseal(): Promise<void>;

  /** Closes an empty ledger for all but this copy; one that this copy has closed already stays so. */
  fill(from: string): Promise<void>;
  /** In one durable step. A record replaces what is there, with its history. */
  write(from: string, change: RawChange): Promise<void>;
  /** Everything is here: the ledger is open to all. */
  finish(from: string): Promise<void>;
  /** No copy writes here any more until the next `fill`. */
  abandon(from: string): Promise<void>;
}

export interface About extends Standing {
  /** What leads a command or `SEMEL_STORE` here, without a password. */
  readonly address: string;
  /** Of its schema, and the newest that this semel knows. */
  readonly schema: number;
  readonly known: number;
  /** The highest fence that was ever removed. */
  readonly floor: number;
  readonly records: number;
  /** Running or unknown. */
  readonly open: number;
  /** With indexes; undefined where nobody can tell. */
  readonly bytes: number | undefined;
  /** The store's wall clock in milliseconds. */
  readonly now: number;
  /** When a person accepted last that it had forgotten something, and what that person said. */
  readonly lossAccepted?:
    | { readonly at: number; readonly by: string | undefined; readonly note: string | undefined }
    | undefined;
}

export interface Name {
  readonly namespace: string;
  readonly key: string;
}

export interface RawQuery {
  readonly openOnly: boolean;
  readonly after: string | undefined;
  readonly limit: number;
}

export interface RawPage {
  readonly records: readonly RawRecord[];
  readonly next: string | undefined;
}

export interface RawRecord {
  /** Its lease says nothing: an instant of one store's clock means nothing to another. */
  readonly row: Row;
  /** How long the holder has left; null: nobody holds it. */
  readonly leaseLeftMs: number | null;
  /** In the order in which they happened. */
  readonly events: readonly StoreEvent[];
}

export interface RawChange {
  readonly put?: readonly RawRecord[];
  readonly remove?: readonly Name[];
  /** Not lowered by a lower one. */
  readonly floor?: number;
}

export function toRawRecord(row: Row, events: readonly StoreEvent[], time: Time): RawRecord {
  return {
    row: { ...row, leaseBoot: null, leaseUntil: null },
    leaseLeftMs: row.status === 'running' ? Math.ceil(leaseLeftMs(row, time)) : null,
    events,
  };
}

/** Clocks drift, and a lease that ends early is taken over under a living attempt. */
const marginMs = 1_000;

/** By the clock of the store that takes it. What has passed since it was read is given to the holder. */
export function fromRawRecord(
  { row, leaseLeftMs: left }: RawRecord,
  { boot, mono }: Pick<Time, 'boot' | 'mono'>,
): Row {
  if (left === null) return row;
  return { ...row, leaseBoot: boot, leaseUntil: left === 0 ? mono : mono + left + marginMs };
}

/** Field by field, as they are stored; a lease may be longer here than there, never shorter. */
export function isSame(there: RawRecord, here: RawRecord | undefined, passedMs: number): here is RawRecord {
  if (here === undefined) return false;
  const isCovered = (here.leaseLeftMs ?? 0) + passedMs >= (there.leaseLeftMs ?? 0);
  return isCovered && textOf(there) === textOf(here);
}

function textOf({ row, events, leaseLeftMs: left }: RawRecord): string {
  const told = events.map(({ at, generation, fence, type, detail }) => [at, generation, fence, type, detail]);
  return JSON.stringify([row.namespace, row.key, toColumns(row), left === null, told]);
}
