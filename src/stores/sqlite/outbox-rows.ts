// The table of the outbox: keeps rows and lends them; never decides whether an effect may run.

import {
  countingSql,
  failedReason,
  givenUpReason,
  type Intent,
  type Outbox,
  type OutboxCount,
  type OutboxQuery,
  type OutboxRow,
  outboxStates,
  type PutBack,
  parseDrift,
  strictPrint,
  type TakeQuery,
} from '../../store/outbox.ts';
import type { Row } from '../../store/store.ts';
import { query, type SqliteLike, type SqliteValue } from './client.ts';

type Loan = Parameters<Outbox['keep']>[0][number];

export interface OutboxRows {
  /** Undefined if the intent is staged already. */
  add(intent: Intent, now: number): number | undefined;
  find(namespace: string, key: string): OutboxRow | undefined;
  noteDrift(n: number, fields: readonly string[]): void;
  hasDue(asked: TakeQuery, now: number): boolean;
  take(asked: TakeQuery, now: number): readonly OutboxRow[];
  /** The rows that are still lent until `dueAt`, and are now until `until`. */
  keep(rows: readonly Loan[], until: number): readonly number[];
  mark(row: Parameters<Outbox['mark']>[0]): boolean;
  putBack(row: PutBack, now: number): void;
  retry(n: number): boolean;
  /** Delivered, or not wanted any more. */
  remove(n: number): boolean;
  /** Follows a record that has ended: what landed leaves the outbox, and what was given up is dead. */
  follow(row: Row): void;
  /** An intent waits that was staged before the record's window was over: the record says that it has landed. */
  awaits(row: Row): boolean;
  /** Marks the row that a record which makes room for a new life did not take along, and that only a relay could compare. */
  leave(former: Row): void;
  /** Somebody else may have staged since. */
  forget(): void;
  list(asked: OutboxQuery): readonly OutboxRow[];
  count(namespaces: readonly string[] | undefined, now: number): readonly OutboxCount[];
  isEmpty(): boolean;
}

const columns =
  'n, namespace, key, contract, version, group_name, fingerprint, caller, call, staged, due, state, tries, generation, reason, drift';

type Values = [
  ...[n: number, namespace: string, key: string, contract: string, version: string, group: string | null],
  ...[
    fingerprint: string | null,
    caller: string | null,
    call: string,
    stagedAt: number,
    dueAt: number,
    state: number,
    tries: number,
  ],
  ...[generation: number | null, reason: string | null, drift: string | null],
];

type CountValues = readonly [
  ...[namespace: string, waiting: number, behind: number, inDoubt: number, dead: number],
  oldestAt: number | null,
];

/** Takes only the first row of a group; with `skip`, the first that is neither in doubt nor dead, and those in doubt. */
const due = `FROM outbox AS o WHERE namespace = ? AND due <= ? AND state < 2
  AND contract IN (SELECT value FROM json_each(?)) AND (group_name IS NULL OR NOT EXISTS (SELECT 1 FROM outbox AS e
    WHERE e.namespace = o.namespace AND e.group_name = o.group_name AND e.n < o.n AND NOT (? AND e.state > 0)))`;

