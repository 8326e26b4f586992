// npm run mutants [-- name…] [--jobs 2] [--histories 30000] [--seed 1] [--evidence]
//
// Plants each bug of test/mutants in a copy of the tree and lets the simulator or the test file that it names look for it. All
// must be found, the harmless changes must not, and with a checker that reports nothing the whole run must fail. With --evidence,
// only what has changed since it was last hunted, and every finding is written down at once.

import { parseArgs } from 'node:util';
import {
  describeEvidence,
  head,
  printRow,
  readEvidence,
  selectCurrent,
  toRow,
  writeEvidence,
} from '../test/mutants/evidence.ts';
import { type Effort, type Finding, hunt } from '../test/mutants/hunt.ts';
import { emptyChecker, harmless, type Mutant, planted, remember } from '../test/mutants/mutant.ts';
import { complaintOf, complaints, summary } from '../test/mutants/verdict.ts';
import { circumstances } from '../test/processes/evidence.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: { type: 'string', default: '2' },
    histories: { type: 'string', default: '30000' },
    seed: { type: 'string', default: '1' },
    evidence: { type: 'boolean', default: false },
  },
});
const jobs = wholeNumber('jobs');
const effort: Effort = {
  histories: wholeNumber('histories'),
  seed: wholeNumber('seed'),
  suites: true,
  titles: new Map(readEvidence().map(({ name, what }) => [name, what.slice(what.indexOf(': ') + 2)])),
};

process.exitCode = positionals.length > 0 ? await some(positionals) : await all();

async function some(names: readonly string[]): Promise<number> {
  const known = [...planted(), ...harmless()];
  const chosen = names.map((name) => {
    const found = known.find((mutant) => mutant.name === name);
    if (found === undefined) throw new Error(`There is no mutant ${name} in test/mutants.`);
    return found;
  });
  console.log(head);
  const findings = await huntAll(chosen, effort);
  const isHarmless = new Set(harmless().map(({ name }) => name));
  const wrong = findings.filter((finding) =>
    isHarmless.has(finding.mutant.name) ? finding.by !== undefined : complaintOf(finding).length > 0,
  );
  return wrong.length === 0 ? 0 : 1;
}

async function all(): Promise<number> {
  console.log(head);
  const quiet = harmless();
  // What the tree itself violates would be taken for a mutant's.
  const judge = ({ mutant, by }: Finding) => {
    if (by === undefined || !quiet.includes(mutant)) return;
    throw new Error(`${mutant.name} changes nothing and was reported: the tree itself is not clean.`);
  };
  if (values.evidence) return huntChanged(judge);
  // The harmless ones first, for the same reason.
  const findings = await huntAll([...quiet, ...planted()], effort, judge);
  const hunted = { harmless: findings.slice(0, quiet.length), planted: findings.slice(quiet.length) };
  console.log(`\n${summary(hunted)}.`);
  const blind = await withEmptyChecker(hunted.planted);
  console.log(blind.sentence);
  return report([...complaints(hunted), ...blind.wrong]);
}

/** Goes on where the last hunt ended. */
async function huntChanged(judge: (finding: Finding) => void): Promise<number> {
  const { commit, machine, date } = circumstances('');
  if (commit.includes(',')) throw new Error('Commit src and test first: the evidence names the commit.');
  let rows = selectCurrent(readEvidence());
  const known = new Set(rows.map(({ name }) => name));
  const left = [...harmless(), ...planted()].filter(({ name }) => !known.has(name));
  console.log(`${rows.length} hold, ${left.length} to hunt.`);
  const how = `Last hunt: commit ${commit}, at most ${effort.histories.toLocaleString('en')} histories from seed ${effort.seed}; ${machine}; ${date}.`;
  const findings = await huntAll(left, effort, (finding) => {
    rows = [...rows, toRow(finding, commit)];
    writeEvidence(rows, { how, sentence: '' });
    judge(finding);
  });
  const bugs = findings.filter(({ mutant }) => !harmless().some(({ name }) => name === mutant.name));
  const blind = bugs.some(({ by }) => by === 'sim')
    ? await withEmptyChecker(bugs)
    : { sentence: '', wrong: [] };
  writeEvidence(rows, { how, sentence: blind.sentence });
  console.log(describeEvidence());
  return report([...bugs.flatMap(complaintOf), ...blind.wrong]);
}

function report(wrong: readonly string[]): number {
  for (const complaint of wrong) console.error(`wrong: ${complaint}`);
  return wrong.length === 0 ? 0 : 1;
}

/** Does this harness notice a simulator that sees nothing? Each mutant once more, for as long as it took to find it. */
async function withEmptyChecker(found: readonly Finding[]): Promise<{ sentence: string; wrong: string[] }> {
  const besides = emptyChecker();
  const bySim = found.filter(({ by }) => by === 'sim').toSorted((a, b) => (a.seeds ?? 0) - (b.seeds ?? 0));
  const findings = await inParallel(bySim, ({ mutant, seeds }) =>
    hunt(mutant, { ...effort, histories: Math.min(seeds ?? 100, 500), suites: false, besides }),
  );
  const stillFound = findings.filter(({ by }) => by === 'sim');
  const verdict = complaints({ planted: findings, harmless: [] });
  const sentence = `With an empty checker ${findings.length - stillFound.length} of these ${findings.length} are missed, and the run fails.`;
  const wrong = stillFound.map(({ mutant }) => `${mutant.name} is found by an empty checker`);
  if (verdict.length === 0) wrong.push('with an empty checker the run does not fail');
  return { sentence, wrong };
}

function huntAll(
  mutants: readonly Mutant[],
  how: Effort,
  judge: (finding: Finding) => void = () => undefined,
): Promise<readonly Finding[]> {
  return inParallel(mutants, async (mutant, at) => {
    if (process.stderr.isTTY) process.stderr.write(`${at + 1} of ${mutants.length}: ${mutant.name} …\r`);
    const finding = await hunt(mutant, how);
    console.log(printRow(toRow(finding, '')));
    const { file } = finding;
    if (file !== undefined && mutant.foundBy === 'contract') remember(mutant, file);
    judge(finding);
    return finding;
  });
}

async function inParallel<T, U>(
  items: readonly T[],
  work: (item: T, at: number) => Promise<U>,
): Promise<U[]> {
  const results: U[] = [];
  let next = 0;
  const worker = async () => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as T, at);
  };
  await Promise.all(Array.from({ length: Math.min(jobs, items.length) }, worker));
  return results;
}

function wholeNumber(name: 'jobs' | 'histories' | 'seed'): number {
  const number = Number(values[name]);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new Error(`--${name} is a whole number from 1, not ${JSON.stringify(values[name])}.`);
}
