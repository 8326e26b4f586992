// A storm as a table, and as the page that it writes about itself.

import { circumstances } from '../../processes/evidence.ts';
import { invariantNames } from '../../support/checker/index.ts';
import { markdownTable } from '../table.ts';
import { type FaultName, faultNames } from './faults.ts';
import type { PlaceName } from './ledger.ts';
import type { StormReport } from './storm.ts';
import { contracts, type Pace, paceOf, termsOf } from './terms.ts';

type Row = [string, string | number];

export const faultWords: Readonly<Record<FaultName, string>> = {
  kill: 'processes killed (SIGKILL)',
  stop: 'processes stopped past their lease (SIGSTOP)',
  crash: 'crashes of the server (SIGKILL, or its own way to end at once)',
  pause: 'times that the server stood still (SIGSTOP)',
  clock: 'times that the clock of the server was set forward or back, by up to a day',
  workerClock: 'times that the clock of a process was set forward or back, by up to a day',
};

export function summary(report: StormReport): string {
  const { effort, events, faults } = report;
  const rows: Row[] = [
    ['duration', `${Math.round(report.seconds)} s`],
    ...faultNames.filter((name) => faults[name] > 0).map((name): Row => [faultWords[name], faults[name]]),
    ['intents', report.intents],
    ['calls', effort.calls],
    ['… that executed', effort.successes],
    ['… that were answered from the ledger', effort.replays],
    ['… that were told "in doubt"', effort.doubts],
    ['… that were refused, because the store did not answer', report.codes.STORE_UNAVAILABLE ?? 0],
    ['… that were done and could not be recorded at once', report.codes.UNRECORDED ?? 0],
    ['effects at the target', report.effects],
    ['takeovers', effort.takeovers],
    ['news of fenced attempts', effort.fenced],
    ['… of which second effects that somebody had accepted', events.duplicate ?? 0],
    ['verdicts (`verify` and people)', effort.verdicts],
    ['intents that did not land once', report.notOnce.length],
    ['violations', report.violations.length],
  ];
  return markdownTable(['what', 'count'], rows);
}

function termsTable(seed: number, pace: Pace): string {
  const rows = contracts.map((name) => {
    const { lease, timeout, verifyAfter, per, isDerived, retry } = termsOf(seed, name, pace);
    const period = typeof per === 'object' ? `${per.unit} ${per.zone}` : String(per);
    const times = [lease, timeout, verifyAfter].map((ms) => `${ms} ms`);
    return [name, ...times, period, isDerived ? 'derived' : 'plain', String(retry?.tries ?? 1)];
  });
  return markdownTable(['contract', 'lease', 'timeout', 'verifyAfter', 'per', 'identity', 'tries'], rows);
}

export interface Asked {
  readonly title: string;
  readonly command: string;
  readonly seed: number;
  readonly workers: number;
  readonly store: PlaceName;
}

export function stormEvidence(report: StormReport, { title, command, seed, workers, store }: Asked): string {
  const pace = paceOf(store);
  const { commit, machine, date } = circumstances(command);
  return `# ${title}: ${report.place}

Written by \`${command}\` on ${date}; do not edit.

${workers} processes share one ledger (${report.place}) and call the same intents under ${contracts.length} contracts; the target is a
process of its own that writes every effect to disk before it answers. Faults strike at random: the table says which and
how often. Who is killed is replaced; who is stopped stands still past its lease (${pace.longestLeaseMs} ms at most) and is woken; a server that
crashed comes back on the same data. The target has moods in which it refuses, is overloaded, hangs, or cuts the line
before or after it did what was asked; somebody decides doubts by what the target shows, and now and then accepts a
repeat or gives up. Afterwards every caller comes back once. What the contracts say besides comes from the seed:

${termsTable(seed, pace)}

| | |
|---|---|
| commit | ${commit} |
| command | \`${command}\` |
| seed | ${seed} (chooses whom and when; the machine's own timing is not in it) |
| machine | ${machine} |

${summary(report)}

The checker read the logs of all workers, the history of the store and the log of the target, and held them against:
${invariantNames.join(', ')}. Without the checker: each intent landed exactly once in the end, unless its contract lets it be
repeated, the target refused it for good, or somebody chose otherwise.
`;
}