/** `onWrite` is called for every change. */
export function createOutboxRows(database: SqliteLike, onWrite: () => void): OutboxRows {
  const insert = query(
    database,
    `INSERT INTO outbox (namespace, key, contract, version, group_name, fingerprint, caller, call, staged, due)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (namespace, key) DO NOTHING RETURNING n`,
  );
  const find = query(database, `SELECT ${columns} FROM outbox WHERE namespace = ? AND key = ?`);
  const setDrift = database.prepare('UPDATE outbox SET drift = ? WHERE n = ?');
  const findDue = query(database, `SELECT ${columns} ${due} ORDER BY due, n LIMIT ?`);
  const isAnyDue = query(database, `SELECT EXISTS (SELECT 1 ${due})`);
  const lend = database.prepare('UPDATE outbox SET due = ? WHERE n = ? AND due = ?');
  // An effect that was started in another life of its record must not run again.
  const setMark = database.prepare(
    'UPDATE outbox SET generation = ? WHERE n = ? AND (generation IS NULL OR generation = ?)',
  );
  const setBack = database.prepare(
    `UPDATE outbox SET state = ?, due = ?, reason = ?, tries = tries + ?, generation = iif(?, NULL, generation)
     WHERE n = ? AND due = ?`,
  );
  const setRetry = database.prepare(
    `UPDATE outbox SET state = 0, due = 0, tries = 0, generation = NULL,
     reason = 'a person said to deliver it again' WHERE n = ?`,
  );
  // Another intent under the same key, or another caller's, is left to a relay, which reports its outcome.
  const sameIntent = 'namespace = ? AND key = ? AND fingerprint IS ? AND caller IS ?';
  const removeLanded = database.prepare(`DELETE FROM outbox WHERE ${sameIntent}`);
  // What started in another life of the record may have landed, whatever became of this one.
  const setFailed = database.prepare(
    `UPDATE outbox SET state = 2, reason = ?, generation = nullif(generation, ?) WHERE ${sameIntent}`,
  );
  // What was given up may have landed: its row keeps the life of the record, which may be gone before somebody delivers it
  // again. A new `due` ends the loan of a relay that does not know yet.
  const setGivenUp = database.prepare(
    `UPDATE outbox SET state = 2, due = 0, reason = ?, generation = ? WHERE ${sameIntent}`,
  );
  const isAwaited = query(database, 'SELECT 1 FROM outbox WHERE namespace = ? AND key = ? AND staged < ?');
  const setFormer = database.prepare(
    `UPDATE outbox SET generation = ? WHERE namespace = ? AND key = ? AND staged < ?
     AND generation IS NULL AND fingerprint = '${strictPrint}'`,
  );
  const remove = database.prepare('DELETE FROM outbox WHERE n = ?');
  const findMany = query(
    database,
    `SELECT ${columns}, (SELECT min(e.n) FROM outbox AS e WHERE e.namespace = o.namespace AND e.group_name = o.group_name
       AND e.n < o.n AND e.state > 0) FROM outbox AS o WHERE n > ? AND ifnull(namespace = ?, 1) AND ifnull(state = ?, 1) ORDER BY n LIMIT ?`,
  );
  const count = query(
    database,
    countingSql('outbox', '?2', 'WHERE ?1 IS NULL OR namespace IN (SELECT value FROM json_each(?1))'),
  );
  const findAny = query(database, 'SELECT n FROM outbox LIMIT 1');
  /** Most ledgers stage nothing: then a settlement need not look for its row. */
  let isKnownEmpty = false;

  return {
    add(intent, now) {
      isKnownEmpty = false;
      const { namespace, key, contract, version, group, fingerprint, caller, call, notBefore } = intent;
      const about = [namespace, key, contract, version, group, fingerprint, caller];
      const values = [...about, call, now, notBefore ?? now];
      const n = insert.get(...values)?.[0] as number | undefined;
      if (n !== undefined) onWrite();
      return n;
    },
    find(namespace, key) {
      const values = find.get(namespace, key);
      return values && decode(values);
    },
    noteDrift: (n, fields) => void write(setDrift, JSON.stringify(fields), n),
    hasDue: (asked, now) => isAnyDue.get(...whichDue(asked, now))?.[0] === 1,
    take(asked, now) {
      const rows = findDue.all(...whichDue(asked, now), asked.limit).map(decode);
      const dueAt = now + asked.holdMs;
      for (const row of rows) write(lend, dueAt, row.n, row.dueAt);
      return rows.map((row) => ({ ...row, dueAt })).sort((a, b) => a.n - b.n);
    },
    keep: (rows, until) => rows.filter(({ n, dueAt }) => write(lend, until, n, dueAt)).map(({ n }) => n),
    mark: ({ n, generation }) => write(setMark, generation, n, generation),
    putBack({ n, dueAt, state, waitMs, reason, isSpent }, now) {
      const spent = isSpent ? 1 : 0;
      write(
        setBack,
        outboxStates.indexOf(state),
        now + Math.ceil(waitMs),
        ...[reason, spent, spent, n, dueAt],
      );
    },
    retry: (n) => write(setRetry, n),
    remove: (n) => write(remove, n),
    follow({ namespace, key, fingerprint, caller, status, doubtFence, generation }) {
      if (seesEmpty()) return;
      const which = [namespace, key, fingerprint, caller];
      if (status === 'succeeded') write(removeLanded, ...which);
      else if (doubtFence === null) write(setFailed, failedReason, generation, ...which);
      else write(setGivenUp, givenUpReason, generation, ...which);
    },
    awaits: ({ namespace, key, expiresAt }) =>
      expiresAt !== null && !seesEmpty() && isAwaited.get(namespace, key, expiresAt) !== undefined,
    leave({ namespace, key, expiresAt, generation }) {
      if (expiresAt !== null && !seesEmpty()) write(setFormer, generation, namespace, key, expiresAt);
    },
    forget() {
      isKnownEmpty = false;
    },
    list: ({ namespace = null, state, after = 0, limit }) =>
      findMany
        .all(after, namespace, state === undefined ? null : outboxStates.indexOf(state), limit)
        .map((found) => ({ ...decode(found), behind: found.at(-1) as number | null })),
    count: (namespaces, now) =>
      count.all(namespaces === undefined ? null : JSON.stringify(namespaces), now).map((found) => {
        const [namespace, waiting, behind, inDoubt, dead, oldestAt] = found as CountValues;
        return { namespace, waiting, behind, inDoubt, dead, oldestAt, now };
      }),
    isEmpty: () => findAny.get() === undefined,
  };

  function seesEmpty(): boolean {
    isKnownEmpty ||= findAny.get() === undefined;
    return isKnownEmpty;
  }

  function write(statement: ReturnType<SqliteLike['prepare']>, ...values: SqliteValue[]): boolean {
    const isChanged = Number(statement.run(...values).changes) > 0;
    if (isChanged) onWrite();
    return isChanged;
  }
}

function whichDue({ namespace, contracts, skipBlocked }: TakeQuery, now: number): SqliteValue[] {
  return [namespace, now, JSON.stringify(contracts), skipBlocked ? 1 : 0];
}

function decode(found: readonly SqliteValue[]): OutboxRow {
  const values = found as unknown as Values;
  const [n, namespace, key, contract, version, group, fingerprint, caller] = values;
  const [, , , , , , , , call, stagedAt, dueAt, state, tries, generation, reason, drift] = values;
  return {
    ...{ n, namespace, key, contract, version, group, fingerprint, caller },
    ...{ call, stagedAt, dueAt, tries, generation, reason },
    state: outboxStates[state] ?? 'dead',
    drift: drift === null ? [] : parseDrift(drift),
  };
}
