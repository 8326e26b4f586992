// Folders and server processes that do not outlive the test process, whichever way it ends: a keeper has them.

import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import type { Command, Order, Report } from './orders.ts';

export interface KeptProcess {
  readonly pid: number;
  readonly isRunning: () => boolean;
  signal(signal: NodeJS.Signals): Promise<void>;
  /** The process and all that it started. */
  signalAll(signal: NodeJS.Signals): Promise<void>;
  ended(): Promise<void>;
}

export interface KeptFolder {
  readonly path: string;
  start(command: Command): Promise<KeptProcess>;
  /** Ends what was started in it and still runs, too. */
  remove(): Promise<void>;
}

/** An order without its number. */
type Wish = Order extends infer Each ? (Each extends Order ? Omit<Each, 'order'> : never) : never;
type Answer = Extract<Report, { order: number }>;

interface Keeper {
  ask(wish: Wish): Promise<Answer>;
  readonly running: ReadonlySet<number>;
}

let keeper: Keeper | undefined;

/** One user for all servers: some refuse to run as root. */
export const serverUser: number | undefined = process.getuid?.() === 0 ? 65_534 : undefined;

export async function keptFolder(name: string): Promise<KeptFolder> {
  keeper ??= startKeeper();
  const { ask, running } = keeper;
  const owner = serverUser === undefined ? {} : { owner: serverUser };
  const path = (await ask({ do: 'make-folder', name, ...owner })).folder as string;
  return {
    path,
    async start(command) {
      const pid = (await ask({ do: 'start', folder: path, command })).pid as number;
      const signal = async (name: NodeJS.Signals, all: boolean) => {
        await ask({ do: 'signal', pid, signal: name, all });
      };
      return {
        pid,
        isRunning: () => running.has(pid),
        signal: (name) => signal(name, false),
        signalAll: (name) => signal(name, true),
        async ended() {
          if (running.has(pid)) await ask({ do: 'wait-for-end', pid });
        },
      };
    },
    async remove() {
      await ask({ do: 'remove-folder', folder: path });
    },
  };
}

function startKeeper(): Keeper {
  const child: ChildProcess = fork(join(import.meta.dirname, 'keeper.ts'), [], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    // A session of its own: what kills the whole group of a test runner must not reach it.
    detached: true,
  });
  const pending = new Map<number, { resolve(answer: Answer): void; reject(error: Error): void }>();
  const running = new Set<number>();
  let orders = 0;
  // A test process that has nothing else to do may end, and that is what ends the keeper.
  child.unref();
  child.channel?.unref();

  child.on('message', (report: Report) => {
    if ('ended' in report) {
      running.delete(report.ended);
      return;
    }
    const asked = pending.get(report.order);
    pending.delete(report.order);
    if (pending.size === 0) child.channel?.unref();
    if (report.pid !== undefined) running.add(report.pid);
    if (report.error === undefined) asked?.resolve(report);
    else asked?.reject(new Error(`The keeper of the servers could not: ${report.error}`));
  });
  child.on('exit', () => {
    keeper = undefined;
    for (const { reject } of pending.values()) reject(new Error('The keeper of the servers has ended.'));
    running.clear();
  });

  return {
    ask(wish) {
      const order = ++orders;
      const { promise, resolve, reject } = Promise.withResolvers<Answer>();
      pending.set(order, { resolve, reject });
      child.channel?.ref();
      child.send({ order, ...wish });
      return promise;
    },
    running,
  };
}
