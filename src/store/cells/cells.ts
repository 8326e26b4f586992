// What a service must do to hold a ledger if all it has is a compare-and-set of one value: DynamoDB, S3. One cell holds
// everything about one record.

import type { StoreFacts } from '../store.ts';

export interface CellName {
  readonly namespace: string;
  readonly key: string;
}

export interface StoredCell {
  readonly text: string;
  /** Changes with every write of the cell, and is never used again for it. */
  readonly tag: string;
}

export interface CellPage {
  readonly cells: readonly (StoredCell & {
    /** Where the next page starts if this is the last cell of a page. */
    readonly place: string;
  })[];
  /** Undefined: there are no more. */
  readonly next: string | undefined;
}

export interface Cells {
  /** Refuses a place that is not safe. Creates what is missing, if `mayCreate`. */
  open(): Promise<Omit<StoreFacts, 'clockProblem'>>;
  /** As of now, not of a moment ago. */
  read(names: readonly CellName[]): Promise<readonly (StoredCell | undefined)[]>;
  /**
   * Writes the cell if it still has this tag (undefined: if there is none) and returns its new tag once it is durable.
   * Undefined: it was not written, or an earlier try of this call wrote it and the reply was lost.
   */
  swap(name: CellName, text: string, tag: string | undefined): Promise<string | undefined>;
  /** Deletes the cell if it still has this tag. False also if the service cannot compare: then it stays. */
  remove(name: CellName, tag: string): Promise<boolean>;
  /** Cells of one namespace whose keys start with `prefix`, and perhaps others, in the order of their names. */
  list(
    namespace: string,
    from: { readonly prefix: string; readonly after: string | undefined; readonly limit: number },
  ): Promise<CellPage>;
  /** Every namespace that has held cells, in any order. */
  namespaces(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** The cell in which the ledger says what it is. No namespace of a user has control characters. */
export const metaName: CellName = { namespace: '\u0001semel', key: 'ledger' };

/**
 * The key, or if its encoded form is too long, its start and its digest. Keys have no control characters, so the two never
 * meet; and every cell contains its key.
 */
export function shortenKey(
  key: string,
  maxBytes: number,
  encode: (text: string) => string,
  digest: (text: string) => string,
): string {
  const whole = encode(key);
  if (Buffer.byteLength(whole) <= maxBytes) return whole;
  const end = encode(`\u0001${digest(key)}`);
  const left = maxBytes - Buffer.byteLength(end);
  // The longest start that fits, encoded as a whole: lists look for it as they encode a prefix.
  let [fits, tooLong] = [0, key.length];
  while (tooLong - fits > 1) {
    const middle = (fits + tooLong) >> 1;
    if (Buffer.byteLength(encode(cutCharacters(key, middle))) <= left) fits = middle;
    else tooLong = middle;
  }
  return encode(cutCharacters(key, fits)) + end;
}

/** Never half a character. */
function cutCharacters(text: string, length: number): string {
  return text.slice(0, length).replace(/[\ud800-\udbff]$/, '');
}
