// One of many processes that all call the same keys, each in an order of its own.

import { createSemel } from '../../src/index.ts';
import { jobOf, onFinish, print } from '../processes/child.ts';
import { senderHeaders } from '../support/effect-server/index.ts';

export interface RacerJob {
  readonly ledger: string;
  readonly url: string;
  readonly keys: number;
  readonly racer: number;
  /** How many calls this process has under way at once. */
  readonly lanes: number;
  /** When all start, so that they meet. */
  readonly startAt: number;
}

export interface RacerLine {
  readonly executed: number;
  readonly replayed: number;
  /** The effect that each key's caller was told of. */
  readonly told: readonly number[];
  readonly errors: readonly string[];
}

const { ledger, url, keys, racer, lanes, startAt } = jobOf<RacerJob>();
onFinish(() => process.exit(1));
const semel = createSemel({
  store: `sqlite:${ledger}`,
  namespace: 'race',
  cache: false,
  onWarning: () => undefined,
});
const send = semel.tool({
  name: 'mail.send',
  effect: 'write-non-idempotent',
  per: 'ever',
  identity: ['n'],
  run: async ({ n }: { n: number; racer: number }, { fence }) => {
    const headers = senderHeaders({ namespace: 'race', intent: String(n), fence, pid: process.pid });
    const response = await fetch(`${url}/do/mail`, { method: 'POST', headers });
    return ((await response.json()) as { effect: number }).effect;
  },
});

const left = shuffled(keys, racer);
const told: number[] = [];
const errors: string[] = [];
let executed = 0;
let replayed = 0;

async function lane(): Promise<void> {
  for (let n = left.pop(); n !== undefined; n = left.pop()) {
    const result = await send.try({ n, racer });
    if (!result.ok) errors.push(`${n}: ${result.error.message}`);
    else {
      told[n] = result.value;
      if (result.receipt.executed) executed += 1;
      if (result.receipt.replayed) replayed += 1;
    }
  }
}

await semel.open();
await new Promise((resolve) => setTimeout(resolve, Math.max(0, startAt - Date.now())));
await Promise.all(Array.from({ length: lanes }, lane));
print({ executed, replayed, told, errors } satisfies RacerLine);
await semel.close();
process.exit(0);

/** Half of the racers go one way, half the other, each from a place of its own: they meet at most keys. */
function shuffled(count: number, by: number): number[] {
  const order = Array.from({ length: count }, (_, n) => (n * 7 + Math.floor(by / 2) * 50) % count);
  return by % 2 === 0 ? order : order.reverse();
}
