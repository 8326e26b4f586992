// The caller's open transaction by its shape: `pg`, postgres.js, Drizzle, Kysely or Prisma. No driver is imported. Refuses a
// pool or a client without a transaction: what is written there would commit by itself.

import { SemelError } from '../../../core/errors.ts';
import { isUnknownStatement } from '../client.ts';

type Rows = readonly Record<string, unknown>[];

export interface CallerTransaction {
  /** The caller's handle. */
  readonly tx: unknown;
  /** The driver shows that a transaction is open; otherwise only a savepoint proves it. */
  readonly isKnownOpen: boolean;
  /** Every value is a text: drivers differ in how they send numbers and lists. */
  query(text: string, values?: readonly (string | null)[], name?: string): Promise<Rows>;
  /** The server process that answered: one of the client's own may keep named statements prepared. */
  learnSession?(pid: number): void;
  /** Undoes what `work` wrote if it rejects. */
  savepoint<T>(work: (inner: CallerTransaction) => Promise<T>): Promise<T>;
}

/** Rejects with 25P01 outside a transaction: the proof that one is open. */
const savepointName = 'semel_call';

export function adaptTransaction(tx: unknown): CallerTransaction {
  const isObject = (typeof tx === 'object' && tx !== null) || typeof tx === 'function';
  const found = isObject ? shapes.find((shape) => shape.isLike(tx as Handle)) : undefined;
  if (found === undefined)
    throw new SemelError('INVALID_ARGS', 'The first argument is not a transaction that semel knows.', {
      path: 'tx',
      next:
        'Nothing was run. Pass a `pg` client after BEGIN, the `sql` of postgres.js inside `sql.begin`, the `tx` of ' +
        'Drizzle, Kysely or Prisma inside their transaction, or an object whose `query(text, values)` resolves to rows.',
    });
  if (!found.isOpen(tx as Handle)) throw notOpenError();
  return found.adapt(tx as Handle);
}

export function notOpenError(cause?: unknown): SemelError {
  return new SemelError('INVALID_ARGS', 'There is no open transaction on this client.', {
    path: 'tx',
    next: 'Nothing was run. Begin a transaction first, and pass the client or handle that it runs on; not a pool.',
    ...(cause === undefined ? {} : { cause }),
  });
}

type Handle = Readonly<Record<string, unknown>>;

interface Shape {
  isLike(handle: Handle): boolean;
  /** Whether the driver shows an open transaction; true if it shows nothing, since the savepoint proves it. */
  isOpen(handle: Handle): boolean;
  adapt(handle: Handle): CallerTransaction;
}

const has = (handle: Handle, ...names: readonly string[]): boolean =>
  names.every((name) => typeof handle[name] === 'function');

/** Inside `sql.begin`. One failed query fails its whole scope, so an undone call needs a scope of its own. */
const postgresJs: Shape = {
  isLike: (handle) => has(handle, 'unsafe'),
  isOpen: (handle) => has(handle, 'savepoint'),
  adapt(handle) {
    const sql = handle as unknown as {
      unsafe(text: string, values: readonly unknown[]): PromiseLike<Rows>;
      savepoint<T>(work: (inner: Handle) => Promise<T>): Promise<T>;
    };
    return {
      tx: handle,
      isKnownOpen: true,
      query: async (text, values = []) => sql.unsafe(text, values),
      savepoint: (work) => sql.savepoint((inner) => work(postgresJs.adapt(inner))),
    };
  },
};

/** A database object can `execute` too; only a transaction can `rollback`. */
const drizzle: Shape = {
  isLike: (handle) => has(handle, 'execute', 'transaction'),
  isOpen: (handle) => has(handle, 'rollback'),
  adapt(handle) {
    const db = handle as unknown as {
      execute(query: object): PromiseLike<unknown>;
      transaction<T>(work: (inner: Handle) => Promise<T>): Promise<T>;
    };
    return {
      tx: handle,
      isKnownOpen: true,
      query: async (text, values = []) => toRows(await db.execute(drizzleSql(text, values))),
      savepoint: (work) => db.transaction((inner) => work(drizzle.adapt(inner))),
    };
  },
};

/** What Drizzle's `sql` would make, without importing it. */
function drizzleSql(sql: string, params: readonly unknown[]): object {
  const query = { getSQL: () => query, toQuery: () => ({ sql, params: [...params] }) };
  return query;
}

