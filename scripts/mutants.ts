// npm run mutants [-- name…] [--jobs 2] [--histories 30000] [--seed 1] [--evidence]
//
// Plants each bug of test/mutants in a copy of the tree and lets simulator and suites look for it. All must be found,
// the harmless changes must not, and with a checker that reports nothing the whole run must fail. The test file that found
// a mutant is written into it.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../test/mutants/copy.ts';
import { describeEvidence, evidenceFile } from '../test/mutants/evidence.ts';
import { type Effort, type Finding, hunt } from '../test/mutants/hunt.ts';
import { emptyChecker, harmless, type Mutant, planted, remember } from '../test/mutants/mutant.ts';
import { complaintOf, complaints, head, row, summary } from '../test/mutants/verdict.ts';
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
const effort: Effort = { histories: wholeNumber('histories'), seed: wholeNumber('seed'), suites: true };

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
  const startedAt = performance.now();
  console.log(`${head}`);
  // The harmless ones first: what the tree itself violates would be taken for a mutant's.
  const quiet = harmless();
  const findings = await huntAll([...quiet, ...planted()], effort, ({ mutant, by }) => {
    if (by === undefined || !quiet.includes(mutant)) return;
    throw new Error(`${mutant.name} changes nothing and was reported: the tree itself is not clean.`);
  });
  const hunted = { harmless: findings.slice(0, quiet.length), planted: findings.slice(quiet.length) };
  console.log(`\n${summary(hunted)}.`);
  const blind = await withEmptyChecker(hunted.planted);
  console.log(blind.sentence);
  const wrong = [...complaints(hunted), ...blind.wrong];
  for (const complaint of wrong) console.error(`wrong: ${complaint}`);
  if (wrong.length > 0) return 1;
  if (values.evidence) {
    const findings = [...hunted.planted, ...hunted.harmless];
    const minutes = Math.round((performance.now() - startedAt) / 60_000);
    write(findings, `${summary(hunted)}. ${blind.sentence}`, minutes);
  }
  return 0;
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
    console.log(row(finding));
    judge(finding);
    const { file } = finding;
    if (file !== undefined && file !== mutant.foundBy && mutant.foundBy !== 'sim') remember(mutant, file);
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

function write(findings: readonly Finding[], summaryText: string, minutes: number): void {
  const { commit, command, machine, date } = circumstances(
    `npm run mutants -- --histories ${effort.histories} --seed ${effort.seed} --evidence`,
  );
  const file = join(root, evidenceFile);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(
    file,
    `# Mutants: planted bugs, and who finds them

Written by \`scripts/mutants.ts\`; not edited. Each bug is a change of production source in test/mutants/planted, with
the trace that it re-creates, and who must find it: the simulator, from seed ${effort.seed} on, within ${effort.histories.toLocaleString('en')} histories, or the
test file that its mutant names.

- commit: ${commit}
- command: \`${command}\`
- machine: ${machine}; ${minutes} minutes
- date: ${date}

${summaryText}

${head}
${findings.map(row).join('\n')}
`,
  );
  console.log(`Written. ${describeEvidence()}`);
}

function wholeNumber(name: 'jobs' | 'histories' | 'seed'): number {
  const number = Number(values[name]);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new Error(`--${name} is a whole number from 1, not ${JSON.stringify(values[name])}.`);
}
