// One process of the storm: calls whatever is called for right now, in several lanes, until it is killed or asked to
// finish.

import { setTimeout as delay } from 'node:timers/promises';
import { createSemel, isSemelError, systemClock, systemRandom } from '../../../src/index.ts';
import { resolveStore } from '../../../src/semel/place/store-choice.ts';
import { chanceOf } from '../../processes/chance.ts';
import { jobOf, onFinish, print } from '../../processes/child.ts';
import { hookedStore } from '../../processes/hooked-store.ts';
import { toolOf } from '../tools.ts';
import {
  contractOfIntent,
  contracts,
  intentOf,
  intentsAtOnce,
  monotonicMs,
  namespace,
  paceOf,
  termsOf,
} from './terms.ts';
import { openWorkLog } from './work-log.ts';

export interface WorkerJob {
  /** As in `createSemel({ store })`. */
  readonly ledger: string;
  readonly url: string;
  readonly log: string;
  readonly worker: string;
  readonly seed: number;
  readonly lanes: number;
  /** The seed of the whole storm, which its contracts come from. */
  readonly storm: number;
  /** When the storm began, by the machine's monotonic clock: by it all workers call for the same intents. */
  readonly since: number;
}

/** One when it is ready, and one for each call that has its answer. */
export type WorkerLine =
  | { readonly ready: string }
  /** `doubt`: the key of the record, if the answer was "in doubt". */
  | { readonly answered: string; readonly doubt?: string | undefined };

const { ledger, url, log, worker, seed, lanes, storm, since } = jobOf<WorkerJob>();
const chance = chanceOf(seed);
const pace = paceOf(ledger);
const { longestLeaseMs, intentsPerSecond } = pace;
const work = openWorkLog(log, worker);
const semel = createSemel({
  store: hookedStore(resolveStore(ledger, systemClock, systemRandom), work.hooks),
  namespace,
  onWarning: () => undefined,
});
let isFinishing = false;
onFinish(() => {
  isFinishing = true;
});

/** Wide enough for a kill to find it, and now and then longer than the lease: then only the heartbeat holds it. */
function linger(): Promise<void> {
  return delay(chance.is(0.08) ? chance.between(longestLeaseMs, 2 * longestLeaseMs) : chance.between(0, 40));
}

const world = { url, at: linger, ifBusy: 'wait' as const };
const tools = new Map(
  contracts.map((name) => [name, toolOf(semel, name, { ...world, terms: termsOf(storm, name, pace) })]),
);

async function lane(): Promise<void> {
  while (!isFinishing) {
    const latest = Math.floor(((monotonicMs() - since) / 1000) * intentsPerSecond);
    const nth = Math.max(0, latest - chance.whole(intentsAtOnce));
    const tool = tools.get(contractOfIntent(nth));
    if (tool === undefined) throw new Error(`No tool for ${intentOf(nth)}.`);
    const result = await work.call(tool, {
      intent: intentOf(nth),
      wording: `${worker} ${chance.whole(1e9)}`,
    });
    const doubt = !result.ok && result.error.code === 'IN_DOUBT' ? result.receipt.key : undefined;
    print({ answered: intentOf(nth), doubt } satisfies WorkerLine);
    await delay(chance.between(0, 20));
  }
}

/** A server that is down right now is no reason to give up. */
async function open(): Promise<void> {
  while (!isFinishing) {
    try {
      await semel.open();
      return;
    } catch (error) {
      if (!isSemelError(error, 'STORE_UNAVAILABLE')) throw error;
      await delay(50);
    }
  }
}

await open();
print({ ready: worker } satisfies WorkerLine);
await Promise.all(Array.from({ length: lanes }, lane));
await semel.close();
process.exit(0);
