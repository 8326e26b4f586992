// Damages SQLite ledgers in many ways and makes every call again: none may run twice or get another value.
//   npm run damage [-- --trials 200] [--seed S] [--kind <part of a name>] [--no-evidence] [--results <file>]
// A clean run writes docs/internals/evidence/damage.md itself; one in which something went wrong fails, and names the seed.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { markdownTable } from '../test/crash/table.ts';
import { campaign, isClean, type Tally } from '../test/damage/campaign.ts';
import { circumstances } from '../test/processes/evidence.ts';

const { values } = parseArgs({
  options: {
    trials: { type: 'string', default: '200' },
    seed: { type: 'string', default: `${Math.floor(Math.random() * 2 ** 31)}` },
    kind: { type: 'string' },
    results: { type: 'string' },
    'no-evidence': { type: 'boolean', default: false },
  },
});

const trials = wholeNumber('trials');
const seed = wholeNumber('seed');
// What is looked for is in the files, not on the disk.
const folder = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
const startedAt = performance.now();
const tallies = await campaign({ folder, trials, seed, only: values.kind });
const seconds = Math.round((performance.now() - startedAt) / 1_000);
const wrong = tallies.filter((tally) => !isClean(tally));

console.log(table(tallies));
for (const { kind, first } of wrong) console.error(`${kind}: ${first}`);
if (values.results !== undefined) {
  const failed = wrong.length;
  writeFileSync(values.results, JSON.stringify({ passed: tallies.length - failed, failed }));
}
if (wrong.length > 0 || tallies.length === 0) process.exitCode = 1;
else if (!values['no-evidence'] && values.kind === undefined) {
  mkdirSync('docs/internals/evidence', { recursive: true });
  writeFileSync('docs/internals/evidence/damage.md', page());
  console.log('Written to docs/internals/evidence/damage.md.');
}

function wholeNumber(name: 'trials' | 'seed'): number {
  const number = Number(values[name]);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new Error(`--${name} is a whole number, not ${JSON.stringify(values[name])}.`);
}

function table(all: readonly Tally[]): string {
  const head = [
    'damage',
    'trials',
    'refused at opening',
    'some calls refused',
    'no call affected',
    're-executed',
    'wrong values',
  ];
  const rows = all.map(({ kind, trials: count, refused, partly, unharmed, reExecuted, wrongValues }) => [
    kind,
    count,
    refused,
    partly,
    unharmed,
    reExecuted,
    wrongValues,
  ]);
  return markdownTable(head, rows);
}

function page(): string {
  const command = `npm run damage -- --trials ${trials} --seed ${seed}`;
  const { commit, machine, date } = circumstances(command);
  const sum = (count: (tally: Tally) => number) => tallies.reduce((total, tally) => total + count(tally), 0);
  return `# Damaged ledgers

Written by \`${command}\` on ${date}; do not edit.

Copies of four SQLite ledgers (small and large, each closed, or left with its log by a process that was killed) are damaged
in one way each, at a place that the seed chooses. Then every call that was made is made again. A call may be answered with
its value, or refused with STORE_UNSAFE; it may not run again, get another value, or be told to try again.

| | |
|---|---|
| commit | ${commit} |
| command | \`${command}\` |
| seed | ${seed} (chooses the place; the instants in the records are not in it) |
| machine | ${machine} |
| duration | ${seconds} s |
| trials | ${sum((tally) => tally.trials)} |
| re-executed | ${sum((tally) => tally.reExecuted)} |
| wrong values | ${sum((tally) => tally.wrongValues)} |

${table(tallies)}

"No call affected": the damage lay where no record is, or where SQLite makes it good (its index is built anew). Pages that are
exchanged, and records that are removed by a program, are tried on ledgers of up to 1 MiB only, which are looked through when they
are opened: [what cannot be noticed](../../operate/stores.md#is-anything-missing).
`;
}
