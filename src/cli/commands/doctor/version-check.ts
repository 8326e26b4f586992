// Programs of different versions at one ledger.

import { majorVersion } from '../../../core/contract/version.ts';
import { shellWord } from '../../../core/visible.ts';
import { ago, type Check, count, examples, type Found, latest } from './finding.ts';
import { byContract, type ContractSeen, type Seen } from './seen.ts';
import { refusedFor } from './store-checks.ts';

/** A deploy takes a while; longer than this, somebody was left behind. */
const deployMs = 3_600_000;

export const version: Check<'VERSION'> = {
  id: 'VERSION',
  finds: (seen) => [
    ...refusedFor(seen, 'version'),
    ...byContract(seen.records).flatMap((group) => [...leftBehind(group), ...notToday(group, seen)]),
  ],
};

interface Used {
  readonly major: string;
  readonly first: number;
  readonly last: number;
}

/** The latest to appear comes last. */
function majors({ records }: ContractSeen): readonly Used[] {
  return [...Map.groupBy(records, (record) => majorVersion(record.version))]
    .map(([major, members]) => {
      const at = members.map(({ createdAt }) => createdAt.getTime());
      const first = at.reduce((earliest, each) => Math.min(earliest, each), Number.POSITIVE_INFINITY);
      return { major, first, last: latest(at).getTime() };
    })
    .sort((a, b) => a.first - b.first);
}

function leftBehind(group: ContractSeen): readonly Found[] {
  const { namespace, contract } = group;
  const used = majors(group);
  const newest = used.at(-1);
  if (newest === undefined) return [];
  return used
    .filter(({ major, last }) => major !== newest.major && last - newest.first > deployMs)
    .map(({ major, last }) => ({
      namespace,
      contract,
      found: `Version ${major} was still in use ${ago(last - newest.first)} after version ${newest.major} had appeared.`,
      next: 'Find the program that was not redeployed (a cron job, another machine), and deploy it.',
      lastAt: new Date(last),
    }));
}

/** What another major version sent cannot be sent again by today's code. */
function notToday(group: ContractSeen, { optionsFor }: Seen): readonly Found[] {
  const { namespace, contract, records } = group;
  const newest = majors(group).at(-1)?.major;
  const open = records.filter((record) => record.inDoubt && majorVersion(record.version) !== newest);
  if (open.length === 0) return [];
  return [
    {
      namespace,
      contract,
      found: `${count(open.length, 'record')} in doubt ${open.length === 1 ? 'was' : 'were'} written before version ${newest}, which does not run them again.`,
      next: `Check whether they landed, and decide: semel doubt --tool ${shellWord(contract)} ${optionsFor(namespace)}`.trim(),
      records: examples(open),
    },
  ];
}
