// A process that stands still past its lease while the world goes on, and then goes on itself.

import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { RecordInfo, Semel } from '../../src/index.ts';
import { type NodeProcess, startNode } from '../processes/node-process.ts';
import type { Heard } from './heard.ts';
import type { LineName } from './lines.ts';
import type { StoppingPoint } from './points.ts';
import type { VictimJob, VictimLine } from './victim.ts';

export interface Zombie {
  /** The record that it left, lapsed. */
  readonly record: RecordInfo;
  /** Lets it go on, and answers what it heard in the end. */
  wake(): Promise<Heard>;
}

/** Short, because it has to pass in real time: a process that stands still counts by the machine's own clock. */
const lease = '300ms';

export async function makeZombie(
  semel: Semel,
  place: Pick<VictimJob, 'ledger' | 'url'>,
  line: LineName,
  point: StoppingPoint,
  intent: string,
): Promise<Zombie> {
  const job: VictimJob = { ...place, line, point, intent, lease, how: 'stop', wording: 'zombie' };
  const process = startNode<VictimLine>(new URL('./victim.ts', import.meta.url), job);
  const told = () => `printed ${JSON.stringify(process.lines)}, ${stateOf(process.pid)}\n${process.errors()}`;
  await inTime(
    process.line((printed) => 'at' in printed),
    () => `It did not come to ${point}: ${told()}`,
  );
  const record = await inTime(lapsed(semel, line, intent), () => `Its lease did not lapse: ${told()}`);
  return { record, wake: () => inTime(wake(process), () => `It did not wake up: ${told()}`) };
}

async function lapsed(semel: Semel, contract: LineName, intent: string): Promise<RecordInfo> {
  for (;;) {
    const { items } = await semel.records.list({ contract });
    const record = items.find(({ args }) => (args as { intent: string }).intent === intent);
    if (record?.lapsed) return record;
    await delay(20);
  }
}

/** Whoever waits for a process that stands still should hear where it stands. */
async function inTime<T>(waiting: Promise<T>, problem: () => string): Promise<T> {
  const over = new AbortController();
  const deadline = delay(60_000, undefined, { signal: over.signal }).then(() => {
    throw new Error(problem());
  });
  try {
    return await Promise.race([waiting, deadline]);
  } finally {
    deadline.catch(() => undefined);
    over.abort();
  }
}

function stateOf(pid: number): string {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return /State:.*/.exec(status)?.[0] ?? 'no state';
  } catch {
    return 'gone';
  }
}

async function wake(process: NodeProcess<VictimLine>): Promise<Heard> {
  // On a busy machine its lease can be over before it has come to stop: then the first signal comes too early.
  process.signal('SIGCONT');
  const again = setInterval(() => process.signal('SIGCONT'), 50);
  await process.ended.finally(() => clearInterval(again));
  const last = process.lines.at(-1);
  if (last === undefined || !('heard' in last)) throw new Error(`It heard nothing.\n${process.errors()}`);
  return last.heard;
}
