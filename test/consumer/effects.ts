// The tool that the workers of these tests have behind their queue. An effect is a line in a file, written by one call of the
// operating system: it is there or it is not, whatever happens to its process.

import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { type Consumer, createSemel, landed, NotLanded, notLanded } from '../../src/index.ts';
import { postgresStore } from '../../src/stores/postgres/index.ts';
import type { OwnSchema } from '../servers/own-place.ts';

export interface WorkerPlace {
  /** A SQLite file, or a schema in Postgres. */
  readonly ledger: string | OwnSchema;
  readonly effects: string;
}

export interface WorkerJob extends WorkerPlace {
  readonly url: string;
  readonly queue: string;
  /** Kills its own process there. */
  readonly dieAt?: 'after effect' | 'before ack';
  /** The effect waits until this file exists. */
  readonly hold?: string;
  readonly hasVerify?: boolean;
}

export type WorkerLine =
  | { readonly ready: true }
  | { readonly running: string }
  | { readonly is: string; readonly code: string | undefined };

export const print = (line: WorkerLine) => process.stdout.write(`${JSON.stringify(line)}\n`);

export function die(job: WorkerJob, point: WorkerJob['dieAt']): void {
  if (job.dieAt === point) process.kill(process.pid, 'SIGKILL');
}

export function listEffects({ effects }: WorkerPlace): readonly string[] {
  return existsSync(effects) ? readFileSync(effects, 'utf8').split('\n').filter(Boolean) : [];
}

export function openSemel({ ledger }: WorkerPlace) {
  const store = typeof ledger === 'string' ? `sqlite:${ledger}` : postgresStore(ledger);
  return createSemel({ store, namespace: 'queues', onWarning: () => undefined });
}

export function openConsumer(job: WorkerJob) {
  const semel = openSemel(job);
  const tool = semel.tool({
    name: 'refund',
    effect: 'irreversible',
    per: 'ever',
    lease: '1s',
    timeout: '10s',
    verifyAfter: '1ms',
    input: z.object({ id: z.string() }),
    async run({ id }) {
      print({ running: id });
      if (id.startsWith('unlucky')) throw new NotLanded('no funds');
      while (job.hold !== undefined && !existsSync(job.hold)) await sleep(20);
      appendFileSync(job.effects, `${id}\n`);
      die(job, 'after effect');
      return { refunded: id };
    },
    ...(job.hasVerify
      ? {
          verify: ({ id }: { id: string }) =>
            listEffects(job).includes(id) ? landed({ refunded: id }) : notLanded(),
        }
      : {}),
  });
  const consumer: Consumer<{ refunded: string }> = semel.consumer(tool, {
    redelivery: '30d',
    maxTries: 3,
    backoff: '50ms',
    maxBackoff: '200ms',
    onDecision: (decision) =>
      print({ is: decision.is, code: decision.is === 'ack' ? undefined : decision.error?.code }),
  });
  return { semel, consumer };
}
