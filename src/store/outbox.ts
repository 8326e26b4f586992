// What a store offers to an outbox: staged intents in the ledger's own database. It has no policy: it keeps rows, lends them
// to relays, and writes down what became of them. Whether an effect may run is decided by its record.

/** Waiting to be delivered · in doubt · dead: not tried again, because it did not land or a person gave it up. */
export type OutboxState = 'waiting' | 'in doubt' | 'dead';

/** In this order they are stored as numbers. */
export const outboxStates: readonly OutboxState[] = ['waiting', 'in doubt', 'dead'];

/** An intent to be staged. */
export interface Intent {
  readonly namespace: string;
  readonly key: string;
  /** The same intent under earlier forms of the contract. */
  readonly olderKeys: readonly string[];
  readonly contract: string;
  readonly version: string;
  readonly group: string | null;
  /**
   * A record of the key takes the row along only if it has the same: the digest of the identity args under a caller's own key; null:
   * the key says it.
   */
  readonly fingerprint: string | null;
  readonly caller: string | null;
  /** Wait for other transactions that stage in the group, so that rows have the order of the commits. */
  readonly strict: boolean;
  readonly notBefore: number | null;
  /** All that a relay needs to make the call, as JSON. */
  readonly call: string;
}

export interface OutboxRow extends Omit<Intent, 'olderKeys' | 'strict' | 'notBefore'> {
  readonly n: number;
  readonly state: OutboxState;
  readonly stagedAt: number;
  /** Not taken before; for a row that a relay has, when others may take it. */
  readonly dueAt: number;
  /** Attempts that definitely did not land. */
  readonly tries: number;
  /**
   * The life of the record in which its effect was last started, if that was marked. A dead row has one only if it may have
   * landed.
   */
  readonly generation: number | null;
  /** Why it waits, is in doubt or dead. */
  readonly reason: string | null;
  /** Content fields in which a later staging was worded differently. */
  readonly drift: readonly string[];
  /** Only in lists: the first row of its group that is in doubt or dead, if it comes after that one. */
  readonly behind?: number | null;
}

/** Up to `maxCounted` rows of the outbox, oldest first, by namespace. */
export interface OutboxCount {
  readonly namespace: string;
  /** Waiting, and not behind another. */
  readonly waiting: number;
  /** Waiting, behind a row of their group that is in doubt or dead. */
  readonly behind: number;
  readonly inDoubt: number;
  readonly dead: number;
  /** When the oldest was staged that is not dead. */
  readonly oldestAt: number | null;
  /** By the store's clock. */
  readonly now: number;
}

export const maxCounted = 20_000;

/** Counts in both stores. `outbox`, `now` and the condition on namespaces differ. */
export function countingSql(outbox: string, now: string, which: string): string {
  return `WITH counted AS (SELECT namespace, group_name, n, state, staged FROM ${outbox} AS o ${which} ORDER BY n LIMIT ${maxCounted}),
    stops AS (SELECT namespace, group_name, min(n) AS n FROM counted WHERE state > 0 AND group_name IS NOT NULL GROUP BY namespace, group_name)
    SELECT s.namespace AS namespace, count(*) FILTER (WHERE s.state = 0 AND (t.n IS NULL OR s.n < t.n)) AS waiting,
      count(*) FILTER (WHERE s.state = 0 AND s.n > t.n) AS behind, count(*) FILTER (WHERE s.state = 1) AS in_doubt,
      count(*) FILTER (WHERE s.state = 2) AS dead, min(s.staged) FILTER (WHERE s.state < 2) AS oldest, ${now} AS now
    FROM counted AS s LEFT JOIN stops AS t ON t.namespace = s.namespace AND t.group_name = s.group_name GROUP BY s.namespace`;
}

export interface TakeQuery {
  readonly namespace: string;
  readonly contracts: readonly string[];
  readonly limit: number;
  /** How long no other relay takes them. */
  readonly holdMs: number;
  /** A group goes on after a row that is in doubt or dead. */
  readonly skipBlocked: boolean;
}

/** What becomes of a row that was not delivered. */
export interface PutBack {
  readonly n: number;
  /** Until when it was lent: if it was lent again or a person decided since, this is void. */
  readonly dueAt: number;
  readonly state: OutboxState;
  readonly waitMs: number;
  readonly reason: string;
  /** One more definite failure, even the last: the next attempt may start a new life of the record. */
  readonly isSpent: boolean;
}

export interface OutboxQuery {
  /** @default all */
  readonly namespace?: string | undefined;
  readonly state?: OutboxState | undefined;
  readonly after?: number;
  readonly limit: number;
}

export interface Outbox {
  /**
   * A call that lands takes the row of its key along, in one commit, unless it may be repeated anyway; and a record that is
   * given up makes its row dead, with its life. Only if it is the same intent: not with another `fingerprint` or of another caller. False: a relay marks rows before their effects start, and removes them itself.
   */
  readonly removesLanded: boolean;
  /** Lends rows that are due, oldest first, and of a group only its first. */
  take(query: TakeQuery): Promise<readonly OutboxRow[]>;
  /** Holds rows for longer that are still lent until `dueAt`; `kept` are those that were. */
  keep(
    rows: readonly { readonly n: number; readonly dueAt: number }[],
    holdMs: number,
  ): Promise<{ readonly dueAt: number; readonly kept: readonly number[] }>;
  /**
   * Writes down, before an effect starts, the life of the record that it runs in. False: the row is gone, or its effect was
   * started in another one: then it must not run.
   */
  mark(row: { readonly n: number; readonly generation: number }): Promise<boolean>;
  remove(n: number): Promise<void>;
  putBack(row: PutBack): Promise<void>;
  list(query: OutboxQuery): Promise<readonly OutboxRow[]>;
  /** Undefined: of all namespaces. */
  count(namespaces: readonly string[] | undefined): Promise<readonly OutboxCount[]>;
  find(namespace: string, key: string): Promise<OutboxRow | undefined>;
  /** A person's decision: deliver it again, as if it had never been tried; false: it is gone. */
  retry(n: number): Promise<boolean>;
  /** A person's decision: it is not delivered any more. */
  drop(n: number): Promise<boolean>;
}

/** The `fingerprint` of a row that follows no record: only a relay can compare what must be equal. */
export const strictPrint = 'strict';

/** Why a row is dead that followed its record. */
export const failedReason = 'its record is failed: semel show says why';
export const givenUpReason = 'a person gave up its record, and it may have landed: semel show says more';

/** Nothing depends on it, and one row must not keep the others from being read. */
export function parseDrift(text: string): readonly string[] {
  try {
    return (JSON.parse(text) as unknown[]).map(String);
  } catch {
    return ['(unreadable)'];
  }
}
