// Starts the outside world as a process of its own, so that whatever happens to the workers does not happen to it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type LandedEffect, readEffects } from './effect-log.ts';
import type { Target } from './target.ts';

export type { LandedEffect } from './effect-log.ts';
export { type SaidOfItself, senderHeaders } from './sender.ts';
export { type Conduct, conducts, type KeyMemory, type Target } from './target.ts';

export interface EffectServerOptions {
  /** Where the log is kept; a fresh file in the temporary folder unless given. */
  readonly log?: string;
  readonly targets?: Readonly<Record<string, Partial<Target>>>;
}

export interface EffectServer {
  /** `POST <url>/do/<target>` makes an effect; `GET <url>/effects?intent=…` looks for it. */
  readonly url: string;
  readonly log: string;
  readonly pid: number;
  /** What landed, read from the disk. */
  effects(): readonly LandedEffect[];
  /** Changes how a target behaves from its next request on. */
  behave(target: string, manners: Partial<Target>): Promise<void>;
  /** Moves the clock by which its targets forget keys. */
  advance(ms: number): Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startEffectServer(options: EffectServerOptions = {}): Promise<EffectServer> {
  // Run from the sources this file is TypeScript, from the package it is not.
  const main = fileURLToPath(new URL(`./main${import.meta.url.slice(-3)}`, import.meta.url));
  const child = spawn(
    process.execPath,
    [
      main,
      '--with-parent',
      ...(options.log === undefined ? [] : ['--log', options.log]),
      ...['--targets', JSON.stringify(options.targets ?? {})],
    ],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const { url, log, pid } = await readyLine(child);
  const control = async (target: string, body: unknown) => {
    const path = `${url}/control/${encodeURIComponent(target)}`;
    const response = await fetch(path, { method: 'PUT', body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`The effect server answered ${response.status} to ${path}.`);
  };
  const close = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, 'close');
    child.kill('SIGTERM');
    await closed;
  };

  return {
    url,
    log,
    pid,
    effects: () => readEffects(log),
    behave: (target, manners) => control(target, { target: manners }),
    advance: (advanceMs) => control('', { advanceMs }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function readyLine(
  child: ReturnType<typeof spawn>,
): Promise<{ url: string; log: string; pid: number }> {
  if (child.stdout === null) throw new Error('The effect server has no output.');
  const lines = createInterface({ input: child.stdout });
  const ended = once(child, 'close').then(() => {
    throw new Error('The effect server ended before it listened.');
  });
  const [line] = (await Promise.race([once(lines, 'line'), ended])) as [string];
  ended.catch(() => undefined);
  return JSON.parse(line) as { url: string; log: string; pid: number };
}
