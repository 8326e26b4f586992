// The process that comes after: makes the same call at once, after the lease, and when nothing can still be on its
// way; then a person looks at the target where semel could not decide, and it calls once more.

import { createSemel, type Result } from '../../src/index.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { jobOf, onFinish, print } from '../processes/child.ts';
import { movableClock } from '../processes/movable-clock.ts';
import { type Heard, heard } from './heard.ts';
import type { LineName } from './lines.ts';
import { type Args, targetOf, toolOf, type Value } from './tools.ts';

export interface SurvivorJob {
  readonly ledger: string;
  readonly url: string;
  readonly line: LineName;
  readonly intents: readonly string[];
  /** How much later than now it lives. */
  readonly aheadMs?: number;
}

export interface SurvivorLine {
  readonly intent: string;
  readonly heard: readonly Heard[];
}

/** The leases of the contracts are a minute long, and "not landed" is believed after eleven. */
const moments = [0, 61_000, 12 * 60_000];

const { ledger, url, line, intents, aheadMs } = jobOf<SurvivorJob>();
onFinish(() => process.exit(1));
const clock = movableClock(aheadMs);
// No cache: each call must hear it from the ledger.
const semel = createSemel({
  store: sqliteStore({ path: ledger, clock }),
  clock,
  namespace: 'crash',
  cache: false,
  onWarning: () => undefined,
});
const tool = toolOf(semel, line, { url, at: () => undefined });
const all = new Map<string, Heard[]>(intents.map((intent) => [intent, []]));

function call(intent: string, nth: number): Promise<Result<Value>> {
  const args: Args = { intent, wording: `survivor ${nth}` };
  return tool.try(args);
}

for (const [nth, ms] of moments.entries()) {
  clock.advance(ms);
  for (const [intent, words] of all) words.push(heard(await call(intent, nth)));
}
for (const [intent, words] of all) {
  if (words.at(-1)?.word === 'doubt') await decide(intent, words.at(-1)?.key ?? '');
  words.push(heard(await call(intent, moments.length)));
  print({ intent, heard: words } satisfies SurvivorLine);
}
await semel.close();
process.exit(0);

/** A person looks whether it is there, and says what they saw. */
async function decide(intent: string, key: string): Promise<void> {
  const query = new URLSearchParams({ namespace: semel.namespace, intent, target: targetOf(line) });
  const response = await fetch(`${url}/effects?${query}`);
  const { effects } = (await response.json()) as { effects: { seq: number }[] };
  const record = await semel.records.get(key);
  if (record === undefined) throw new Error(`There is no record ${key}.`);
  const [effect] = effects;
  await semel.doubts.resolve(
    record.ref,
    effect === undefined ? 'notLanded' : { landed: { effect: effect.seq } },
    { by: 'a person', note: 'looked at the target' },
  );
}
