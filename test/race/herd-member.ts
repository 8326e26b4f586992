// One process of a herd: many callers of one key, all at the same moment. Counts what it asked of the store.

import { createSemel, isSemelError, systemClock, systemRandom } from '../../src/index.ts';
import { resolveStore } from '../../src/semel/place/store-choice.ts';
import { jobOf, onFinish, print } from '../processes/child.ts';
import { hookedStore } from '../processes/hooked-store.ts';
import { senderHeaders } from '../support/effect-server/index.ts';

export interface HerdJob {
  readonly ledger: string;
  readonly url: string;
  readonly callers: number;
}

export type HerdLine =
  | { readonly ready: true }
  | {
      readonly executed: number;
      /** What each caller was told, once each. */
      readonly values: readonly string[];
      readonly errors: readonly string[];
      /** Questions to the store, by method. */
      readonly asked: Readonly<Record<string, number>>;
    };

const { ledger, url, callers } = jobOf<HerdJob>();
/** The end of standard input is the word to start: everybody is ready by then. */
const started = new Promise<void>((resolve) => onFinish(resolve));
const asked: Record<string, number> = {};
const semel = createSemel({
  store: hookedStore(resolveStore(ledger, systemClock, systemRandom), {
    before(method) {
      asked[method] = (asked[method] ?? 0) + 1;
    },
  }),
  namespace: 'herd',
  onWarning: () => undefined,
});
const send = semel.tool({
  name: 'mail.send',
  effect: 'write-non-idempotent',
  per: 'ever',
  identity: ['to'],
  async run({ to }: { to: string; wording: string }, { fence }) {
    const headers = senderHeaders({ namespace: 'herd', intent: to, fence, pid: process.pid });
    const response = await fetch(`${url}/do/mail`, { method: 'POST', headers });
    return (await response.json()) as { effect: number };
  },
});

/** On a busy machine a server that was just started may take longer for its first answers than anybody waits. */
async function open(): Promise<void> {
  for (;;) {
    try {
      await semel.open();
      return;
    } catch (error) {
      if (!isSemelError(error, 'STORE_UNAVAILABLE')) throw error;
    }
  }
}

await open();
print({ ready: true } satisfies HerdLine);
// A promise keeps no process alive.
const alive = setInterval(() => undefined, 1_000);
await started;
clearInterval(alive);
const results = await Promise.all(
  Array.from({ length: callers }, (_, n) => send.try({ to: 'ada', wording: `${process.pid} ${n}` })),
);
print({
  executed: results.filter(({ ok, receipt }) => ok && receipt.executed).length,
  values: [...new Set(results.flatMap((result) => (result.ok ? [JSON.stringify(result.value)] : [])))],
  errors: results.flatMap((result) => (result.ok ? [] : [result.error.message])),
  asked,
} satisfies HerdLine);
await semel.close();
process.exit(0);
