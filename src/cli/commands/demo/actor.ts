// A process of the demo: plays its part of an incident, reports what it does, and may be killed in the middle.

import { once } from 'node:events';
import { createSemel } from '../../../semel/index.ts';
import type { Actor, Part, Way } from './incident.ts';
import { incidents } from './incidents.ts';

/** Its argument, as JSON. */
export interface Job {
  readonly incident: number;
  readonly way: Way;
  readonly part: Part;
  readonly folder: string;
  readonly ledger: string;
  readonly url: string;
  /** Whether it waits for a message before it begins. */
  readonly waits: boolean;
}

/** To the demo's own process. */
export type Message = { readonly say: string } | { readonly ready: true };

function tell(message: Message): Promise<void> {
  return new Promise((resolve) => process.send?.(message, () => resolve()));
}

function actorOf({ way, part, folder, ledger, url }: Job): Actor {
  return {
    way,
    part,
    folder,
    say: (text) => tell({ say: text }),
    async send(what, key) {
      const response = await fetch(url, {
        method: 'POST',
        body: what,
        headers: key === undefined ? {} : { 'idempotency-key': key },
        signal: AbortSignal.timeout(5_000),
      });
      if (!response.ok) throw new Error(`the target answered ${response.status}`);
      return (await response.json()) as { id: string };
    },
    semel: () =>
      createSemel({
        store: `sqlite:${ledger}`,
        namespace: 'demo',
        mode: 'enforce',
        onWarning: () => undefined,
      }),
    die() {
      process.kill(process.pid, 'SIGKILL');
      return new Promise<never>(() => undefined);
    },
  };
}

// The demo's own process has gone.
process.once('disconnect', () => process.exit(1));
void act(JSON.parse(process.argv[2] ?? '') as Job).then(() => process.exit(0));

async function act(job: Job): Promise<void> {
  if (job.waits) {
    const begin = once(process, 'message');
    await tell({ ready: true });
    await begin;
  }
  await incidents[job.incident]?.act(actorOf(job));
}
