// What the tests of an operator's commands share: a real ledger in a folder of its own, tools that end as they are told,
// and the command as a process.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSemel, Rejected, type Semel } from 'semel';
import { afterAll } from 'vitest';

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
  readonly json: <T = Record<string, unknown>[]>() => T;
}

const main = process.env.SEMEL_BUILT_COMMAND as string;

export function operator(namespace = 'shop') {
  const folder = mkdtempSync(join(tmpdir(), 'semel-operator-'));
  const store = `sqlite:${join(folder, 'ledger.db')}`;
  const env = { ...process.env, SEMEL_STORE: store, SEMEL_NAMESPACE: namespace, NO_COLOR: '1' };
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  return {
    folder,
    store,
    namespace,
    /** `input` is what it reads; its end comes at once. */
    run(args: readonly string[], input = ''): Promise<Ran> {
      return new Promise((resolve) => {
        const child = execFile(
          process.execPath,
          [main, ...args],
          { env, maxBuffer: 1e8 },
          (error, out, err) => {
            const code = error === null ? 0 : typeof error.code === 'number' ? error.code : null;
            resolve({ code, out, err, json: () => JSON.parse(out) });
          },
        );
        child.stdin?.end(input);
      });
    },
    start(args: readonly string[]): ChildProcess {
      return spawn(process.execPath, [main, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    },
    /** Work that is done by a program, not by the command. */
    async by<T>(work: (semel: Semel, mail: ReturnType<typeof mailOf>) => Promise<T>): Promise<T> {
      await using semel = createSemel({ store, namespace, prune: false, onWarning: () => undefined });
      return await work(semel, mailOf(semel));
    },
  };
}

/** The address says how it ends: `lost…`, `cut…` in doubt, `no…` refused, else sent. */
export function mailOf(semel: Semel) {
  return semel.tool({
    name: 'mail.send',
    effect: 'write-non-idempotent',
    per: 'ever',
    identity: ['to'],
    run: (args: { to: string; text?: string }) => {
      if (args.to.startsWith('lost')) throw new Error('socket hang up');
      if (args.to.startsWith('cut')) throw new Error('socket hang up after the body');
      if (args.to.startsWith('no')) throw new Rejected('no such box');
      return { id: `m-${args.to}` };
    },
  });
}
