// `semel doctor`: checks a ledger and how it is used, and says what is wrong and what to do.

import { formatDuration } from '../../../core/contract/duration.ts';
import { findSimilar } from '../../../core/contract/known-fields.ts';
import { flagReader } from '../../args/flag-values.ts';
import { command } from '../../command.ts';
import { text, texts } from '../../flags.ts';
import { complain, print, printable, printJson, relative, styled } from '../../render/print.ts';
import { usageError } from '../../usage.ts';
import { findingIds, findingsIn } from './checks.ts';
import { count, type Finding } from './finding.ts';
import { type Reading, readLedger } from './read.ts';

export default command({
  name: 'doctor',
  takes: '[options]',
  about: `Checks the ledger's files, its clock, its records and their history, in all namespaces unless you choose one, and exits
with 1 if it finds anything. Each finding has a stable id and says what to do; semel explain <id> says more:
  ${findingIds.join(' ')}`,
  flags: {
    since: text('<duration>', 'how far to look back (default: 30d)'),
    only: texts('<ids>', 'only these findings, separated by commas'),
    ignore: texts('<ids>', 'skip these findings'),
  },
  examples: [
    'semel doctor',
    'semel doctor --since 1d --ignore DOUBT_BACKLOG',
    'semel doctor --json | jq -r ".findings[].id"',
  ],
  async run({ values, positionals }) {
    if (positionals.length > 0) throw usageError('doctor', 'takes no arguments, only options');
    const ids = idsFor(values.only, values.ignore);
    const now = Date.now();
    const since = now - flagReader('doctor', values).duration('since', 30 * 86_400_000);
    const reading = await readLedger(values, now, since);
    const findings = findingsIn(reading, ids);
    if (values.json) printJson(reportOf(reading, ids, findings));
    else {
      print(...findings.flatMap((finding) => [...entry(finding, now), '']));
      print(...summary(reading, ids, findings));
      for (const sentence of reading.leftOut) complain(sentence);
    }
    return findings.length > 0 ? 1 : 0;
  },
});

function idsFor(
  only: readonly string[] | undefined,
  ignore: readonly string[] | undefined,
): readonly string[] {
  const left = new Set(parseIds('--ignore', ignore));
  return (only === undefined ? findingIds : parseIds('--only', only)).filter((id) => !left.has(id));
}

function parseIds(flag: string, given: readonly string[] = []): readonly string[] {
  const ids = given.flatMap((list) => list.split(',')).map((id) => id.trim().toUpperCase());
  for (const id of ids) {
    if (findingIds.includes(id)) continue;
    const near = findSimilar(findingIds, id);
    throw usageError(
      'doctor',
      `${flag}: there is no finding ${JSON.stringify(id.slice(0, 80))}`,
      near === undefined ? `Use one of ${findingIds.join(', ')}.` : `Did you mean ${near}?`,
    );
  }
  return ids;
}

function reportOf(reading: Reading, ids: readonly string[], findings: readonly Finding[]) {
  return {
    ledger: placeOf(reading),
    namespaces: reading.namespaces,
    records: reading.looked,
    since: new Date(reading.since),
    checks: ids,
    findings,
    leftOut: reading.leftOut,
  };
}

function entry({ id, namespace, contract, found, next, records, lastAt }: Finding, now: number) {
  const about = [namespace, contract].filter((part) => part !== undefined).join('  ');
  const when = lastAt === undefined ? '' : ` (last ${relative(lastAt, now)})`;
  return [
    `${styled(['bold', 'yellow'], id)}  ${printable(about)}`.trimEnd(),
    printable(`  ${found}${when}`),
    printable(`  Do: ${next}`),
    ...(records === undefined ? [] : [printable(`  Records: ${records.join(', ')}`)]),
  ];
}

function summary(reading: Reading, ids: readonly string[], findings: readonly Finding[]): readonly string[] {
  const { looked, namespaces, since, now, refused } = reading;
  const where = namespaces.length === 1 ? namespaces[0] : count(namespaces.length, 'namespace');
  const back = `back to ${new Date(since).toISOString()} (${formatDuration(now - since)})`;
  const made = ids.length === findingIds.length ? ids.length : `${ids.length} of ${findingIds.length}`;
  const lookedAt =
    refused === undefined
      ? `${count(looked, 'record')} of ${where} in ${placeOf(reading)}, ${back}`
      : placeOf(reading);
  const verdict =
    findings.length === 0
      ? styled('green', 'Nothing is wrong.')
      : `${count(findings.length, 'finding')}. semel explain <id> says more.`;
  return [`Looked at ${printable(lookedAt)}, with ${made} checks.`, verdict];
}

function placeOf({ facts, files }: Reading): string {
  return facts?.location ?? files?.path ?? 'the ledger';
}
