// What the processes of an incident have in common.

import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createSemel, type Semel, type SemelOptions } from '../../src/index.ts';
import { onFinish } from '../processes/child.ts';
import { movableClock } from '../processes/movable-clock.ts';
import { senderHeaders } from '../support/effect-server/index.ts';
import type { Job } from './incident.ts';
import { namespace, target } from './stage.ts';

export interface Sent {
  readonly effect: number;
}

/** Makes the effect. */
export async function send(
  { url }: Pick<Job, 'url'>,
  intent: string,
  { key, body = '', signal }: { key?: string; body?: string; signal?: AbortSignal } = {},
): Promise<Sent> {
  const response = await fetch(`${url}/do/${target}`, {
    method: 'POST',
    headers: {
      ...senderHeaders({ namespace, intent, pid: process.pid }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    body,
    signal: signal ?? AbortSignal.timeout(10_000),
  });
  if (!response.ok) throw new Error(`the target answered ${response.status}`);
  return (await response.json()) as Sent;
}

/** Looks whether it is there. */
export async function find({ url }: Pick<Job, 'url'>, intent: string): Promise<Sent | undefined> {
  return (await findAll({ url }, intent))[0];
}

export async function findAll({ url }: Pick<Job, 'url'>, intent: string): Promise<readonly Sent[]> {
  const response = await fetch(`${url}/effects?${new URLSearchParams({ intent })}`);
  const { effects } = (await response.json()) as { effects: { seq: number }[] };
  return effects.map(({ seq }) => ({ effect: seq }));
}

/** Goes on when so many processes have come to this point: "at the same moment", whatever else the machine does. */
export async function meet({ folder }: Pick<Job, 'folder'>, point: string, count: number): Promise<void> {
  writeFileSync(join(folder, `${point}.${process.pid}`), '');
  while (readdirSync(folder).filter((name) => name.startsWith(`${point}.`)).length < count) await delay(5);
}

/** `aheadMs` is how much later than now this process lives. */
export function semelOf({ ledger }: Job, aheadMs = 0, options: SemelOptions = {}): Semel {
  onFinish(() => process.exit(1));
  return createSemel({
    store: `sqlite:${ledger}`,
    clock: movableClock(aheadMs),
    namespace,
    onWarning: () => undefined,
    ...options,
  });
}
