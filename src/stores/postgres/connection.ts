// Our own pool, from a URL. The driver is an optional peer: a user who passes a client does not need it.

import { postgresExample, readAddress } from '../../store/address.ts';
import { loadDriver, missingDriver } from '../../store/remote/driver.ts';
import { adaptPool, type Connection, type PgLike } from './client.ts';

export const defaultSchema = 'semel';

/** Group commit needs few connections; one more serves lists and pruning. */
const maxConnections = 3;

export async function connect(url: string | undefined, timeoutMs: number): Promise<Connection> {
  const { Pool } = loadPg();
  const pool = new Pool({
    ...(url === undefined ? {} : { connectionString: url }),
    max: maxConnections,
    connectionTimeoutMillis: timeoutMs,
    // Close a silent connection; otherwise a waiting query would hold it for ever.
    query_timeout: timeoutMs,
    keepAlive: true,
    // Let a script end while the pool is idle.
    allowExitOnIdle: true,
    application_name: 'semel',
  });
  // The pool replaces idle connections that break. Without a listener the error would end the program.
  pool.on('error', () => {});
  return adaptPool(pool);
}

interface PgPool extends PgLike {
  on(event: 'error', listener: () => void): unknown;
  end(): Promise<void>;
}

function loadPg(): { Pool: new (options: object) => PgPool } {
  const found = loadDriver('pg');
  if (found !== undefined) return found as { Pool: new (options: object) => PgPool };
  throw missingDriver(['pg']);
}

/** For messages: without user, password and parameters. */
export function describePlace(url: string | undefined, schema: string): string {
  if (url === undefined) return `schema ${schema}`;
  const { host, pathname } = readAddress(url, postgresExample);
  return `${host}${pathname === '/' ? '' : pathname}, schema ${schema}`;
}
