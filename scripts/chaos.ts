// Long storms of real processes on real servers; `npm run chaos -- --help` lists them.
// A clean run writes docs/internals/evidence/<storm>-<store>.md itself; one that found something, or in which too little
// happened, fails.
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { stormEvidence, summary } from '../test/crash/storm/evidence.ts';
import { type FaultCounts, faultNames } from '../test/crash/storm/faults.ts';
import { type Kind, kinds } from '../test/crash/storm/kinds.ts';
import {
  cellStoreNames,
  isPlaceName,
  type PlaceName,
  placeNames,
  storeNames,
} from '../test/crash/storm/ledger.ts';
import { type StormReport, storm } from '../test/crash/storm/storm.ts';
import { markdownTable } from '../test/crash/table.ts';
import { outboxEvidence, summary as outboxSummary } from '../test/outbox/storm/evidence.ts';
import { outboxStorm } from '../test/outbox/storm/storm.ts';
import { formatViolation, shortfalls } from '../test/support/checker/index.ts';
import { hurtAll } from '../test/wire/hurt-all.ts';
import { wireEvidence, wireTable } from '../test/wire/report.ts';

const usage = `npm run chaos -- kill [--kills 1000] [--store sqlite|postgres|redis|dynamodb|s3|pgbouncer]
npm run chaos -- server-crash [--crashes 200] [--store postgres|redis]
npm run chaos -- clock [--moves 200] [--store postgres|redis]
npm run chaos -- wire [--store postgres|redis]   every message of every operation, in every manner
npm run chaos -- outbox [--kills 500]            relays of an outbox on Postgres, and its stagers
npm run chaos -- --minutes N [--store …]         everything at once, on one store or on all in turn
npm run chaos -- far|same-history …              long runs of histories

  --seed S         the seed of a storm, to play it again as far as real processes allow
  --minutes N      how long a storm lasts at most
  --workers N      how many processes there are
  --no-evidence    do not write the page of the evidence
`;

if (process.argv.includes('--help')) {
  process.stdout.write(usage);
  process.exit();
}

// An interrupt leaves nothing behind: processes and folders go with the exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

// Histories by seed need no processes.
if (['far', 'same-history'].includes(process.argv[2] ?? '')) {
  await import('./histories.ts');
  process.exit();
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kills: { type: 'string' },
    crashes: { type: 'string' },
    moves: { type: 'string' },
    store: { type: 'string' },
    seed: { type: 'string' },
    minutes: { type: 'string' },
    workers: { type: 'string' },
    'no-evidence': { type: 'boolean', default: false },
  },
});

function numberOf(
  name: 'kills' | 'crashes' | 'moves' | 'seed' | 'minutes' | 'workers',
  usually: number,
): number {
  const number = Number(values[name] ?? usually);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new Error(`--${name} is a whole number, not ${JSON.stringify(values[name])}.`);
}

function refuse(what: string): never {
  console.error(
    `${what}\nnpm run chaos -- ${[...Object.keys(kinds), 'wire', 'outbox'].join('|')} [--store ${placeNames.join('|')}]`,
  );
  process.exit(2);
}

const seed = numberOf('seed', Math.floor(Math.random() * 2 ** 32));
if (values.store !== undefined && !isPlaceName(values.store)) refuse(`There is no store ${values.store}.`);
const [asked, ...more] = positionals;
if (more.length > 0) refuse('One storm at a time.');
if (asked === undefined) await mix(values.store as PlaceName | undefined);
else if (asked === 'wire') await wire(values.store ?? 'postgres');
else if (asked === 'outbox') await outbox();
else if (asked in kinds) await one(asked, kinds[asked as keyof typeof kinds]);
else refuse(`There is no storm ${asked}.`);

async function one(name: string, kind: Kind): Promise<void> {
  const store = (values.store as PlaceName | undefined) ?? (name === 'kill' ? 'sqlite' : 'postgres');
  const count = numberOf(kind.counts as 'kills', kind.usually);
  const workers = numberOf('workers', kind.workers);
  const isSlow = cellStoreNames.some((each) => each === store);
  // Whoever stands still there does so for seconds, and the others must get something done meanwhile.
  const faultEveryMs = isSlow ? 10 * kind.faultEveryMs : kind.faultEveryMs;
  const report = await run(store, workers, faultEveryMs, kind.faults(count), 120);
  const found = findings(report, shortfalls(report.effort, kind.minimum(count)));
  console.log(summary(report));
  if (found > 0 || values['no-evidence']) return;
  const command = `npm run chaos -- ${name} --${kind.counts} ${count} --store ${store} --seed ${seed}`;
  const path = `docs/internals/evidence/${name}-${store}.md`;
  mkdirSync('docs/internals/evidence', { recursive: true });
  writeFileSync(path, stormEvidence(report, { title: kind.title, command, seed, workers, store }));
  console.log(`Written to ${path}.`);
}

