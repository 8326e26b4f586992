// The few things that a Postgres driver must be able to do, whatever its name: `pg` (pool or client) and `postgres`.

/** A pool or client of `pg`, or anything of its shape. */
export interface PgLike {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

/** The pool of `pg` itself, which can keep a statement prepared. */
interface PgPool {
  readonly totalCount: number;
  query(statement: {
    name: string;
    text: string;
    values: unknown[];
  }): Promise<{ rows: Record<string, unknown>[] }>;
}

/** An instance of `postgres` (postgres.js), or anything of its shape. */
export interface PostgresJsLike {
  unsafe(text: string, values?: never[]): PromiseLike<readonly Record<string, unknown>[]>;
}

export type PostgresClient = PgLike | PostgresJsLike;

export interface Connection {
  /** One statement with values, or several without. With a name it may be kept prepared. */
  query(
    text: string,
    values?: readonly unknown[],
    name?: string,
  ): Promise<readonly Record<string, unknown>[]>;
  /** Of a pool that is ours. */
  end(): Promise<void>;
}

export function isPostgresClient(value: unknown): value is PostgresClient {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false;
  return ('query' in value && typeof value.query === 'function') || isPostgresJs(value);
}

function isPostgresJs(value: object): value is PostgresJsLike {
  return 'unsafe' in value && typeof value.unsafe === 'function';
}

/**
 * What the driver itself knows, asked before a statement is sent: an error from the server would abort the transaction
 * and with it the owner's work. What a driver does not show, the server refuses.
 */
export function showsTransaction(client: PostgresClient): boolean {
  // postgres.js gives the function of `begin` a handle that has savepoints and no `begin`.
  if (isPostgresJs(client)) return 'savepoint' in client;
  const { getTransactionStatus } = client as { getTransactionStatus?: () => unknown };
  const status = getTransactionStatus?.call(client);
  return status === 'T' || status === 'E';
}

/** The user's own client is the user's to close. */
export function connectionOf(client: PostgresClient): Connection {
  if (isPostgresJs(client)) {
    return {
      query: async (text, values = []) => client.unsafe(text, values as never[]),
      async end() {},
    };
  }
  let isPreparing = 'totalCount' in client;
  return {
    async query(text, values, name) {
      if (isPreparing && name !== undefined) {
        try {
          const pool = client as unknown as PgPool;
          return (await pool.query({ name, text, values: [...(values ?? [])] })).rows;
        } catch (error) {
          if (!knowsNoStatement(error)) throw error;
          isPreparing = false;
        }
      }
      return (await client.query(text, values && [...values])).rows;
    },
    async end() {},
  };
}

/** A pooler gave us another session than the one that has prepared it: nothing was done, and names are no use here. */
function knowsNoStatement(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === '26000' || code === '42P05' || code === '0A000';
}
