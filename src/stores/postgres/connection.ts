// A pool of our own, from a URL. The driver is an optional peer: whoever brings a client does not need it.

import { postgresExample, readAddress } from '../../store/address.ts';
import { loadDriver, missingDriver } from '../../store/remote/driver.ts';
import { type Connection, connectionOfPool, type PgLike } from './client.ts';

export const usualSchema = 'semel';

/** Group commit needs few connections; one more serves lists and pruning beside it. */
const most = 3;

export async function connect(url: string | undefined, timeoutMs: number): Promise<Connection> {
  const { Pool } = driver();
  const pool = new Pool({
    ...(url === undefined ? {} : { connectionString: url }),
    max: most,
    connectionTimeoutMillis: timeoutMs,
    // A connection that has fallen silent is closed: whoever waits on it would keep it from the others for ever.
    query_timeout: timeoutMs,
    keepAlive: true,
    // A pool that is idle does not keep a script from ending.
    allowExitOnIdle: true,
    application_name: 'semel',
  });
  // A connection that breaks while it is idle is replaced; without a listener it would end the program.
  pool.on('error', () => {});
  return connectionOfPool(pool);
}

interface PgPool extends PgLike {
  on(event: 'error', listener: () => void): unknown;
  end(): Promise<void>;
}

function driver(): { Pool: new (options: object) => PgPool } {
  const found = loadDriver('pg');
  if (found !== undefined) return found as { Pool: new (options: object) => PgPool };
  throw missingDriver(['pg']);
}

/** For people: without user, password and parameters. */
export function placeOf(url: string | undefined, schema: string): string {
  if (url === undefined) return `schema ${schema}`;
  const { host, pathname } = readAddress(url, postgresExample);
  return `${host}${pathname === '/' ? '' : pathname}, schema ${schema}`;
}
