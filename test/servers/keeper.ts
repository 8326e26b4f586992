// A process that owns the servers of a test process: it makes their folders, is their parent, and when its channel
// closes, because the test ended or was killed, it ends them all and removes what they left.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command, Order, Report } from './orders.ts';
import { signalOne, signalTree, takenEffect } from './process-tree.ts';

interface Server {
  readonly pid: number;
  readonly endBy: NodeJS.Signals;
  readonly ended: Promise<unknown>;
}

const folders = new Map<string, Set<Server>>();
const servers = new Map<number, Server>();

process.on('message', (order: Order) => {
  carryOut(order).then(
    (answer) => report({ order: order.order, ...answer }),
    (error: unknown) => report({ order: order.order, error: String(error) }),
  );
});
process.on('disconnect', endAll);
process.on('SIGTERM', endAll);

async function carryOut(order: Order): Promise<{ folder?: string; pid?: number }> {
  switch (order.do) {
    case 'make-folder':
      return { folder: makeFolder(order.name, order.owner) };
    case 'start':
      return { pid: await start(order.folder, order.command) };
    case 'signal': {
      const server = servers.get(order.pid);
      // It has ended, and its number may be another's by now.
      if (server === undefined) return {};
      const { signal } = order;
      if (!order.all) signalOne(order.pid, signal);
      else {
        const reached = signalTree(order.pid, signal);
        if (signal === 'SIGSTOP' || signal === 'SIGKILL') await takenEffect(signal, reached);
      }
      return {};
    }
    case 'wait-for-end':
      await servers.get(order.pid)?.ended;
      return {};
    case 'remove-folder':
      await removeFolder(order.folder);
      return {};
  }
}

function makeFolder(name: string, owner: number | undefined): string {
  const folder = mkdtempSync(join(tmpdir(), `semel-${name}-`));
  if (owner !== undefined) chownSync(folder, owner, owner);
  folders.set(folder, new Set());
  return folder;
}

async function start(folder: string, { file, args, env, owner, log, endBy }: Command): Promise<number> {
  const output = openSync(log, 'a');
  const child = spawn(file, args, {
    cwd: folder,
    env,
    stdio: ['ignore', output, output],
    // Out of reach of Ctrl-C, which would end the server before the test is done with it.
    detached: true,
    ...(owner === undefined ? {} : { uid: owner, gid: owner }),
  });
  closeSync(output);
  await once(child, 'spawn');
  const ended = once(child, 'exit');
  const pid = child.pid as number;
  const server = { pid, endBy, ended };
  servers.set(pid, server);
  folders.get(folder)?.add(server);
  void ended.then(([code, signal]) => {
    servers.delete(pid);
    folders.get(folder)?.delete(server);
    report({ ended: pid, code, signal });
  });
  return pid;
}

async function removeFolder(folder: string): Promise<void> {
  await Promise.all([...(folders.get(folder) ?? [])].map(end));
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  folders.delete(folder);
}

async function end({ pid, endBy, ended }: Server): Promise<void> {
  signalTree(pid, 'SIGCONT');
  signalOne(pid, endBy);
  const patience = new AbortController();
  const tooLong = sleep(5000, 'too long', { signal: patience.signal }).catch(() => undefined);
  if ((await Promise.race([ended, tooLong])) === 'too long') signalTree(pid, 'SIGKILL');
  patience.abort();
  await ended;
}

let isEnding = false;

function endAll(): void {
  if (isEnding) return;
  isEnding = true;
  void Promise.allSettled([...folders.keys()].map(removeFolder)).then(() => process.exit());
}

function report(message: Report): void {
  // Whoever asked may be gone.
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}
