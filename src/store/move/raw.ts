// Reads and writes a whole ledger without the rules, for `semel store copy`. A record keeps its token, its fence and its
// history, so that its holder can continue in the new ledger.

import { leaseLeftMs, type Time } from '../../rules/state.ts';
import { toColumns } from '../columns.ts';
import type { Row, StoreEvent } from '../store.ts';
import type { Standing } from './ledger-state.ts';

/**
 * What a store provides to be moved. All methods work while the ledger is sealed or being filled, when every other call
 * is refused. Only the copy that called `fill(from)` may write, `from` being the incarnation of the source: each write
 * checks that in its own step.
 */
export interface Raw {
  about(): Promise<About>;
  /** All records, or only the open ones, in a stable order. */
  page(query: RawQuery): Promise<RawPage>;
  find(names: readonly Name[]): Promise<readonly (RawRecord | undefined)[]>;
  /** A durable write that changes nothing, to measure how long one takes. */
  probe(): Promise<void>;

  /** From now on every other write is refused with STORE_MOVED; writes that were under way have finished. */
  seal(to: string): Promise<void>;
  unseal(): Promise<void>;

  /** Closes an empty ledger to all but this copy. Safe to repeat. */
  fill(from: string): Promise<void>;
  /** Replaces or removes records with their history, in one durable step. */
  write(from: string, change: RawChange): Promise<void>;
  /** The copy is complete: opens the ledger to all. */
  finish(from: string): Promise<void>;
  /** No copy may write until the next `fill`. */
  abandon(from: string): Promise<void>;
}

export interface About extends Standing {
  /** The `--store` option or `SEMEL_STORE` for this ledger, without a password. */
  readonly address: string;
  /** The version of its schema, and the newest that this semel knows. */
  readonly schema: number;
  readonly known: number;
  /** The highest fence that pruning has removed. */
  readonly floor: number;
  readonly records: number;
  /** Running or unknown. */
  readonly open: number;
  /** Including indexes; undefined if unknown. */
  readonly bytes: number | undefined;
  /** The store's wall clock in milliseconds. */
  readonly now: number;
  /** When a person last accepted a loss of records, who, and their note. */
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
  /** Without its lease: an instant of one store's clock means nothing to another. */
  readonly row: Row;
  /** How long the holder has left; null: nobody holds it. */
  readonly leaseLeftMs: number | null;
  /** Oldest first. */
  readonly events: readonly StoreEvent[];
}

export interface RawChange {
  readonly put?: readonly RawRecord[];
  readonly remove?: readonly Name[];
  /** Raises the floor; never lowers it. */
  readonly floor?: number;
}

export function toRawRecord(row: Row, events: readonly StoreEvent[], time: Time): RawRecord {
  return {
    row: { ...row, leaseBoot: null, leaseUntil: null },
    leaseLeftMs: row.status === 'running' ? Math.ceil(leaseLeftMs(row, time)) : null,
    events,
  };
}

/** Clocks drift, and a lease that ends early lets another worker take over a live attempt. */
const marginMs = 1_000;

/** Converts the lease to the clock of the target. The holder also gains the time since the record was read. */
export function fromRawRecord(
  { row, leaseLeftMs: left }: RawRecord,
  { boot, mono }: Pick<Time, 'boot' | 'mono'>,
): Row {
  if (left === null) return row;
  return { ...row, leaseBoot: boot, leaseUntil: left === 0 ? mono : mono + left + marginMs };
}

/** Compares what is stored. The lease at the target may be longer, never shorter. */
export function isSame(there: RawRecord, here: RawRecord | undefined, passedMs: number): here is RawRecord {
  if (here === undefined) return false;
  const isCovered = (here.leaseLeftMs ?? 0) + passedMs >= (there.leaseLeftMs ?? 0);
  return isCovered && textOf(there) === textOf(here);
}

function textOf({ row, events, leaseLeftMs: left }: RawRecord): string {
  const history = events.map(({ at, generation, fence, type, detail }) => [
    at,
    generation,
    fence,
    type,
    detail,
  ]);
  return JSON.stringify([row.namespace, row.key, toColumns(row), left === null, history]);
}
