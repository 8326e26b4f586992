// A real Postgres for one test: its own cluster, its own port, and nothing of it left afterwards.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from './free-port.ts';
import { type KeptProcess, keptFolder, serverUser } from './kept.ts';
import {
  embeddedPrograms,
  freshCluster,
  initialise,
  type PostgresPrograms,
  postgresEnv,
  systemPrograms,
} from './postgres-programs.ts';

type Settings = Readonly<Record<string, string>>;

export interface PostgresOptions {
  /** The pinned one that npm brings, or the newest of the machine, if there is one. */
  readonly version?: 'embedded' | 'system';
  /** As in postgresql.conf. */
  readonly settings?: Settings;
  /** A system identifier of its own, at the price of a second. Otherwise all servers of a version have the same. */
  readonly ownIdentity?: boolean;
}

export interface PostgresServer extends AsyncDisposable {
  /** A superuser's, of the database `postgres`. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** As in `18.4`. */
  readonly version: string;
  readonly dataFolder: string;
  readonly log: () => string;
  /** Ends it in good order and removes everything. */
  stop(): Promise<void>;
  /** Ends it as a crash would: at once (SIGQUIT), or without a word to anybody (SIGKILL). */
  kill(signal?: 'SIGQUIT' | 'SIGKILL'): Promise<void>;
  /** Ends it if it still runs, and starts it on the same data and port. New settings come on top of the old. */
  restart(settings?: Settings): Promise<void>;
  /** All its processes stand still, connections stay open. */
  pause(): Promise<void>;
  resume(): Promise<void>;
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
  const folder = await keptFolder('postgres');
  const dataFolder = join(folder.path, 'data');
  const logFile = join(folder.path, 'log');
  let settings: Settings = { ...options.settings };
  let running: KeptProcess | undefined;
  let port = await freePort();
  const log = () => readFileSync(logFile, 'utf8');

  const launch = async () => {
    const all: Settings = {
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
    running = await folder.start({
      file: join(programs.bin, 'postgres'),
      args: ['-D', dataFolder, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
      env: postgresEnv,
      log: logFile,
      endBy: 'SIGQUIT',
      ...(serverUser === undefined ? {} : { owner: serverUser }),
    });
    await ready(running, dataFolder, log);
  };

  const end = async (signal: NodeJS.Signals, who: 'main' | 'all') => {
    const ending = running;
    running = undefined;
    if (ending === undefined) return;
    await ending.signalAll('SIGCONT');
    await (who === 'all' ? ending.signalAll(signal) : ending.signal(signal));
    await ending.ended();
  };

  const stop = async () => {
    await end('SIGINT', 'main');
    await freeSharedMemory(dataFolder);
    await folder.remove();
  };

  try {
    await (options.ownIdentity ? initialise(programs, dataFolder) : freshCluster(programs, folder.path));
    for (let attempt = 1; ; attempt++) {
      try {
        await launch();
        break;
      } catch (error) {
        // Somebody took the port in between.
        if (attempt === 5 || !log().includes('Address already in use')) throw error;
        port = await freePort();
      }
    }
  } catch (error) {
    await folder.remove();
    throw error;
  }

  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    host: '127.0.0.1',
    port,
    version: programs.version,
    dataFolder,
    log,
    stop,
    kill: (signal = 'SIGQUIT') => end(signal, signal === 'SIGKILL' ? 'all' : 'main'),
    async restart(changed) {
      settings = { ...settings, ...changed };
      await end('SIGINT', 'main');
      await launch();
    },
    pause: async () => running?.signalAll('SIGSTOP'),
    resume: async () => running?.signalAll('SIGCONT'),
    [Symbol.asyncDispose]: stop,
  };
}

/** The server says so in the file that pg_ctl reads, too. */
async function ready(server: KeptProcess, dataFolder: string, log: () => string): Promise<void> {
  for (;;) {
    if (!server.isRunning()) throw new Error(`Postgres did not start:\n${log()}`);
    const [pid, , , , , , , status] = linesOf(join(dataFolder, 'postmaster.pid'));
    if (Number(pid) === server.pid && status?.trim() === 'ready') return;
    await sleep(5);
  }
}

/** After SIGKILL a segment of a few bytes remains, which the next start would have freed. */
async function freeSharedMemory(dataFolder: string): Promise<void> {
  const segment = linesOf(join(dataFolder, 'postmaster.pid'))[6]?.trim().split(/\s+/)[1];
  if (segment !== undefined) await promisify(execFile)('ipcrm', ['-m', segment]).catch(() => undefined);
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch {
    return [];
  }
}
