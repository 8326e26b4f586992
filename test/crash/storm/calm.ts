// After a storm, when none of its processes is left: doubts are decided, every caller comes back, and what the ledger
// then holds is read.

import { setTimeout as delay } from 'node:timers/promises';
import { createSemel, type Semel } from '../../../src/index.ts';
import type { StoredRecord, StoreEvent } from '../../../src/store/index.ts';
import { hookedStore } from '../../processes/hooked-store.ts';
import type { LandedEffect } from '../../support/effect-server/index.ts';
import { toolOf } from '../tools.ts';
import type { StormLedger } from './ledger.ts';
import { somebody } from './person.ts';
import { contracts, monotonicMs, namespace, paceOf, termsOf } from './terms.ts';
import { openWorkLog } from './work-log.ts';

export interface Calm {
  readonly intents: number;
  readonly records: readonly StoredRecord[];
  readonly events: readonly StoreEvent[];
}

/** How often a caller comes back while it hears that the same call may be made again. */
const maxCalls = 10;
/** How long a doubt may be too young for a verdict: stores count time more coarsely than this process. */
const maxWaitMs = 60_000;

/** No process of the storm is left: doubts are decided, and every caller comes back once. */
export async function calm(
  ledger: StormLedger,
  url: string,
  effects: () => readonly LandedEffect[],
  log: string,
  storm: number,
): Promise<Calm> {
  // Every lease is over, and what was sent has landed or never will.
  const pace = paceOf(ledger.address);
  const { store, clock } = await ledger.after(pace.inFlightForMs);
  const work = openWorkLog(log, 'after');
  const semel = createSemel({
    store: hookedStore(store, work.hooks),
    clock,
    namespace,
    onWarning: () => undefined,
  });
  const tools = new Map(
    contracts.map((name) => [
      name,
      toolOf(semel, name, { url, at: () => undefined, terms: termsOf(storm, name, pace) }),
    ]),
  );
  try {
    await semel.doubts.sweep();
    // A long storm leaves more open than one look shows, and of the last doubts it may be too early to say anything.
    const person = somebody(semel, effects, null);
    const until = monotonicMs() + maxWaitMs;
    while ((await person.look()) > 0 || ((await hasDoubts(semel)) && monotonicMs() < until)) await delay(50);
    const open = await all(semel);
    await manyAtOnce(open, async ({ contract, args }) => {
      const { intent } = args as { intent: string };
      const tool = tools.get(contract as never)!;
      // On a busy machine a lease of 250 ms can be over before the line: such a call is free to be made again.
      for (let made = 0; made < maxCalls; made += 1) {
        const result = await work.call(tool, { intent, wording: 'after the storm' });
        if (result.ok || !result.error.retriable) break;
      }
    });
    const records: StoredRecord[] = [];
    for (let after: string | undefined; ; ) {
      const page = await store.list({ namespace, limit: 500, ...(after === undefined ? {} : { after }) });
      records.push(...page.items);
      if (page.next === undefined) break;
      after = page.next;
    }
    const events: StoreEvent[] = [];
    await manyAtOnce(records, async ({ key }) => {
      events.push(...(await store.history(namespace, key)));
    });
    return { intents: open.length, records, events };
  } finally {
    await semel.close();
  }
}

/** One after the other would take longer than the storm where every write is synced. */
async function manyAtOnce<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (const item of left) await act(item);
    }),
  );
}

async function hasDoubts(semel: Semel): Promise<boolean> {
  const { items } = await semel.doubts.list({ limit: 1_000 });
  return items.some(({ inDoubt }) => inDoubt);
}

async function all(semel: Semel) {
  const found = [];
  for (let after: string | undefined; ; ) {
    const page = await semel.records.list({ limit: 500, ...(after === undefined ? {} : { after }) });
    found.push(...page.items);
    if (page.next === undefined) return found;
    after = page.next;
  }
}
