// The few things that a Postgres driver must be able to do, whatever its name: `pg` (pool or client) and `postgres`.

/** A pool or client of `pg`, or anything of its shape. */
export interface PgLike {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

/** The pool of `pg` itself, which can keep a statement prepared, and give rows as lists. */
interface PgPool {
  query(statement: {
    name?: string;
    text: string;
    values: unknown[];
    rowMode?: 'array';
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
  /** The same, and each row is the list of its values: of a pool that is ours. */
  lists?(text: string, values: readonly unknown[], name?: string): Promise<readonly (readonly unknown[])[]>;
  /** Of a pool that is ours. */
  end(): Promise<void>;
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
  const ask = statementsOf(client as unknown as PgPool);
  return {
    query: async (text, values, name) =>
      'totalCount' in client && name !== undefined
        ? ask({ name, text, values: [...(values ?? [])] })
        : (await client.query(text, values && [...values])).rows,
    async end() {},
  };
}

/** A pool of `pg` that is ours. */
export function connectionOfPool(pool: PgLike & { end(): Promise<void> }): Connection {
  const ask = statementsOf(pool as unknown as PgPool);
  return {
    ...connectionOf(pool),
    lists: async (text, values, name) =>
      (await ask({
        ...(name === undefined ? {} : { name }),
        text,
        values: [...values],
        rowMode: 'array',
      })) as never,
    end: () => pool.end(),
  };
}

/** Keeps statements prepared as long as the server, or what stands before it, allows it. */
function statementsOf(
  pool: PgPool,
): (statement: Parameters<PgPool['query']>[0]) => Promise<Record<string, unknown>[]> {
  let isPreparing = true;
  return async (statement) => {
    if (isPreparing) {
      try {
        return (await pool.query(statement)).rows;
      } catch (error) {
        if (statement.name === undefined || !knowsNoStatement(error)) throw error;
        isPreparing = false;
      }
    }
    const { name: _, ...unnamed } = statement;
    return (await pool.query(unnamed)).rows;
  };
}

/** A pooler gave us another session than the one that has prepared it: nothing was done, and names are no use here. */
function knowsNoStatement(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === '26000' || code === '42P05' || code === '0A000';
}

/** Some drivers return a boolean as text. */
export function isTrue(value: unknown): boolean {
  return value === true || value === 't';
}
