// Long storms of real processes. npm run chaos -- kill [--kills 1000] [--seed S] [--minutes N] [--no-evidence]
// Long runs of histories: see histories.ts.
// A clean run writes docs/evidence/kill.md itself; one that found something, or in which too little happened, fails.
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { formatViolation, shortfalls } from '../src/testing/checker/index.ts';
import { killEvidence, summary } from '../test/crash/storm/evidence.ts';
import { minimumOf } from '../test/crash/storm/minimum.ts';
import { storm } from '../test/crash/storm/storm.ts';

// Nothing is left behind when somebody loses patience: processes and folders go with the exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

// Histories by seed need no processes.
if (['far', 'same-history'].includes(process.argv[2] ?? '')) {
  await import('./histories.ts');
  process.exit();
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kills: { type: 'string', default: '1000' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 32)) },
    minutes: { type: 'string', default: '60' },
    workers: { type: 'string', default: '8' },
    'no-evidence': { type: 'boolean', default: false },
  },
});

function numberOf(name: 'kills' | 'seed' | 'minutes' | 'workers'): number {
  const number = Number(values[name]);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new Error(`--${name} is a whole number, not ${JSON.stringify(values[name])}.`);
}

if (positionals.length !== 1 || positionals[0] !== 'kill') {
  console.error('Which storm? npm run chaos -- kill [--kills 1000] [--seed S] [--minutes N]');
  process.exit(2);
}

const kills = numberOf('kills');
const seed = numberOf('seed');
const workers = numberOf('workers');
let saidAt = 0;
const report = await storm({
  seed,
  workers,
  kills,
  stops: Math.floor(kills / 4),
  maxMs: numberOf('minutes') * 60_000,
  faultEveryMs: 120,
  onProgress: ({ seconds, kills: done, stops, effects, decided }) => {
    if (seconds - saidAt < 5) return;
    saidAt = seconds;
    const parts = [`${done} of ${kills} kills`, `${stops} stops`, `${effects} effects`, `${decided} decided`];
    console.error(`${Math.round(seconds)} s: ${parts.join(', ')}`);
  },
});

const found = [
  ...report.violations.map(formatViolation),
  ...report.notOnce,
  ...shortfalls(report.effort, minimumOf(kills)),
];
console.log(summary(report));
if (found.length > 0) {
  console.error(`\n${found.slice(0, 20).join('\n\n')}\n\n${found.length} found, with seed ${seed}.`);
  process.exitCode = 1;
} else {
  console.log(`\nNothing was doubled, nothing was lost. Seed ${seed}.`);
  if (!values['no-evidence']) {
    mkdirSync('docs/evidence', { recursive: true });
    const command = `npm run chaos -- kill --kills ${kills} --seed ${seed}`;
    writeFileSync('docs/evidence/kill.md', killEvidence(report, { command, seed, workers }));
    console.log('Written to docs/evidence/kill.md.');
  }
}
