// A real Postgres for one test: its own cluster, its own port, and nothing of it left afterwards.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  embeddedPrograms,
  freshCluster,
  initialise,
  type PostgresPrograms,
  postgresEnv,
  systemPrograms,
} from './postgres-programs.ts';
import { type Server, type ServerOptions, startServer } from './server.ts';

export interface PostgresOptions extends ServerOptions {
  /** The pinned one that npm brings, or the newest of the machine, if there is one. */
  readonly version?: 'embedded' | 'system';
  /** A system identifier of its own, at the price of a second. Otherwise all servers of a version have the same. */
  readonly ownIdentity?: boolean;
}

/** `kill()` is a crash: at once (SIGQUIT), or without a word even to its own processes (SIGKILL). */
export interface PostgresServer extends Server {
  /** A superuser's, of the database `postgres`. */
  readonly url: string;
  /** As in `18.4`. */
  readonly version: string;
}

/** Undefined, after a line on the console, if the machine has no Postgres. */
export async function startPostgres(
  options: PostgresOptions & { version: 'system' },
): Promise<PostgresServer | undefined>;
export async function startPostgres(
  options?: PostgresOptions & { version?: 'embedded' },
): Promise<PostgresServer>;
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer | undefined> {
  if (options.version !== 'system') return start(await embeddedPrograms(), options);
  const programs = await systemPrograms();
  if (programs !== undefined) return start(programs, options);
  console.log('skipped: the Postgres of this machine: there is none in /usr/lib/postgresql');
  return undefined;
}

async function start(programs: PostgresPrograms, options: PostgresOptions): Promise<PostgresServer> {
  const server = await startServer(
    {
      name: 'postgres',
      file: join(programs.bin, 'postgres'),
      env: postgresEnv,
      fill: (folder) =>
        options.ownIdentity ? initialise(programs, join(folder, 'data')) : freshCluster(programs, folder),
      args({ port, dataFolder, settings }) {
        const all = {
          // Sockets in the file system would have to lie in a folder that others can reach.
          unix_socket_directories: '',
          // Everybody who can connect may: so nobody from outside can.
          listen_addresses: '127.0.0.1',
          port: String(port),
          max_connections: '200',
          // Within the folder, and so removed with it even after SIGKILL.
          dynamic_shared_memory_type: 'mmap',
          ...settings,
        };
        return [
          '-D',
          dataFolder,
          ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
        ];
      },
      isReady,
      stopBy: 'SIGINT',
      killBy: 'SIGQUIT',
      cleanUp: freeSharedMemory,
    },
    options,
  );
  return {
    ...server,
    url: `postgres://postgres@127.0.0.1:${server.port}/postgres`,
    version: programs.version,
  };
}

/** The server says so in the file that pg_ctl reads, too. */
function isReady({ dataFolder, pid }: { dataFolder: string; pid: number }): boolean {
  const [itsPid, , , , , , , status] = pidFile(dataFolder);
  return Number(itsPid) === pid && status?.trim() === 'ready';
}

/** After SIGKILL a segment of a few bytes remains, which the next start would have freed. */
async function freeSharedMemory(dataFolder: string): Promise<void> {
  const segment = pidFile(dataFolder)[6]?.trim().split(/\s+/)[1];
  if (segment !== undefined) await promisify(execFile)('ipcrm', ['-m', segment]).catch(() => undefined);
}

function pidFile(dataFolder: string): string[] {
  try {
    return readFileSync(join(dataFolder, 'postmaster.pid'), 'utf8').split('\n');
  } catch {
    return [];
  }
}
