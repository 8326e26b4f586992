// PgBouncer before a Postgres of the tests, in transaction mode: two statements of one client may meet two sessions.

import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { findProgram } from './found-program.ts';
import { serverUser } from './kept.ts';
import type { PostgresServer } from './postgres.ts';
import { type Server, type ServerOptions, startServer } from './server.ts';

/** It keeps no data: `wipe()` is a crash and a restart. */
export interface PgbouncerServer extends Server {
  readonly url: string;
}

/** Undefined, after a line on the console, if no PgBouncer can be had. */
export async function startPgbouncer(
  postgres: Pick<PostgresServer, 'host' | 'port'>,
  options: ServerOptions = {},
): Promise<PgbouncerServer | undefined> {
  const program = await findProgram({
    name: 'pgbouncer',
    packages: ['pgbouncer', 'libc-ares2', 'libevent-2.1-7'],
  });
  if (program === undefined) return undefined;
  const server = await startServer(
    {
      name: 'pgbouncer',
      ...program,
      async fill(folder) {
        const dataFolder = join(folder, 'data');
        mkdirSync(dataFolder, { mode: 0o700 });
        writeFileSync(join(dataFolder, 'users'), '"postgres" ""\n');
        if (serverUser !== undefined) chownSync(dataFolder, serverUser, serverUser);
      },
      args({ port, dataFolder, settings }) {
        const all = {
          listen_addr: '127.0.0.1',
          listen_port: String(port),
          unix_socket_dir: '',
          auth_type: 'trust',
          auth_file: join(dataFolder, 'users'),
          pool_mode: 'transaction',
          default_pool_size: '10',
          max_client_conn: '500',
          // Drivers set it at the start of each session.
          ignore_startup_parameters: 'extra_float_digits',
          ...settings,
        };
        const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
        const databases = `[databases]\n* = host=${postgres.host} port=${postgres.port}\n`;
        const file = join(dataFolder, 'pgbouncer.ini');
        writeFileSync(file, `${databases}[pgbouncer]\n${lines.join('\n')}\n`);
        return [file];
      },
      isReady: ({ port }) => answers(urlAt(port)),
      stopBy: 'SIGINT',
      killBy: 'SIGKILL',
    },
    options,
  );
  return { ...server, url: urlAt(server.port) };
}

function urlAt(port: number): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client(url);
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
    await client.end();
    return true;
  } catch {
    return false;
  }
}
