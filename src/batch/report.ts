// What became of the items of a batch, as a value.

import type { Receipt, Result } from '../call/index.ts';
import type { ErrorCode, SemelError } from '../core/errors.ts';

export type ItemOutcome<Item, Value> =
  | {
      readonly is: 'done';
      readonly item: Item;
      readonly index: number;
      /** Undefined also where the value was not stored, so that a replay cannot return it. */
      readonly value: Value | undefined;
      readonly receipt: Receipt;
    }
  | ItemProblem<Item>;

export interface ItemProblem<Item> {
  /**
   * `failed`: it did not land, as far as there is a record under its key. `in doubt`: it may have. `skipped`: it was not started.
   */
  readonly is: 'failed' | 'in doubt' | 'skipped';
  readonly item: Item;
  /** Its place in the source, from 0. */
  readonly index: number;
  /** Undefined: another process is working on it, and `ifBusy` is 'skip'. */
  readonly error: SemelError | undefined;
  readonly receipt: Receipt;
}

export interface BatchProgress {
  /** Undefined if the length of the source is unknown. */
  readonly total: number | undefined;
  readonly done: number;
  readonly failed: number;
  readonly inDoubt: number;
  readonly skipped: number;
  readonly running: number;
  /** Nothing runs any more: this is the last call. */
  readonly isOver: boolean;
}

export interface BatchReport<Item> {
  /** Every item of the source is done. */
  readonly ok: boolean;
  /** Executed now or earlier. */
  readonly done: number;
  /** Executed by this run. */
  readonly executed: number;
  readonly failed: number;
  readonly inDoubt: number;
  /** Read from the source and not started. */
  readonly skipped: number;
  /** At most 1,000, the first to end; `onItem` gets all. */
  readonly problems: readonly ItemProblem<Item>[];
  /** Why no further items were read; undefined: the source is exhausted. */
  readonly stopped: string | undefined;
  /** For people, over a few lines. */
  toString(): string;
}

export const maxProblemsKept = 1_000;

export function toOutcome<Item, Value>(
  item: Item,
  index: number,
  result: Result<Value>,
): ItemOutcome<Item, Value> {
  const { receipt } = result;
  if (result.ok)
    return receipt.skipped
      ? { is: 'skipped', item, index, error: undefined, receipt }
      : { is: 'done', item, index, value: result.value, receipt };
  const { error } = result;
  // It is done; only its value was not stored.
  if (error.code === 'RESULT_OMITTED') return { is: 'done', item, index, value: undefined, receipt };
  return { is: judge(error, receipt), item, index, error, receipt };
}

function judge({ code, evidence }: SemelError, receipt: Receipt): ItemProblem<unknown>['is'] {
  // A person gave it up: it may have landed.
  if (uncertain.has(code) || evidence?.givenUp === true) return 'in doubt';
  // Its transaction may have committed.
  if (evidence?.mayLand === true) return 'in doubt';
  // The other call of its key may be an earlier start of the same item.
  if (code === 'KEY_CONFLICT' && evidence?.open === 'in doubt') return 'in doubt';
  if (!unstarted.has(code)) return 'failed';
  return receipt.executed ? 'in doubt' : 'skipped';
}

const uncertain: ReadonlySet<ErrorCode> = new Set([
  'IN_DOUBT',
  'LEASE_LOST',
  'PARTIAL_SUCCESS',
  'UNRECORDED',
] as const);

const unstarted: ReadonlySet<ErrorCode> = new Set([
  'IN_FLIGHT',
  'ABORTED',
  'EXPIRED',
  'STORE_UNAVAILABLE',
  'STORE_UNSAFE',
  'STORE_MOVED',
] as const);

/** The next item would end the same way. */
export function concernsAll(error: SemelError | undefined): boolean {
  if (error === undefined) return false;
  // The caller's own `transaction` is wrong for every item.
  if (error.code === 'CONTRACT_INVALID' && error.path === 'transaction') return true;
  return general.has(error.code) && error.evidence?.mayLand !== true;
}

const general: ReadonlySet<ErrorCode> = new Set([
  'STORE_UNAVAILABLE',
  'STORE_UNSAFE',
  'STORE_MOVED',
  'NO_IDENTITY',
  'VERSION_MISMATCH',
] as const);

export function describeReport<Item>(report: Omit<BatchReport<Item>, 'toString'>): string {
  const { done, executed, failed, inDoubt, skipped, problems, stopped } = report;
  const before = done - executed;
  const counts = [
    `${done} done${before > 0 ? ` (${before} before)` : ''}`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(inDoubt > 0 ? [`${inDoubt} in doubt`] : []),
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
  ];
  const shown = problems.slice(0, maxShown);
  const more = failed + inDoubt + skipped - shown.length;
  return [
    counts.join(', '),
    ...(stopped === undefined ? [] : [`stopped: ${stopped}`]),
    ...shown.map(
      ({ index, is, error, receipt }) =>
        `item ${index}${ownId(receipt)}, ${is}: ${error?.happened ?? 'running elsewhere'}`,
    ),
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join('\n');
}

const maxShown = 10;

/** The id that the caller gave, if it is in the key; not a digest. */
function ownId({ key }: Receipt): string {
  const [, id] = /^[^/]*\/=([^/]+)/.exec(key) ?? [];
  try {
    return id === undefined ? '' : ` (${decodeURIComponent(id)})`;
  } catch {
    return '';
  }
}
