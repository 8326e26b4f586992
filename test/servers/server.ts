// What every server of the tests has in common: a folder and a port of its own, a life that a test can end, suspend
// and begin again, and a clock that it can move.

import { chownSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type FakeClock, fakeClock } from './fake-clock.ts';
import { freePort } from './free-port.ts';
import { type KeptProcess, keptFolder, serverUser } from './kept.ts';

export type Settings = Readonly<Record<string, string>>;

export interface ServerOptions {
  /** In the words of the server's own configuration file. */
  readonly settings?: Settings;
  /** Its wall clock moves when the test says so. Slower; throws where libfaketime is missing. */
  readonly movableClock?: boolean;
}

export interface Server extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  readonly dataFolder: string;
  readonly log: () => string;
  /** Ends it in good order and removes everything. */
  stop(): Promise<void>;
  /** Ends it, and keeps its data for a restart. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Ends it if it still runs, and starts it on the same data and port. New settings come on top of the old. */
  restart(settings?: Settings): Promise<void>;
  /** It comes back at the same port and has forgotten everything. */
  wipe(): Promise<void>;
  /** All its processes stand still, connections stay open. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Forward, or back if negative, on top of what was moved before. */
  moveClock(ms: number): void;
}

export interface ServerKind {
  readonly name: string;
  readonly file: string;
  readonly env: Readonly<Record<string, string>>;
  /** Fills the data folder; an empty one of the right owner is there, unless this makes it itself. */
  readonly fill?: (folder: string) => Promise<void>;
  readonly args: (at: { port: number; dataFolder: string; settings: Settings }) => readonly string[];
  readonly isReady: (at: { port: number; dataFolder: string; pid: number }) => boolean | Promise<boolean>;
  readonly stopBy: NodeJS.Signals;
  readonly killBy: NodeJS.Signals;
  /** What does not lie in the folder. */
  readonly cleanUp?: (dataFolder: string) => Promise<void>;
}

/** Long: a crash may have left much to recover, and the machine may be busy. */
const patienceMs = 60_000;

export async function startServer(kind: ServerKind, options: ServerOptions): Promise<Server> {
  const folder = await keptFolder(kind.name);
  const dataFolder = join(folder.path, 'data');
  const logFile = join(folder.path, 'log');
  const log = () => readFileSync(logFile, 'utf8');
  let clock: FakeClock | undefined;
  let settings: Settings = { ...options.settings };
  let running: KeptProcess | undefined;
  let port = await freePort();

  const fill = async () => {
    if (kind.fill !== undefined) return kind.fill(folder.path);
    mkdirSync(dataFolder, { mode: 0o700 });
    if (serverUser !== undefined) chownSync(dataFolder, serverUser, serverUser);
  };

  const launch = async () => {
    const server = await folder.start({
      file: kind.file,
      args: kind.args({ port, dataFolder, settings }),
      env: { ...kind.env, ...clock?.env },
      log: logFile,
      endBy: kind.killBy,
      ...(serverUser === undefined ? {} : { owner: serverUser }),
    });
    running = server;
    const givenUpAt = performance.now() + patienceMs;
    while (!(await kind.isReady({ port, dataFolder, pid: server.pid }))) {
      if (!server.isRunning() || performance.now() > givenUpAt) {
        throw new Error(`This ${kind.name} did not start:\n${log()}`);
      }
      await sleep(5);
    }
  };

  const launchAtFreePort = async () => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await launch();
      } catch (error) {
        // Somebody took the port in between.
        if (attempt === 5 || !/address already in use/i.test(log())) throw error;
        port = await freePort();
      }
    }
  };

  const end = async (signal: NodeJS.Signals) => {
    const ending = running;
    running = undefined;
    if (ending === undefined) return;
    // Who stands still hears SIGKILL only.
    await ending.signalAll('SIGCONT');
    await (signal === 'SIGKILL' ? ending.signalAll(signal) : ending.signal(signal));
    await ending.ended();
    clock?.forget(ending.pid);
  };

  const stop = async () => {
    await end(kind.stopBy);
    await kind.cleanUp?.(dataFolder);
    await folder.remove();
  };

  try {
    if (options.movableClock) clock = fakeClock(folder.path);
    await fill();
    await launchAtFreePort();
  } catch (error) {
    await folder.remove();
    throw error;
  }

  return {
    host: '127.0.0.1',
    port,
    dataFolder,
    log,
    stop,
    kill: (signal = kind.killBy) => end(signal),
    async restart(changed) {
      settings = { ...settings, ...changed };
      await end(kind.stopBy);
      await launch();
    },
    async wipe() {
      await end(kind.killBy);
      rmSync(dataFolder, { recursive: true });
      await fill();
      await launch();
    },
    pause: async () => running?.signalAll('SIGSTOP'),
    resume: async () => running?.signalAll('SIGCONT'),
    moveClock(ms) {
      if (clock === undefined) throw new Error('Start it with movableClock: true to move its clock.');
      clock.move(ms);
    },
    [Symbol.asyncDispose]: stop,
  };
}
