// The Postgres driver by its shape: `pg` (pool or client) or `postgres`. No driver is imported.

import { SemelError } from '../../core/errors.ts';

/** A `pg` pool or client, or anything of its shape. */
export interface PgLike {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

/** The `pg` pool itself, which can keep statements prepared and return rows as arrays. */
interface PgPool {
  query(statement: {
    name?: string;
    text: string;
    values: unknown[];
    rowMode?: 'array';
  }): Promise<{ rows: Record<string, unknown>[] }>;
}

/** A `postgres` (postgres.js) instance, or anything of its shape. */
export interface PostgresJsLike {
  unsafe(text: string, values?: never[]): PromiseLike<readonly Record<string, unknown>[]>;
}

export type PostgresClient = PgLike | PostgresJsLike;

export interface Connection {
  /** One statement with values, or several without. A named one may be kept prepared. */
  query(
    text: string,
    values?: readonly unknown[],
    name?: string,
  ): Promise<readonly Record<string, unknown>[]>;
  /** The same with rows as arrays; our own pool only. */
  lists?(text: string, values: readonly unknown[], name?: string): Promise<readonly (readonly unknown[])[]>;
  /** Closes our own pool; leaves the user's client open. */
  end(): Promise<void>;
}

function isPostgresJs(value: object): value is PostgresJsLike {
  return 'unsafe' in value && typeof value.unsafe === 'function';
}

/**
 * Asks the driver before sending anything, because an error from the server would abort the user's transaction. If a
 * driver does not know, the server refuses.
 */
export function isInTransaction(client: PostgresClient): boolean {
  // Inside `begin`, postgres.js passes a handle with savepoints.
  if (isPostgresJs(client)) return 'savepoint' in client;
  const { getTransactionStatus } = client as { getTransactionStatus?: () => unknown };
  const status = getTransactionStatus?.call(client);
  return status === 'T' || status === 'E';
}

export function adaptClient(client: PostgresClient): Connection {
  if (isPostgresJs(client)) {
    return {
      query: async (text, values = []) => client.unsafe(text, values as never[]),
      async end() {},
    };
  }
  const ask = prepareStatements(client as unknown as PgPool);
  return {
    query: async (text, values, name) =>
      'totalCount' in client && name !== undefined
        ? ask({ name, text, values: [...(values ?? [])] })
        : (await client.query(text, values && [...values])).rows,
    async end() {},
  };
}

/** For our own `pg` pool. */
export function adaptPool(pool: PgLike & { end(): Promise<void> }): Connection {
  const ask = prepareStatements(pool as unknown as PgPool);
  return {
    ...adaptClient(pool),
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

/** Keeps statements prepared until the server, or a pooler in front of it, rejects one. */
function prepareStatements(
  pool: PgPool,
): (statement: Parameters<PgPool['query']>[0]) => Promise<Record<string, unknown>[]> {
  let isPreparing = true;
  return async (statement) => {
    if (isPreparing) {
      try {
        return (await pool.query(statement)).rows;
      } catch (error) {
        if (statement.name === undefined || !isUnknownStatement(error)) throw error;
        isPreparing = false;
      }
    }
    const { name: _, ...unnamed } = statement;
    return (await pool.query(unnamed)).rows;
  };
}

/** A pooler gave us a session that has not prepared the statement. Nothing was run; stop naming statements. */
export function isUnknownStatement(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === '26000' || code === '42P05' || code === '0A000';
}

/** One row, as text: some clients rewrite the names of columns, and a fact that is not found would count as harmless. */
export async function askRow(
  query: Connection['query'],
  select: string,
): Promise<Record<string, unknown> | undefined> {
  const [row] = await query(`SELECT pg_catalog.row_to_json(x)::text AS found FROM (${select}) AS x`);
  if (row === undefined) return undefined;
  if (typeof row.found === 'string') return JSON.parse(row.found) as Record<string, unknown>;
  throw new SemelError('STORE_UNSAFE', 'The Postgres client renames columns or changes text values.', {
    next: 'Nothing was run. Pass a client without such a transformation as the store, or a URL.',
  });
}

/** Some drivers return a boolean as text. */
export function isTrue(value: unknown): boolean {
  return value === true || value === 't';
}