async function wire(store: string): Promise<void> {
  if (store !== 'postgres' && store !== 'redis') refuse(`There is no wire to ${store} that can be hurt.`);
  const { reports, place } = await hurtAll(store as 'postgres' | 'redis');
  const wrong = reports.flatMap((report) => report.wrong);
  console.log(wireTable(reports));
  if (wrong.length > 0) {
    console.error(`\n${wrong.slice(0, 20).join('\n\n')}\n\n${wrong.length} went wrong.`);
    process.exitCode = 1;
  } else if (!values['no-evidence']) {
    const path = `docs/internals/evidence/wire-${store}.md`;
    writeFileSync(path, wireEvidence(reports, place, `npm run chaos -- wire --store ${store}`));
    console.log(`Written to ${path}.`);
  }
}

async function outbox(): Promise<void> {
  if (values.store !== undefined && values.store !== 'postgres')
    refuse('The storm on the outbox is on Postgres.');
  const kills = numberOf('kills', 500);
  let saidAt = 0;
  const options = { seed, kills, relays: 4, stagers: 3, faultEveryMs: 250, perSecond: 40 };
  const report = await outboxStorm({
    ...options,
    onProgress({ seconds, faults, effects }) {
      if (seconds - saidAt < 5) return;
      saidAt = seconds;
      console.error(`${Math.round(seconds)} s: ${JSON.stringify(faults)}, ${effects} effects`);
    },
  });
  const missing = report.effects < 3 * kills ? [`Only ${report.effects} effects for ${kills} kills.`] : [];
  const found = [...report.violations, ...missing];
  console.log(outboxSummary(report));
  if (found.length > 0) {
    console.error(`\n${found.slice(0, 20).join('\n')}\n\n${found.length} found, with seed ${seed}.`);
    process.exitCode = 1;
  } else if (!values['no-evidence']) {
    const path = 'docs/internals/evidence/outbox-postgres.md';
    const command = `npm run chaos -- outbox --kills ${kills} --seed ${seed}`;
    writeFileSync(path, outboxEvidence(report, command, options));
    console.log(`Written to ${path}.`);
  }
}

async function mix(only: PlaceName | undefined): Promise<void> {
  const stores = only === undefined ? storeNames : [only];
  const minutes = numberOf('minutes', 10) / stores.length;
  // Clocks that move weaken what can be asked of the others: they have a storm of their own.
  const mixed = faultNames.filter((fault) => fault !== 'clock' && fault !== 'workerClock');
  const faults = Object.fromEntries(mixed.map((fault) => [fault, Number.POSITIVE_INFINITY]));
  const rows: (string | number)[][] = [];
  for (const store of stores) {
    const report = await run(store, numberOf('workers', 8), 250, faults, minutes);
    const found = findings(report, []);
    const { effort } = report;
    rows.push([
      report.place,
      `${Math.round(report.seconds)} s`,
      ...mixed.map((fault) => report.faults[fault]),
      effort.calls,
      effort.successes,
      effort.replays,
      effort.takeovers,
      effort.fenced,
      effort.doubts,
      report.codes.STORE_UNAVAILABLE ?? 0,
      found,
    ]);
  }
  const counted = [
    'calls',
    'executed',
    'replayed',
    'takeovers',
    'fenced',
    'in doubt',
    'refused',
    'violations',
  ];
  console.log(markdownTable(['store', 'duration', ...mixed, ...counted], rows));
}

async function run(
  store: PlaceName,
  workers: number,
  faultEveryMs: number,
  faults: FaultCounts,
  usualMinutes: number,
): Promise<StormReport> {
  let saidAt = 0;
  return storm({
    store,
    seed,
    workers,
    faults,
    maxMs: (asked === undefined ? usualMinutes : numberOf('minutes', usualMinutes)) * 60_000,
    faultEveryMs,
    onProgress: ({ seconds, faults: done, effects, decided }) => {
      if (seconds - saidAt < 5) return;
      saidAt = seconds;
      const counts = faultNames.filter((fault) => done[fault] > 0).map((fault) => `${done[fault]} ${fault}`);
      console.error(
        `${Math.round(seconds)} s: ${[...counts, `${effects} effects`, `${decided} decided`].join(', ')}`,
      );
    },
  });
}

/** Tells them, and how many there are. */
function findings(report: StormReport, missing: readonly string[]): number {
  const found = [...report.violations.map(formatViolation), ...report.notOnce, ...missing];
  if (found.length === 0) {
    console.log(`\nNothing was doubled, nothing was lost on ${report.place}. Seed ${seed}.`);
    return 0;
  }
  console.error(
    `\n${found.slice(0, 20).join('\n\n')}\n\n${found.length} found on ${report.place}, with seed ${seed}.`,
  );
  process.exitCode = 1;
  return found.length;
}