const kysely: Shape = {
  isLike: (handle) => has(handle, 'executeQuery') && 'isTransaction' in handle,
  isOpen: (handle) => handle.isTransaction === true,
  adapt(handle) {
    const db = handle as unknown as { executeQuery(query: object): Promise<{ rows: Rows }> };
    return byStatements(handle, true, async (sql, parameters) => {
      const query = { kind: 'RawNode', sqlFragments: [sql], parameters: [] };
      const { rows } = await db.executeQuery({ sql, parameters, query, queryId: { queryId: 'semel' } });
      return rows;
    });
  },
};

/** Inside an interactive transaction, where the client cannot connect. Since version 7 it can begin another inside. */
const prisma: Shape = {
  isLike: (handle) => has(handle, '$queryRawUnsafe', '$executeRawUnsafe'),
  isOpen: (handle) => !has(handle, '$connect'),
  adapt(handle) {
    type Raw = (text: string, ...values: readonly unknown[]) => PromiseLike<unknown>;
    const client = handle as unknown as { $queryRawUnsafe: Raw; $executeRawUnsafe: Raw };
    return byStatements(handle, true, async (text, values) => {
      if (!text.startsWith('SELECT')) {
        await client.$executeRawUnsafe(text);
        return [];
      }
      return toRows(await client.$queryRawUnsafe(text, ...values));
    });
  },
};

/** A `pg` client, or anything else with `query`. A pool would send every statement through another connection. */
const plain: Shape = {
  isLike: (handle) => has(handle, 'query'),
  isOpen(handle) {
    if ('totalCount' in handle) return false;
    const { getTransactionStatus } = handle as { getTransactionStatus?: () => unknown };
    // Null: not connected yet, or an old server.
    return typeof getTransactionStatus !== 'function' || getTransactionStatus.call(handle) !== 'I';
  },
  adapt(handle) {
    const client = handle as unknown as {
      query(text: string | object, values?: readonly unknown[]): Promise<unknown>;
    };
    const isKnownOpen = has(handle, 'getTransactionStatus');
    const ask: Ask = async (text, values, name) => {
      if (name === undefined || !mayPrepare || !ownSessions.has(handle))
        return toRows(await client.query(text, values));
      try {
        return toRows(await client.query({ name, text, values }));
      } catch (error) {
        if (isUnknownStatement(error)) mayPrepare = false;
        throw error;
      }
    };
    return {
      ...byStatements(handle, isKnownOpen, ask),
      learnSession(pid) {
        // Behind a pooler, each transaction may have another session, and a client is given the number of none of them.
        if (isKnownOpen && handle.processID === pid) ownSessions.add(handle);
      },
    };
  },
};

/** `pg` clients with a server process of their own: statements stay prepared there. */
const ownSessions = new WeakSet<object>();
/** False once a session had forgotten them, for instance after the caller's DISCARD ALL: then it does so again. */
let mayPrepare = true;

/** In this order: some have the methods of others too. */
const shapes: readonly Shape[] = [postgresJs, drizzle, kysely, prisma, plain];

function toRows(result: unknown): Rows {
  if (Array.isArray(result)) return result;
  const { rows } = (result ?? {}) as { rows?: unknown };
  if (Array.isArray(rows)) return rows;
  throw new SemelError('INVALID_ARGS', "The transaction's `query` resolved to a value without `rows`.", {
    path: 'tx',
    next: 'Nothing was run. It must resolve to { rows: [...] } or to a list of rows.',
  });
}

type Ask = (text: string, values: readonly (string | null)[], name?: string) => Promise<Rows>;

function byStatements(tx: unknown, isKnownOpen: boolean, ask: Ask): CallerTransaction {
  const transaction: CallerTransaction = {
    tx,
    isKnownOpen,
    query: (text, values = [], name) => ask(text, [...values], name),
    async savepoint(work) {
      await ask(`SAVEPOINT ${savepointName}`, []);
      try {
        const result = await work(transaction);
        await ask(`RELEASE SAVEPOINT ${savepointName}`, []);
        return result;
      } catch (error) {
        // If the connection is lost, so is the transaction: the first error says why.
        await ask(`ROLLBACK TO SAVEPOINT ${savepointName}`, []).then(
          () => ask(`RELEASE SAVEPOINT ${savepointName}`, []),
          () => undefined,
        );
        throw error;
      }
    },
  };
  return transaction;
}
