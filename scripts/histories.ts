// Many histories by seed, of which every one must be right.
//   npm run chaos -- far [--runs 200000] [--seed S]            several clients of a far store, in bad weather
//   npm run chaos -- same-history [--runs 20000] [--seed S] [--store …]    every store against the reference
import { parseArgs } from 'node:util';
import { runFarHistories } from '../test/sim/far/histories.ts';
import { outside } from '../test/sim/scheduler.ts';
import { ledgers, reference } from '../test/stores/same-history/ledgers.ts';
import { difference } from '../test/stores/same-history/play.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { runs: { type: 'string' }, seed: { type: 'string', default: '1' }, store: { type: 'string' } },
});
const seed = Number(values.seed);
const [asked] = positionals;
const runs = Number(values.runs ?? (asked === 'far' ? 200_000 : 20_000));
if (!Number.isSafeInteger(seed) || !Number.isSafeInteger(runs))
  throw new Error('--runs and --seed are numbers.');
/** As many between two lines. */
const chunk = 500;

// The clocks of these tests have no timers that keep a process alive.
const awake = setInterval(() => {}, 60_000);
if (asked === 'far') await far();
else await sameHistory();
clearInterval(awake);

async function far(): Promise<void> {
  // Stacks are never shown, and to take them costs much.
  Error.stackTraceLimit = 0;
  for (let done = 0; done < runs; done += chunk) {
    const count = Math.min(chunk, runs - done);
    const { violations, ...tally } = await outside(() => runFarHistories(seed + done, count));
    if (!report(violations.map(({ seed: at, what }) => `seed ${at}: ${what}`))) return;
    console.error(`${done + count} of ${runs}: ${JSON.stringify(tally)}`);
  }
}

async function sameHistory(): Promise<void> {
  const names = values.store === undefined ? Object.keys(ledgers) : [values.store];
  for (const name of names) {
    const make = ledgers[name];
    if (make === undefined) throw new Error(`--store is one of ${Object.keys(ledgers).join(', ')}.`);
    const ledger = await make();
    if (ledger === undefined) continue;
    try {
      for (let nth = 0; nth < runs; nth += 1) {
        const found = await difference(seed + nth, ledger, reference());
        if (found !== undefined && !report([`${name}, ${found}`])) return;
        if ((nth + 1) % chunk === 0) console.error(`${name}: ${nth + 1} of ${runs}`);
      }
    } finally {
      await ledger.end();
    }
  }
}

/** Whether nothing was found. */
function report(found: readonly string[]): boolean {
  for (const one of found) console.error(one);
  if (found.length > 0) process.exitCode = 1;
  return found.length === 0;
}
