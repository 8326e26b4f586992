// The few things that a Postgres driver must be able to do, whatever its name: `pg` (pool or client) and `postgres`.

/** A pool or client of `pg`, or anything of its shape. */
export interface PgLike {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

/** An instance of `postgres` (postgres.js), or anything of its shape. */
export interface PostgresJsLike {
  unsafe(text: string, values?: never[]): PromiseLike<readonly Record<string, unknown>[]>;
}

export type PostgresClient = PgLike | PostgresJsLike;

export interface Connection {
  /** One statement with values, or several without. */
  query(text: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
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

/** The user's own client is the user's to close. */
export function connectionOf(client: PostgresClient): Connection {
  if (isPostgresJs(client)) {
    return {
      query: async (text, values = []) => client.unsafe(text, values as never[]),
      async end() {},
    };
  }
  return {
    query: async (text, values) => (await client.query(text, values && [...values])).rows,
    async end() {},
  };
}
